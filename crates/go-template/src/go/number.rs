//! `strconv.ParseInt`, `ParseUint` and `ParseFloat` for 64 bits.

/// Why a text is not a number, in Go's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// Not a number.
    #[error("invalid syntax")]
    Syntax,
    /// Does not fit 64 bits.
    #[error("value out of range")]
    Range,
}

/// `strconv.ParseUint(text, base, 64)`; base 0 reads prefixes and underscores.
pub fn parse_uint(text: &str, base: u32) -> Result<u64, NumberError> {
    let (digits, radix) = match base {
        0 => {
            if text.contains('_') && !underscores_separate_digits(text) {
                return Err(NumberError::Syntax);
            }
            split_prefix(text)
        }
        base => (text, base),
    };
    if digits.is_empty() {
        return Err(NumberError::Syntax);
    }
    let mut value: Option<u64> = Some(0);
    for c in digits.chars() {
        if c == '_' && base == 0 {
            continue;
        }
        let digit = c.to_digit(radix).ok_or(NumberError::Syntax)?;
        value = value
            .and_then(|value| value.checked_mul(u64::from(radix)))
            .and_then(|value| value.checked_add(u64::from(digit)));
    }
    value.ok_or(NumberError::Range)
}

fn split_prefix(text: &str) -> (&str, u32) {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'0') || bytes.len() == 1 {
        return (text, 10);
    }
    match bytes[1].to_ascii_lowercase() {
        b'x' if bytes.len() > 2 => (&text[2..], 16),
        b'o' if bytes.len() > 2 => (&text[2..], 8),
        b'b' if bytes.len() > 2 => (&text[2..], 2),
        _ => (&text[1..], 8),
    }
}

/// `strconv.ParseInt(text, base, 64)`.
pub fn parse_int(text: &str, base: u32) -> Result<i64, NumberError> {
    let (negative, digits) = split_sign(text);
    let value = parse_uint(digits, base)?;
    let signed = if negative { 0i64.checked_sub_unsigned(value) } else { i64::try_from(value).ok() };
    signed.ok_or(NumberError::Range)
}

fn split_sign(text: &str) -> (bool, &str) {
    match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    }
}

/// `strconv.ParseFloat(text, 64)`: decimal, hexadecimal with a binary exponent, infinity, NaN.
pub fn parse_float(text: &str) -> Result<f64, NumberError> {
    let (negative, unsigned) = split_sign(text);
    let sign = if negative { -1.0 } else { 1.0 };
    match unsigned.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => return Ok(sign * f64::INFINITY),
        "nan" if unsigned.len() == text.len() => return Ok(f64::NAN),
        _ => {}
    }
    if unsigned.contains('_') && !underscores_separate_digits(unsigned) {
        return Err(NumberError::Syntax);
    }
    let plain = unsigned.replace('_', "");
    let value = match plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        Some(hex) => parse_hex_float(hex)?,
        None => {
            if !is_decimal_float(&plain) {
                return Err(NumberError::Syntax);
            }
            plain.parse::<f64>().map_err(|_| NumberError::Syntax)?
        }
    };
    if value.is_infinite() { Err(NumberError::Range) } else { Ok(sign * value) }
}

fn is_decimal_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| {
            let (_, exponent) = split_sign(exponent);
            !exponent.is_empty() && digits(exponent)
        })
}

fn parse_hex_float(text: &str) -> Result<f64, NumberError> {
    let (mantissa, exponent) = text.split_once(['p', 'P']).ok_or(NumberError::Syntax)?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err(NumberError::Syntax);
    }
    let mut value: f64 = 0.0;
    for c in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(c.to_digit(16).ok_or(NumberError::Syntax)?);
    }
    let (negative, digits) = split_sign(exponent);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(NumberError::Syntax);
    }
    if value == 0.0 {
        return Ok(0.0);
    }
    // Beyond four digits, any other value is zero or infinite.
    let exponent = digits.parse::<i32>().unwrap_or(9999).min(9999);
    let exponent = if negative { -exponent } else { exponent };
    let shift = i32::try_from(fraction.len()).unwrap_or(9999).saturating_mul(4);
    // In two steps, so that a power of two that is itself out of range does not lose the value.
    let total = exponent.saturating_sub(shift);
    Ok(value * 2f64.powi(total / 2) * 2f64.powi(total - total / 2))
}

/// Go's rule: underscores are allowed between digits, or between a base prefix and a digit.
fn underscores_separate_digits(text: &str) -> bool {
    let (_, text) = split_sign(text);
    let bytes = text.as_bytes();
    let mut previous = b'^';
    let mut hex = false;
    let mut start = 0;
    if bytes.len() >= 2 && bytes[0] == b'0' {
        let prefix = bytes[1].to_ascii_lowercase();
        if matches!(prefix, b'b' | b'o' | b'x') {
            start = 2;
            previous = b'0';
            hex = prefix == b'x';
        }
    }
    for &byte in &bytes[start..] {
        if byte.is_ascii_digit() || hex && byte.is_ascii_hexdigit() {
            previous = b'0';
        } else if byte == b'_' {
            if previous != b'0' {
                return false;
            }
            previous = b'_';
        } else {
            if previous == b'_' {
                return false;
            }
            previous = b'!';
        }
    }
    previous != b'_'
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("0", 0, Ok(0))]
    #[case("0777", 0, Ok(511))]
    #[case("0o17", 0, Ok(15))]
    #[case("0b101", 0, Ok(5))]
    #[case("0xFf", 0, Ok(255))]
    #[case("1_000", 0, Ok(1000))]
    #[case("1__0", 0, Err(NumberError::Syntax))]
    #[case("_1", 0, Err(NumberError::Syntax))]
    #[case("1_000", 10, Err(NumberError::Syntax))]
    #[case("-12", 10, Ok(-12))]
    #[case("+12", 10, Ok(12))]
    #[case("-9223372036854775808", 10, Ok(i64::MIN))]
    #[case("9223372036854775808", 10, Err(NumberError::Range))]
    #[case("089", 0, Err(NumberError::Syntax))]
    #[case("", 10, Err(NumberError::Syntax))]
    #[case("0x", 0, Err(NumberError::Syntax))]
    fn integers(#[case] text: &str, #[case] base: u32, #[case] want: Result<i64, NumberError>) {
        assert_eq!(parse_int(text, base), want);
    }

    #[rstest]
    #[case("1e3", Ok(1000.0))]
    #[case(".5", Ok(0.5))]
    #[case("1.", Ok(1.0))]
    #[case(".", Err(NumberError::Syntax))]
    #[case("1e", Err(NumberError::Syntax))]
    #[case("1e400", Err(NumberError::Range))]
    #[case("0x1p-2", Ok(0.25))]
    #[case("0x1.8p1", Ok(3.0))]
    #[case("0x0p2082", Ok(0.0))]
    #[case("0x1", Err(NumberError::Syntax))]
    #[case("-Inf", Ok(f64::NEG_INFINITY))]
    #[case("1_0.5", Ok(10.5))]
    #[case("abc", Err(NumberError::Syntax))]
    fn floats(#[case] text: &str, #[case] want: Result<f64, NumberError>) {
        assert_eq!(parse_float(text), want);
    }
}
