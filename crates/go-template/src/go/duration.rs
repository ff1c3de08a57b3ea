//! Go's `time.ParseDuration`, and how Go prints a duration.

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Larger than the largest duration by one: the smallest one without its sign.
const END: u64 = 1 << 63;

/// Nanoseconds of a text such as `-1h30m`; `None` if it is no duration.
pub fn parse(text: &str) -> Option<i64> {
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut all: u64 = 0;
    while !rest.is_empty() {
        let (nanos, after) = part(rest)?;
        all = all.checked_add(nanos).filter(|all| *all <= END)?;
        rest = after;
    }
    if negative { 0_i64.checked_sub_unsigned(all) } else { i64::try_from(all).ok() }
}

/// A number and its unit, in nanoseconds, and the rest.
fn part(text: &str) -> Option<(u64, &str)> {
    let end = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = text.split_at(end(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(end(rest)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let width = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(width);
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok().filter(|whole| *whole <= END)? };
    let nanos = whole.checked_mul(*unit).filter(|nanos| *nanos <= END)?;
    let (value, scale) = leading_fraction(fraction);
    let more = (value as f64 * (*unit as f64 / scale)) as u64;
    Some((nanos.checked_add(more).filter(|nanos| *nanos <= END)?, rest))
}

/// The digits of a fraction as far as they fit, and what they are to be divided by.
fn leading_fraction(digits: &str) -> (u64, f64) {
    let (mut value, mut scale) = (0_u64, 1.0);
    for digit in digits.bytes() {
        if value > (END - 1) / 10 {
            break;
        }
        let more = value * 10 + u64::from(digit - b'0');
        if more > END {
            break;
        }
        value = more;
        scale *= 10.0;
    }
    (value, scale)
}

/// Nanoseconds rounded to seconds, half away from zero, as Go prints them: `72h3m0s`.
pub(crate) fn seconds_text(nanos: i64) -> String {
    const SECOND: i64 = 1_000_000_000;
    let rest = nanos % SECOND;
    let down = nanos - rest;
    let rounded = match rest.abs() * 2 {
        twice if twice < SECOND => down,
        _ => down.saturating_add(SECOND * nanos.signum()),
    };
    if rounded == i64::MAX || rounded == i64::MIN {
        // What would round beyond the largest duration is shown in full.
        let (seconds, fraction) =
            (rounded.unsigned_abs() / 1_000_000_000, rounded.unsigned_abs() % 1_000_000_000);
        return clock(rounded < 0, seconds, &format!(".{fraction:09}"));
    }
    if rounded == 0 {
        return "0s".to_owned();
    }
    clock(rounded < 0, rounded.unsigned_abs() / 1_000_000_000, "")
}

fn clock(negative: bool, seconds: u64, fraction: &str) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let sign = if negative { "-" } else { "" };
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}{fraction}s"),
        (0, _) => format!("{sign}{minutes}m{seconds}{fraction}s"),
        _ => format!("{sign}{hours}h{minutes}m{seconds}{fraction}s"),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("0", Some(0))]
    #[case("-1.5h", Some(-5_400_000_000_000))]
    #[case("1h2m3.004s", Some(3_723_004_000_000))]
    #[case("9223372036854775807ns", Some(i64::MAX))]
    #[case("-9223372036854775808ns", Some(i64::MIN))]
    #[case("9223372036854775808ns", None)]
    #[case(".s", None)]
    #[case("1", None)]
    #[case("1d", None)]
    #[case("", None)]
    fn durations(#[case] text: &str, #[case] nanos: Option<i64>) {
        assert_eq!(parse(text), nanos);
    }

    #[rstest]
    #[case(0, "0s")]
    #[case(499_999_999, "0s")]
    #[case(-500_000_000, "-1s")]
    #[case(3_661_000_000_000, "1h1m1s")]
    #[case(i64::MAX, "2562047h47m16.854775807s")]
    #[case(i64::MIN, "-2562047h47m16.854775808s")]
    fn printed(#[case] nanos: i64, #[case] text: &str) {
        assert_eq!(seconds_text(nanos), text);
    }
}
