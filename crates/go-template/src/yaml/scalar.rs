//! The type of a plain scalar: `resolve.go` of yaml.v2.

use crate::go::number::{parse_float, parse_int, parse_uint};
use crate::time::days_in;

/// A resolved scalar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    /// Too large for an `int64`.
    Uint(u64),
    Float(f64),
    Text,
}

/// Resolves an unquoted scalar without a tag.
pub(super) fn resolve(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Scalar::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    match text.as_bytes().first() {
        Some(b'.') => parse_float(text).map_or(Scalar::Text, Scalar::Float),
        Some(b'+' | b'-' | b'0'..=b'9') if !is_timestamp(text) => number(text),
        _ => Scalar::Text,
    }
}

fn number(text: &str) -> Scalar {
    let plain = text.replace('_', "");
    if let Ok(value) = parse_int(&plain, 0) {
        return Scalar::Int(value);
    }
    if let Ok(value) = parse_uint(&plain, 0) {
        return Scalar::Uint(value);
    }
    if is_yaml_float(&plain)
        && let Ok(value) = parse_float(&plain)
    {
        return Scalar::Float(value);
    }
    Scalar::Text
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`
fn is_yaml_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let whole = |text: &str| !text.is_empty() && digits(text);
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => whole(fraction),
        Some((integer, fraction)) => whole(integer) && digits(fraction),
        None => whole(mantissa),
    };
    mantissa_fits && exponent.is_none_or(|text| whole(text.strip_prefix(['-', '+']).unwrap_or(text)))
}

/// Whether Go considers the scalar a time, which it then keeps as its text.
pub(super) fn is_timestamp(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits != 4 || text.as_bytes().get(4) != Some(&b'-') {
        return false;
    }
    let date_end = text.find(['T', 't', ' ']).unwrap_or(text.len());
    let (date, time) = text.split_at(date_end);
    let parts: Vec<Option<i64>> = date.split('-').map(small).collect();
    let date_fits = match parts.as_slice() {
        [Some(year), Some(month), Some(day)] => {
            (1..=12).contains(month) && (1..=days_in(*year, *month)).contains(day)
        }
        _ => false,
    };
    date_fits && (time.is_empty() || is_time(time))
}

fn small(text: &str) -> Option<i64> {
    (!text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

/// `T15:4:5.9Z07:00`, or after a space without a zone.
fn is_time(text: &str) -> bool {
    let (mark, rest) = text.split_at(1);
    let clock = if mark == " " {
        rest
    } else if let Some(clock) = rest.strip_suffix('Z') {
        clock
    } else {
        let Some(at) = rest.rfind(['+', '-']) else { return false };
        let zone = &rest[at + 1..];
        let zone_fits = zone.len() == 5
            && zone.as_bytes()[2] == b':'
            && small(&zone[..2]).is_some_and(|hours| hours <= 24)
            && small(&zone[3..]).is_some_and(|minutes| minutes < 60);
        if !zone_fits {
            return false;
        }
        &rest[..at]
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let limits = [24, 60, 60];
    let parts: Vec<&str> = clock.split(':').collect();
    parts.len() == 3
        && parts
            .iter()
            .zip(limits)
            .all(|(part, limit)| part.len() <= 2 && small(part).is_some_and(|n| n < limit))
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("yes", Scalar::Bool(true))]
    #[case("n", Scalar::Bool(false))]
    #[case("", Scalar::Null)]
    #[case("0777", Scalar::Int(511))]
    #[case("0o17", Scalar::Int(15))]
    #[case("1_000", Scalar::Int(1000))]
    #[case("18446744073709551615", Scalar::Uint(u64::MAX))]
    #[case("1e3", Scalar::Float(1000.0))]
    #[case("-0b101", Scalar::Int(-5))]
    #[case("0x1F", Scalar::Int(31))]
    #[case("1.2.3", Scalar::Text)]
    #[case("089", Scalar::Float(89.0))]
    #[case("12:30:45", Scalar::Text)]
    #[case("2001-12-14", Scalar::Text)]
    #[case("-", Scalar::Text)]
    #[case(".5", Scalar::Float(0.5))]
    #[case(".", Scalar::Text)]
    #[case("<<", Scalar::Text)]
    fn resolves(#[case] text: &str, #[case] want: Scalar) {
        assert_eq!(resolve(text), want);
    }

    #[rstest]
    #[case("2001-12-14", true)]
    #[case("2001-1-4", true)]
    #[case("2001-13-14", false)]
    #[case("2001-02-30", false)]
    #[case("2001-12-14T21:59:43.10-05:00", true)]
    #[case("2001-12-14 21:59:43", true)]
    #[case("2001-12-14T21:59:43", false)]
    #[case("2001-12", false)]
    fn timestamps(#[case] text: &str, #[case] want: bool) {
        assert_eq!(is_timestamp(text), want);
    }
}
