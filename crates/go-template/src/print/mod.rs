//! Go's `fmt`: `Sprint`, `Sprintf`, `Sprintln` and the verbs.

mod format;
mod verbs;

pub(super) use format::sprintf;
pub(super) use verbs::ESCAPED;
use verbs::Printer;

use super::dynamic::Val;
use super::error::Failure;
use super::limits::Meter;

/// `fmt.Sprint`: spaces between operands if neither is a string.
pub(super) fn sprint(meter: &Meter, args: &[Val]) -> Result<Vec<u8>, Failure> {
    let mut printer = Printer::new(meter);
    let mut previous_is_text = false;
    for (i, arg) in args.iter().enumerate() {
        let is_text = matches!(arg, Val::Str(_));
        if i > 0 && !is_text && !previous_is_text {
            printer.push(b" ")?;
        }
        printer.arg(arg, 'v')?;
        previous_is_text = is_text;
    }
    Ok(printer.out)
}

/// `fmt.Sprintln`: spaces between all operands, and a line break.
pub(super) fn sprintln(meter: &Meter, args: &[Val]) -> Result<Vec<u8>, Failure> {
    let mut printer = Printer::new(meter);
    for (i, arg) in args.iter().enumerate() {
        if i > 0 {
            printer.push(b" ")?;
        }
        printer.arg(arg, 'v')?;
    }
    printer.push(b"\n")?;
    Ok(printer.out)
}

/// `fmt.Sprintf("%v", value)`.
pub(super) fn sprintv(meter: &Meter, value: &Val) -> Result<Vec<u8>, Failure> {
    verb(meter, value, 'v')
}

/// A value under one verb without flags.
pub(super) fn verb(meter: &Meter, value: &Val, verb: char) -> Result<Vec<u8>, Failure> {
    let mut printer = Printer::new(meter);
    printer.arg(value, verb)?;
    Ok(printer.out)
}
