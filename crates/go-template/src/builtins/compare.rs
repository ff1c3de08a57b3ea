//! `eq ne lt le gt ge`: Go's rules for its basic kinds.

use crate::dynamic::Val;
use crate::error::Failure;
use crate::limits::Meter;
use crate::print;

#[derive(PartialEq, Eq, Clone, Copy)]
enum Kind {
    Bool,
    Int,
    Uint,
    Float,
    Str,
    Other,
}

fn kind(value: &Val) -> Kind {
    match value {
        Val::Bool(_) => Kind::Bool,
        Val::Int(_) | Val::Int64(_) => Kind::Int,
        Val::Byte(_) => Kind::Uint,
        Val::Float(_) => Kind::Float,
        Val::Str(_) => Kind::Str,
        _ => Kind::Other,
    }
}

fn bad_type() -> Failure {
    Failure::new("invalid type for comparison")
}

fn incompatible(a: &Val, b: &Val) -> Failure {
    Failure::new(format!("incompatible types for comparison: {} and {}", a.type_name(), b.type_name()))
}

/// `eq a b c`: whether `a` equals one of the others.
pub(super) fn eq(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let Some((first, others @ [_, ..])) = args.split_first() else {
        return Err(Failure::new("missing argument for comparison"));
    };
    for other in others {
        if equal(meter, first, other)? {
            return Ok(Val::Bool(true));
        }
    }
    Ok(Val::Bool(false))
}

pub(super) fn equal(meter: &Meter, a: &Val, b: &Val) -> Result<bool, Failure> {
    match (a, b) {
        (Val::Bool(a), Val::Bool(b)) => Ok(a == b),
        (Val::Float(a), Val::Float(b)) => Ok(a == b),
        (Val::Str(a), Val::Str(b)) => Ok(a == b),
        (Val::Nil, b) => Ok(matches!(b, Val::Nil)),
        (_, Val::Nil) => Ok(false),
        (Val::Version(a), Val::Version(b)) => Ok(std::rc::Rc::ptr_eq(a, b)),
        (Val::Time(a), Val::Time(b)) => Ok(a == b),
        (Val::Certificate(a), Val::Certificate(b)) => Ok(a == b),
        (a, b) => match (a.integer(), b.integer()) {
            (Some(a), Some(b)) => Ok(a == b),
            _ if kind(a) != kind(b) => Err(incompatible(a, b)),
            _ => Err(not_comparable(meter, a, b)?),
        },
    }
}

fn not_comparable(meter: &Meter, a: &Val, b: &Val) -> Result<Failure, Failure> {
    let shown = |value: &Val, verb: char| -> Result<String, Failure> {
        Ok(String::from_utf8_lossy(&print::verb(meter, value, verb)?).into_owned())
    };
    if a.kind_name() == b.kind_name() {
        return Ok(Failure::new(format!("non-comparable type {}: {}", shown(b, 's')?, b.type_name())));
    }
    Ok(Failure::new(format!(
        "non-comparable types {}: {}, {}: {}",
        shown(a, 's')?,
        a.type_name(),
        b.type_name(),
        shown(b, 'v')?
    )))
}

pub(super) fn less(a: &Val, b: &Val) -> Result<bool, Failure> {
    if kind(a) == Kind::Other || kind(b) == Kind::Other {
        return Err(bad_type());
    }
    match (a, b) {
        (Val::Float(a), Val::Float(b)) => Ok(a < b),
        (Val::Str(a), Val::Str(b)) => Ok(a < b),
        (Val::Bool(_), Val::Bool(_)) => Err(bad_type()),
        (a, b) => match (a.integer(), b.integer()) {
            (Some(a), Some(b)) => Ok(a < b),
            _ => Err(incompatible(a, b)),
        },
    }
}

pub(super) fn less_or_equal(meter: &Meter, a: &Val, b: &Val) -> Result<bool, Failure> {
    Ok(less(a, b)? || equal(meter, a, b)?)
}
