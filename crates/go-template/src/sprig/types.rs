//! Defaults, and types of values.

use super::coerce::is_empty;
use crate::dynamic::Val;
use crate::error::Failure;
use crate::function::Type::{Any, Bool, Str};
use crate::function::{Function, arg, fixed, variadic};
use crate::limits::{LimitReached, MAX_VALUE_DEPTH, Meter};

pub(super) const FUNCTIONS: &[Function] = &[
    variadic("default", &[Any], Any, |_, args| {
        let given = args.get(1).filter(|given| !is_empty(given));
        Ok(given.unwrap_or(&args[0]).clone())
    }),
    fixed("empty", &[Any], |_, args| Ok(Val::Bool(is_empty(&args[0])))),
    variadic("coalesce", &[], Any, |_, args| {
        Ok(args.iter().find(|value| !is_empty(value)).cloned().unwrap_or_default())
    }),
    fixed("ternary", &[Any, Any, Bool], |_, args| Ok(args[usize::from(!args[2].truth())].clone())),
    fixed("typeOf", &[Any], |_, args| Ok(Val::str(args[0].type_name()))),
    fixed("typeIs", &[Str, Any], |_, args| {
        Ok(Val::Bool(arg::text(args, 0) == args[1].type_name().as_bytes()))
    }),
    fixed("typeIsLike", &[Str, Any], |_, args| {
        let (wanted, actual) = (arg::chars(args, 0), args[1].type_name());
        Ok(Val::Bool(wanted == actual || format!("*{wanted}") == actual))
    }),
    fixed("kindOf", &[Any], |_, args| Ok(Val::str(args[0].kind_name()))),
    fixed("kindIs", &[Str, Any], |_, args| {
        Ok(Val::Bool(arg::text(args, 0) == args[1].kind_name().as_bytes()))
    }),
    fixed("deepEqual", &[Any, Any], |meter, args| Ok(Val::Bool(deep_equal(meter, &args[0], &args[1])?))),
    fixed("fail", &[Str], |_, args| Err(Failure::new(arg::chars(args, 0)))),
];

/// `reflect.DeepEqual`: types must be equal, too, so `int` 1 is not `int64` 1.
pub(super) fn deep_equal(meter: &Meter, a: &Val, b: &Val) -> Result<bool, Failure> {
    equal_within(meter, a, b, 0)
}

fn equal_within(meter: &Meter, a: &Val, b: &Val, depth: usize) -> Result<bool, Failure> {
    if depth > MAX_VALUE_DEPTH {
        return Err(LimitReached::ValueDepth.into());
    }
    meter.visit(1)?;
    Ok(match (a, b) {
        (Val::Nil, Val::Nil) => true,
        (Val::Bool(a), Val::Bool(b)) => a == b,
        (Val::Int(a), Val::Int(b)) | (Val::Int64(a), Val::Int64(b)) => a == b,
        (Val::Byte(a), Val::Byte(b)) => a == b,
        (Val::Float(a), Val::Float(b)) => a == b,
        (Val::Str(a), Val::Str(b)) => {
            meter.read(if a.len() == b.len() { a.len() } else { 0 })?;
            a == b
        }
        (Val::List(a), Val::List(b)) => {
            if a.elem != b.elem || a.items().len() != b.items().len() {
                return Ok(false);
            }
            for (a, b) in a.items().iter().zip(b.items()) {
                if !equal_within(meter, a, b, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Val::Map(a), Val::Map(b)) => {
            if a.elem != b.elem || a.len() != b.len() {
                return Ok(false);
            }
            meter.visit(a.len().saturating_mul(2))?;
            for ((key, a), (other_key, b)) in a.entries().iter().zip(b.entries()) {
                if *key != other_key || !equal_within(meter, a, &b, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Val::Version(a), Val::Version(b)) => a == b,
        (Val::Time(a), Val::Time(b)) => a == b,
        (Val::Certificate(a), Val::Certificate(b)) => a == b,
        _ => false,
    })
}
