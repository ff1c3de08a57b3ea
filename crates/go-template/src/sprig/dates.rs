//! Dates. `now` is what the program gives, and the local time zone is UTC, so that a template renders the same
//! text at any time on any machine.

use std::rc::Rc;

use crate::dynamic::Val;
use crate::error::Failure;
use crate::function::Type::{self, Any, Str};
use crate::function::{Function, arg, fixed};
use crate::go::duration;
use crate::limits::Meter;
use crate::time::{DATE, Time, parse, zone};

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("now", &[], |meter, _| Ok(Val::Time(Rc::new(now(meter)?)))),
    fixed("date", &[Str, Any], |meter, args| formatted(meter, arg::text(args, 0), &args[1], b"Local")),
    fixed("dateInZone", &[Str, Any, Str], in_zone),
    fixed("date_in_zone", &[Str, Any, Str], in_zone),
    fixed("htmlDate", &[Any], |meter, args| formatted(meter, DATE, &args[0], b"Local")),
    fixed("htmlDateInZone", &[Any, Str], |meter, args| formatted(meter, DATE, &args[0], arg::text(args, 1))),
    fixed("dateModify", &[Str, Type::Time], modified),
    fixed("date_modify", &[Str, Type::Time], modified),
    fixed("ago", &[Any], |meter, args| {
        Ok(Val::str(duration::seconds_text(now(meter)?.since(&moment(meter, &args[0])?))))
    }),
    fixed("toDate", &[Str, Str], to_date),
    fixed("unixEpoch", &[Type::Time], |_, args| Ok(Val::str(time(args, 0).second.to_string()))),
];

/// Methods of a time that take arguments.
pub(crate) const METHODS: &[Function] = &[
    fixed("Format", &[Type::Time, Str], |meter, args| text(meter, &time(args, 0), arg::text(args, 1))),
    fixed("Before", &[Type::Time, Type::Time], |_, args| {
        Ok(Val::Bool(nanos(&time(args, 0)) < nanos(&time(args, 1))))
    }),
    fixed("After", &[Type::Time, Type::Time], |_, args| {
        Ok(Val::Bool(nanos(&time(args, 0)) > nanos(&time(args, 1))))
    }),
    fixed("Equal", &[Type::Time, Type::Time], |_, args| {
        Ok(Val::Bool(nanos(&time(args, 0)) == nanos(&time(args, 1))))
    }),
];

fn nanos(time: &Time) -> (i64, u32) {
    (time.second, time.nano)
}

fn time(args: &[Val], at: usize) -> Rc<Time> {
    match args.get(at) {
        Some(Val::Time(time)) => time.clone(),
        _ => Rc::new(Time::zero()),
    }
}

fn now(meter: &Meter) -> Result<Time, Failure> {
    let now =
        meter.now().ok_or(Failure::NoGenerator("this rendering has no clock: pass the time as a value"))?;
    let nano = i64::from(now.subsec_nanosecond());
    Ok(Time::of_second(now.as_second()).plus(nano))
}

/// A moment of any value: what is neither a time nor an integer is now.
fn moment(meter: &Meter, value: &Val) -> Result<Time, Failure> {
    match value {
        Val::Time(time) => Ok(Time::clone(time)),
        Val::Int(second) | Val::Int64(second) => Ok(Time::of_second(*second)),
        _ => now(meter),
    }
}

fn in_zone(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    formatted(meter, arg::text(args, 0), &args[1], arg::text(args, 2))
}

fn formatted(meter: &Meter, layout: &[u8], date: &Val, name: &[u8]) -> Result<Val, Failure> {
    // A zone is read from the database each time.
    meter.read(8 << 10)?;
    text(meter, &moment(meter, date)?.within(zone(name)), layout)
}

fn text(meter: &Meter, time: &Time, layout: &[u8]) -> Result<Val, Failure> {
    meter.bytes(layout.len().saturating_mul(9))?;
    // Every byte may start one of thirty elements.
    meter.read(layout.len().saturating_mul(256))?;
    Ok(Val::str(time.format(layout)))
}

/// A duration that cannot be read changes nothing.
fn modified(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    meter.items(1)?;
    let time = time(args, 1);
    let duration = std::str::from_utf8(arg::text(args, 0)).ok().and_then(duration::parse);
    Ok(Val::Time(duration.map_or(time.clone(), |nanos| Rc::new(time.plus(nanos)))))
}

/// A text that does not fit the layout is Go's zero time.
fn to_date(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let layout = arg::text(args, 0);
    meter.items(1)?;
    meter.read(layout.len().saturating_mul(256))?;
    Ok(Val::Time(Rc::new(parse(layout, arg::text(args, 1)).unwrap_or_else(Time::zero))))
}
