//! Number literals of the template language, in all of Go's notations.

use super::ast::Number;
use super::go::number::{parse_float, parse_int, parse_uint};
use super::go::quote::{quoted, unquote_char};
use super::token::TokenKind;

/// Reads a number token; the error is Go's text.
pub(super) fn number(text: &str, kind: TokenKind) -> Result<Number, String> {
    match kind {
        TokenKind::CharConstant => char_constant(text),
        TokenKind::Complex => Err(format!("complex numbers are not supported: {text}")),
        _ => plain(text),
    }
}

fn char_constant(text: &str) -> Result<Number, String> {
    let inner = text.get(1..).unwrap_or_default();
    let Some((value, tail)) = unquote_char(inner) else {
        return Err("invalid syntax".to_owned());
    };
    if tail != "'" {
        return Err(format!("malformed character constant: {text}"));
    }
    Ok(Number { literal: text.to_owned(), int: Some(i64::from(value)), float: Some(f64::from(value)) })
}

fn plain(text: &str) -> Result<Number, String> {
    let shown = || quoted(text);
    let mut number = Number { literal: text.to_owned(), int: None, float: None };
    if let Some(imaginary) = text.strip_suffix('i') {
        return match parse_float(imaginary) {
            // An imaginary zero is an ordinary zero in Go, but prints as a complex number.
            Ok(_) => Err(format!("complex numbers are not supported: {text}")),
            Err(_) => Err(format!("illegal number syntax: {}", shown())),
        };
    }
    if let Ok(int) = parse_int(text, 0) {
        number.int = Some(int);
        number.float = Some(int as f64);
    } else if let Ok(uint) = parse_uint(text, 0) {
        number.float = Some(uint as f64);
    } else if let Ok(float) = parse_float(text) {
        if !text.contains(['.', 'e', 'E', 'p', 'P']) {
            return Err(format!("integer overflow: {}", shown()));
        }
        number.float = Some(float);
        if float.fract() == 0.0 && float.abs() < 9.2e18 {
            number.int = Some(float as i64);
        }
    } else {
        return Err(format!("illegal number syntax: {}", shown()));
    }
    Ok(number)
}

/// Go's type of a constant without a wanted type.
pub(super) enum Ideal {
    Int(i64),
    Float(f64),
    Overflow,
}

/// The type of a number follows from its syntax.
pub(super) fn ideal(number: &Number) -> Ideal {
    let text = number.literal.as_str();
    let is_char = text.starts_with('\'');
    let is_hex_int = (text.starts_with("0x") || text.starts_with("0X")) && !text.contains(['p', 'P']);
    match number {
        Number { float: Some(float), .. }
            if !is_char && !is_hex_int && text.contains(['.', 'e', 'E', 'p', 'P']) =>
        {
            Ideal::Float(*float)
        }
        Number { int: Some(int), .. } => Ideal::Int(*int),
        _ => Ideal::Overflow,
    }
}
