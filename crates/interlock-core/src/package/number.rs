//! Numbers as Go reads them: `strconv.ParseInt(s, 10, 64)`, `ParseFloat(s, 64)`, `ParseBool(s)`,
//! with Go's error texts.

use thiserror::Error;

/// Why a text is no number; the texts are Go's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("strconv.{function}: parsing {text:?}: {why}")]
pub struct ParseNumberError {
    function: &'static str,
    text: String,
    why: &'static str,
}

const SYNTAX: &str = "invalid syntax";
const RANGE: &str = "value out of range";

/// Base 10 with an optional sign, 64 bits.
pub fn parse_int(text: &str) -> Result<i64, ParseNumberError> {
    let fail = |why| ParseNumberError { function: "ParseInt", text: text.to_owned(), why };
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(fail(SYNTAX));
    }
    text.parse().map_err(|_| fail(RANGE))
}

/// One of the twelve words.
pub fn parse_bool(text: &str) -> Result<bool, ParseNumberError> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(ParseNumberError { function: "ParseBool", text: text.to_owned(), why: SYNTAX }),
    }
}

/// Decimal or hexadecimal floating point, infinity, NaN; underscores between digits.
pub fn parse_float(text: &str) -> Result<f64, ParseNumberError> {
    let fail = |why| ParseNumberError { function: "ParseFloat", text: text.to_owned(), why };
    let (sign, rest) = match text.as_bytes().first() {
        Some(b'-') => (-1.0, &text[1..]),
        Some(b'+') => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if rest.eq_ignore_ascii_case("inf") || rest.eq_ignore_ascii_case("infinity") {
        return Ok(sign * f64::INFINITY);
    }
    if text.eq_ignore_ascii_case("nan") {
        return Ok(f64::NAN);
    }
    let magnitude = match rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
        Some(hex) => hexadecimal(hex),
        None => decimal(rest),
    };
    match magnitude {
        None => Err(fail(SYNTAX)),
        Some(value) if value.is_infinite() => Err(fail(RANGE)),
        Some(value) => Ok(sign * value),
    }
}

/// Splits `digits[.digits][(e|p)exponent]`; underscores must be between digits, or between the
/// prefix and a digit where there is a prefix.
fn parts(text: &str, prefixed: bool, marks: [char; 2]) -> Option<(&str, &str, Option<&str>)> {
    let (mantissa, exponent) = match text.split_once(marks) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = exponent.map(|e| e.strip_prefix(['+', '-']).unwrap_or(e));
    let between = |s: &str, after_prefix: bool| {
        let s = if after_prefix { s.strip_prefix('_').unwrap_or(s) } else { s };
        !s.starts_with('_') && !s.ends_with('_') && !s.contains("__")
    };
    let separated =
        between(whole, prefixed) && between(fraction, false) && between(digits.unwrap_or(""), false);
    let decimal_exponent = digits.is_none_or(|d| {
        d.bytes().any(|b| b.is_ascii_digit()) && d.bytes().all(|b| b.is_ascii_digit() || b == b'_')
    });
    (separated && decimal_exponent).then_some((whole, fraction, exponent))
}

fn decimal(text: &str) -> Option<f64> {
    let (whole, fraction, _) = parts(text, false, ['e', 'E'])?;
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    text.replace('_', "").parse().ok()
}

fn hexadecimal(text: &str) -> Option<f64> {
    let (whole, fraction, exponent) = parts(text, true, ['p', 'P'])?;
    let exponent = exponent?.replace('_', "");
    let exponent: i64 = match exponent.parse() {
        Ok(exponent) => exponent,
        Err(_) if exponent.starts_with('-') => return Some(0.0),
        Err(_) => return Some(f64::INFINITY),
    };
    let mut mantissa = 0_u64;
    let mut shift = 0_i64;
    let mut seen = false;
    for (digit, after_point) in whole
        .chars()
        .map(|c| (c, false))
        .chain(fraction.chars().map(|c| (c, true)))
        .filter(|(c, _)| *c != '_')
    {
        let value = u64::from(digit.to_digit(16)?);
        seen = true;
        if mantissa >> 58 == 0 {
            mantissa = mantissa << 4 | value;
            shift -= if after_point { 4 } else { 0 };
        } else if !after_point {
            shift += 4;
        }
    }
    if !seen {
        return None;
    }
    if mantissa == 0 {
        return Some(0.0);
    }
    let exponent = exponent.saturating_add(shift).clamp(-2000, 2000) as i32;
    // In two halves, as the power alone may not be a finite number.
    let half = exponent / 2;
    Some(mantissa as f64 * 2_f64.powi(half) * 2_f64.powi(exponent - half))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Accepted and rejected as by Go 1.26.
    #[rstest]
    #[case("1", "")]
    #[case("+1", "")]
    #[case("-1", "")]
    #[case("9223372036854775807", "")]
    #[case("9223372036854775808", "value out of range")]
    #[case(" 1", "invalid syntax")]
    #[case("1_000", "invalid syntax")]
    #[case("0x10", "invalid syntax")]
    #[case("", "invalid syntax")]
    #[case("1e3", "invalid syntax")]
    #[case("--1", "invalid syntax")]
    #[case("+", "invalid syntax")]
    fn integers(#[case] text: &str, #[case] why: &str) {
        let got = parse_int(text).err().map(|e| e.to_string()).unwrap_or_default();
        let want =
            if why.is_empty() { String::new() } else { format!("strconv.ParseInt: parsing {text:?}: {why}") };
        assert_eq!(got, want);
    }

    /// Accepted and rejected as by Go 1.26.
    #[rstest]
    fn floats_that_go_reads(
        #[values(
            "1",
            "+1.5",
            "-1e3",
            ".5",
            "5.",
            "1_000",
            "0x1p-2",
            "0x1.8p1",
            "inf",
            "-Infinity",
            "+INF",
            "nan",
            "NaN",
            "1e-999",
            "1_0.5_0e+1_0",
            "0x_1p0",
            "0X1P2",
            "0_1",
            "0x1.p1"
        )]
        text: &str,
    ) {
        assert!(parse_float(text).is_ok(), "{text}");
    }

    #[rstest]
    fn floats_that_go_refuses(
        #[values(
            "0x1", "+nan", "", "e5", ".", "1e", "0x", "0x.p1", "_1", "1__0", "1_", "infi", "1e+", "0b1",
            "0o1", "1f", "1d", "0x1p", "1._5", "1e5.5", "1e0x1", "é"
        )]
        text: &str,
    ) {
        let error = parse_float(text).unwrap_err().to_string();
        assert_eq!(error, format!("strconv.ParseFloat: parsing {text:?}: invalid syntax"));
    }

    #[rstest]
    fn floats_out_of_range(#[values("1e999", "-1e999", "0x1p99999")] text: &str) {
        let error = parse_float(text).unwrap_err().to_string();
        assert_eq!(error, format!("strconv.ParseFloat: parsing {text:?}: value out of range"));
    }

    #[rstest]
    #[case("0x1p-2", 0.25)]
    #[case("0x1.8p1", 3.0)]
    #[case("1_000.5", 1000.5)]
    #[case("-0x_Fp0", -15.0)]
    #[case("0x1p-1074", 5e-324)]
    #[case("0x123456789abcdef01p0", 20_988_295_479_420_645_121.0)]
    fn values(#[case] text: &str, #[case] value: f64) {
        assert_eq!(parse_float(text).unwrap(), value);
    }

    #[rstest]
    #[case("1", Some(true))]
    #[case("True", Some(true))]
    #[case("f", Some(false))]
    #[case("yes", None)]
    #[case("tRUE", None)]
    #[case(" true", None)]
    fn booleans(#[case] text: &str, #[case] value: Option<bool>) {
        assert_eq!(parse_bool(text).ok(), value);
    }
}
