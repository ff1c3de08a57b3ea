//! Numbers: every argument is first converted to an `int64` (or a `float64`).

use super::coerce::{to_float64, to_int64};
use crate::dynamic::{Elem, List, Val};
use crate::error::Failure;
use crate::function::Type::{Any, Float, Int, Str};
use crate::function::{Function, arg, fixed, variadic};
use crate::go::number::{NumberError, parse_int};
use crate::limits::Meter;
use crate::print;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("atoi", &[Str], atoi),
    fixed("int", &[Any], |_, args| Ok(Val::Int(to_int64(&args[0])))),
    fixed("int64", &[Any], |_, args| Ok(Val::Int64(to_int64(&args[0])))),
    fixed("float64", &[Any], |_, args| Ok(Val::Float(to_float64(&args[0])))),
    fixed("toDecimal", &[Any], to_decimal),
    fixed("until", &[Int], until),
    fixed("untilStep", &[Int, Int, Int], until_step),
    fixed("add1", &[Any], |_, args| Ok(Val::Int64(to_int64(&args[0]).wrapping_add(1)))),
    variadic("add", &[], Any, |_, args| Ok(Val::Int64(args.iter().map(to_int64).fold(0, i64::wrapping_add)))),
    fixed("sub", &[Any, Any], |_, args| Ok(Val::Int64(to_int64(&args[0]).wrapping_sub(to_int64(&args[1]))))),
    fixed("div", &[Any, Any], |_, args| divided(args, i64::wrapping_div)),
    fixed("mod", &[Any, Any], |_, args| divided(args, i64::wrapping_rem)),
    variadic("mul", &[Any], Any, |_, args| {
        Ok(Val::Int64(args.iter().map(to_int64).fold(1, i64::wrapping_mul)))
    }),
    variadic("max", &[Any], Any, max),
    variadic("biggest", &[Any], Any, max),
    variadic("min", &[Any], Any, |_, args| Ok(Val::Int64(args.iter().map(to_int64).min().unwrap_or(0)))),
    fixed("ceil", &[Any], |_, args| Ok(Val::Float(to_float64(&args[0]).ceil()))),
    fixed("floor", &[Any], |_, args| Ok(Val::Float(to_float64(&args[0]).floor()))),
    variadic("round", &[Any, Int], Float, round),
];

/// A text that overflows becomes the largest integer, an invalid one 0.
fn atoi(_: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let text = arg::chars(args, 0);
    Ok(Val::Int(match parse_int(&text, 10) {
        Ok(value) => value,
        Err(NumberError::Range) if text.starts_with('-') => i64::MIN,
        Err(NumberError::Range) => i64::MAX,
        Err(NumberError::Syntax) => 0,
    }))
}

/// Reads the digits as octal.
fn to_decimal(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let text = print::sprint(meter, args)?;
    Ok(Val::Int64(std::str::from_utf8(&text).ok().and_then(|text| parse_int(text, 8).ok()).unwrap_or(0)))
}

fn until(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let count = arg::int(args, 0);
    steps(meter, 0, count, if count < 0 { -1 } else { 1 })
}

fn until_step(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    steps(meter, arg::int(args, 0), arg::int(args, 1), arg::int(args, 2))
}

fn steps(meter: &Meter, start: i64, stop: i64, step: i64) -> Result<Val, Failure> {
    let mut items = Vec::new();
    let mut next = Some(start);
    // A step away from the end gives an empty list.
    if step != 0 && (stop < start) == (step < 0) {
        while let Some(i) = next.filter(|&i| if step < 0 { i > stop } else { i < stop }) {
            meter.items(1)?;
            items.push(Val::Int(i));
            next = i.checked_add(step);
        }
    }
    Ok(Val::List(List::new(Elem::Int, items)))
}

fn divided(args: &[Val], divide: fn(i64, i64) -> i64) -> Result<Val, Failure> {
    match to_int64(&args[1]) {
        0 => Err(Failure::new("runtime error: integer divide by zero")),
        divisor => Ok(Val::Int64(divide(to_int64(&args[0]), divisor))),
    }
}

fn max(_: &Meter, args: &[Val]) -> Result<Val, Failure> {
    Ok(Val::Int64(args.iter().map(to_int64).max().unwrap_or(0)))
}

fn round(_: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let threshold = arg::float(args, 2).unwrap_or(0.5);
    let power = 10f64.powf(arg::int(args, 1) as f64);
    let digit = power * to_float64(&args[0]);
    let rounded = if digit.fract() >= threshold { digit.ceil() } else { digit.floor() };
    Ok(Val::Float(rounded / power))
}
