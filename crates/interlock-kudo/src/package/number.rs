//! Numbers as Go reads them: `strconv.ParseInt(s, 10, 64)`, `ParseFloat(s, 64)`, `ParseBool(s)`,
//! with Go's error texts.

use go_template::go::number;
use go_template::go::number::NumberError;
use thiserror::Error;

/// Why a text is no number; the texts are Go's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("strconv.{function}: parsing {text:?}: {source}")]
pub struct ParseNumberError {
    function: &'static str,
    text: String,
    source: NumberError,
}

impl ParseNumberError {
    fn of(function: &'static str, text: &str, source: NumberError) -> Self {
        Self { function, text: text.to_owned(), source }
    }

    /// Whether it is a number that does not fit 64 bits.
    pub fn is_out_of_range(&self) -> bool {
        self.source == NumberError::Range
    }
}

/// Base 10 with an optional sign, 64 bits.
pub fn parse_int(text: &str) -> Result<i64, ParseNumberError> {
    number::parse_int(text, 10).map_err(|source| ParseNumberError::of("ParseInt", text, source))
}

/// One of the twelve words.
pub fn parse_bool(text: &str) -> Result<bool, ParseNumberError> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(ParseNumberError::of("ParseBool", text, NumberError::Syntax)),
    }
}

/// Decimal or hexadecimal floating point, infinity, NaN; underscores between digits.
pub fn parse_float(text: &str) -> Result<f64, ParseNumberError> {
    number::parse_float(text).map_err(|source| ParseNumberError::of("ParseFloat", text, source))
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
