//! `strconv.FormatFloat` for 64 bits.

/// Decimal digits without point, and the position of the point: 0.DDDD times ten to `point`.
struct Digits {
    text: String,
    point: i32,
}

/// Upper bound of a float's significant digits, before or behind its point; the standard library panics
/// above 65,535.
const MAX_DIGITS: usize = 1_100;

/// Formats as Go does: verb one of `b e E f g G x X`, `None` for the shortest text that reads back.
pub fn format_float(value: f64, verb: char, precision: Option<usize>) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let magnitude = value.abs();
    let body = match verb {
        'b' => binary_form(magnitude),
        'x' | 'X' => hex_form(magnitude, verb, precision),
        'e' | 'E' => exponent_form(&digits(magnitude, precision.map(|p| p + 1)), verb, precision),
        'f' => match precision {
            Some(precision) => {
                let exact = precision.min(MAX_DIGITS);
                let zeros = precision - exact;
                format!("{magnitude:.exact$}{}", "0".repeat(zeros))
            }
            None => format!("{magnitude}"),
        },
        _ => general_form(magnitude, verb, precision),
    };
    format!("{sign}{body}")
}

/// Mantissa and exponent of two: the value is mantissa times two to the exponent.
fn binary_parts(magnitude: f64) -> (u64, i32) {
    const FRACTION: u32 = 52;
    let bits = magnitude.to_bits();
    let fraction = bits & ((1 << FRACTION) - 1);
    // Eleven bits always fit.
    let biased = i32::try_from(bits >> FRACTION & 0x7ff).unwrap_or(0);
    if biased == 0 { (fraction, -1074) } else { (fraction | 1 << FRACTION, biased - 1075) }
}

fn binary_form(magnitude: f64) -> String {
    let (mantissa, exponent) = binary_parts(magnitude);
    format!("{mantissa}p{exponent:+}")
}

/// `0x1.8p+00`: the first digit is one, or zero for zero.
fn hex_form(magnitude: f64, verb: char, precision: Option<usize>) -> String {
    let (mut mantissa, mut exponent) = binary_parts(magnitude);
    if mantissa == 0 {
        exponent = 0;
    } else {
        // One digit before the point, and 15 behind it.
        let shift = mantissa.leading_zeros() - 3;
        mantissa <<= shift;
        exponent += 60 - i32::try_from(shift).unwrap_or(0);
    }
    if let Some(digits) = precision.filter(|&digits| digits < 15) {
        let dropped = 60 - 4 * digits;
        let half = 1u64 << (dropped - 1);
        let rest = mantissa & ((1 << dropped) - 1);
        mantissa >>= dropped;
        if rest > half || rest == half && mantissa & 1 == 1 {
            mantissa += 1;
        }
        mantissa <<= dropped;
        if mantissa >> 61 != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let mut fraction = format!("{:015x}", mantissa & ((1 << 60) - 1));
    match precision {
        None => fraction.truncate(fraction.trim_end_matches('0').len()),
        Some(precision) => {
            fraction.truncate(precision);
            fraction.push_str(&"0".repeat(precision.saturating_sub(15)));
        }
    }
    let point = if fraction.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    let text = format!("0x{}{point}{fraction}p{sign}{:02}", mantissa >> 60, exponent.unsigned_abs());
    if verb == 'X' { text.to_uppercase() } else { text }
}

/// What `%v` prints for a float64.
pub fn shortest(value: f64) -> String {
    format_float(value, 'g', None)
}

/// The number whose shortest text is that of the value rounded to 32 bits.
pub fn rounded_to_f32(value: f64) -> f64 {
    format!("{:e}", value as f32).parse().unwrap_or(value)
}

fn general_form(magnitude: f64, verb: char, precision: Option<usize>) -> String {
    let wanted = precision.map(|p| p.max(1));
    let mut digits = digits(magnitude, wanted);
    if wanted.is_some() {
        // For Go, trailing zeros are no digits once it has rounded.
        let kept = digits.text.trim_end_matches('0').len();
        digits.text.truncate(kept);
    }
    let count = i32::try_from(digits.text.len()).unwrap_or(i32::MAX);
    let mut limit = wanted.map_or(6, |p| i32::try_from(p).unwrap_or(i32::MAX));
    if wanted.is_some() && limit > count && count >= digits.point {
        limit = count;
    }
    let exponent = digits.point - 1;
    if exponent < -4 || exponent >= limit {
        let verb = if verb == 'G' { 'E' } else { 'e' };
        return exponent_form(&digits, verb, None);
    }
    plain_form(&digits)
}

/// At most `count` significant digits, or the shortest that read back.
fn digits(magnitude: f64, count: Option<usize>) -> Digits {
    if magnitude == 0.0 {
        return Digits { text: String::new(), point: 0 };
    }
    let text = match count {
        Some(count) => format!("{magnitude:.*e}", count.saturating_sub(1).min(MAX_DIGITS)),
        None => format!("{magnitude:e}"),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    Digits { text: mantissa.replace('.', ""), point: exponent.parse::<i32>().unwrap_or(0) + 1 }
}

fn exponent_form(digits: &Digits, verb: char, precision: Option<usize>) -> String {
    let mut text = digits.text.clone();
    if text.is_empty() {
        text.push('0');
    }
    let exponent = if digits.text.is_empty() { 0 } else { digits.point - 1 };
    let wanted = precision.map_or(text.len(), |p| p + 1);
    while text.len() < wanted {
        text.push('0');
    }
    if text.len() > 1 {
        text.insert(1, '.');
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{text}{verb}{sign}{:02}", exponent.unsigned_abs())
}

fn plain_form(digits: &Digits) -> String {
    if digits.text.is_empty() {
        return "0".to_owned();
    }
    let length = digits.text.len();
    match usize::try_from(digits.point) {
        Ok(0) | Err(_) => format!("0.{}{}", "0".repeat(digits.point.unsigned_abs() as usize), digits.text),
        Ok(point) if point >= length => format!("{}{}", digits.text, "0".repeat(point - length)),
        Ok(point) => format!("{}.{}", &digits.text[..point], &digits.text[point..]),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(1e6, "1e+06")]
    #[case(100_000.0, "100000")]
    #[case(123_456_789.0, "1.23456789e+08")]
    #[case(0.0001, "0.0001")]
    #[case(0.00001, "1e-05")]
    #[case(0.0, "0")]
    #[case(-0.0, "-0")]
    #[case(1.5, "1.5")]
    #[case(1e21, "1e+21")]
    #[case(5e-324, "5e-324")]
    #[case(f64::INFINITY, "+Inf")]
    #[case(f64::NAN, "NaN")]
    fn shortest_form(#[case] value: f64, #[case] want: &str) {
        assert_eq!(shortest(value), want);
    }

    #[rstest]
    #[case(1.23456, 'f', Some(2), "1.23")]
    #[case(2.0, 'f', None, "2")]
    #[case(1234.5678, 'e', Some(3), "1.235e+03")]
    #[case(0.0, 'e', Some(2), "0.00e+00")]
    #[case(1234.5678, 'g', Some(3), "1.23e+03")]
    #[case(100.0, 'g', Some(3), "100")]
    #[case(1e-7, 'G', None, "1E-07")]
    #[case(1234567.0, 'g', Some(10), "1234567")]
    #[case(1.5, 'g', Some(1_000_000), "1.5")]
    fn with_precision(
        #[case] value: f64,
        #[case] verb: char,
        #[case] precision: Option<usize>,
        #[case] want: &str,
    ) {
        assert_eq!(format_float(value, verb, precision), want);
    }

    #[rstest]
    #[case('f')]
    #[case('e')]
    #[case('x')]
    fn a_precision_can_be_a_million(#[case] verb: char) {
        let text = format_float(5e-324, verb, Some(1_000_000));
        assert!((1_000_000..1_000_020).contains(&text.len()), "{}", text.len());
    }
}
