//! Sprig's conversions of any value to a number, a text or a list of texts, and its `empty`.

use crate::dynamic::{Elem, List, Val};
use crate::error::Failure;
use crate::go::number::{parse_float, parse_int};
use crate::limits::Meter;
use crate::print;

/// `toInt64`: texts in base 10, fractions cut, everything else 0.
pub(super) fn to_int64(value: &Val) -> i64 {
    match value {
        Val::Str(text) => {
            std::str::from_utf8(text).ok().and_then(|text| parse_int(text, 10).ok()).unwrap_or(0)
        }
        Val::Float(value) => float_to_int(*value),
        Val::Bool(value) => i64::from(*value),
        value => value.integer().unwrap_or(0),
    }
}

/// Go's conversion on amd64: an overflow becomes the smallest integer.
fn float_to_int(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

/// `toFloat64`.
pub(super) fn to_float64(value: &Val) -> f64 {
    match value {
        Val::Str(text) => {
            std::str::from_utf8(text).ok().and_then(|text| parse_float(text).ok()).unwrap_or(0.0)
        }
        Val::Float(value) => *value,
        Val::Bool(value) => f64::from(u8::from(*value)),
        value => value.integer().unwrap_or(0) as f64,
    }
}

/// `strval`.
pub(super) fn text(meter: &Meter, value: &Val) -> Result<Vec<u8>, Failure> {
    match value {
        Val::Str(text) => {
            meter.bytes(text.len())?;
            Ok(text.to_vec())
        }
        value => print::sprintv(meter, value),
    }
}

/// `strslice`: the texts of a list without its nils, or of one value.
pub(super) fn texts(meter: &Meter, value: &Val) -> Result<Vec<Vec<u8>>, Failure> {
    match value {
        Val::Nil => Ok(Vec::new()),
        Val::List(list) => {
            meter.items(list.items().len().saturating_mul(2))?;
            list.items()
                .iter()
                .filter(|item| !matches!(item, Val::Nil))
                .map(|item| text(meter, item))
                .collect()
        }
        value => Ok(vec![text(meter, value)?]),
    }
}

/// A `[]string`.
pub(super) fn string_list(items: Vec<Vec<u8>>) -> Val {
    Val::List(List::new(Elem::Str, items.into_iter().map(Val::str).collect()))
}

/// `empty`: the zero value of its type.
pub(super) fn is_empty(value: &Val) -> bool {
    !value.truth()
}

/// Go's error if a function dereferences a nil.
pub(super) fn nil_dereference() -> Failure {
    Failure::new("runtime error: invalid memory address or nil pointer dereference")
}
