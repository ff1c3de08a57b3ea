//! Lists; every function returns a new one.

use super::coerce::{self, nil_dereference};
use super::types::deep_equal;
use crate::dynamic::{List, Val};
use crate::error::Failure;
use crate::function::Type::Any;
use crate::function::{Function, fixed, variadic};
use crate::limits::Meter;

pub(super) const FUNCTIONS: &[Function] = &[
    variadic("list", &[], Any, list),
    variadic("tuple", &[], Any, list),
    fixed("append", &[Any, Any], append),
    fixed("push", &[Any, Any], append),
    fixed("prepend", &[Any, Any], prepend),
    fixed("first", &[Any], |_, args| {
        Ok(items(&args[0], "find first on")?.first().cloned().unwrap_or_default())
    }),
    fixed("last", &[Any], |_, args| Ok(items(&args[0], "find last on")?.last().cloned().unwrap_or_default())),
    fixed("rest", &[Any], |meter, args| kept(meter, items(&args[0], "find rest on")?.get(1..))),
    fixed("initial", &[Any], |meter, args| {
        let items = items(&args[0], "find initial on")?;
        kept(meter, items.get(..items.len().saturating_sub(1)))
    }),
    fixed("reverse", &[Any], reverse),
    fixed("compact", &[Any], compact),
    fixed("uniq", &[Any], uniq),
    variadic("without", &[Any], Any, without),
    fixed("has", &[Any, Any], has),
    variadic("slice", &[Any], Any, slice),
    variadic("concat", &[], Any, concat),
];

fn list(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    kept(meter, Some(args))
}

fn kept(meter: &Meter, items: Option<&[Val]>) -> Result<Val, Failure> {
    let items = items.unwrap_or_default();
    meter.items(items.len())?;
    Ok(Val::list(items.to_vec()))
}

/// The elements of a list; the error of Go's panic for any other value.
fn items<'v>(value: &'v Val, verb: &str) -> Result<&'v [Val], Failure> {
    list_or(value, |kind| format!("Cannot {verb} type {kind}")).map(List::items)
}

fn list_or(value: &Val, refused: impl FnOnce(&str) -> String) -> Result<&List, Failure> {
    match value {
        Val::List(list) => Ok(list),
        Val::Nil => Err(nil_dereference()),
        other => Err(Failure::new(refused(other.kind_name()))),
    }
}

fn append(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let items = items(&args[0], "push on")?;
    meter.items(items.len() + 1)?;
    Ok(Val::list(items.iter().chain([&args[1]]).cloned().collect()))
}

fn prepend(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let items = items(&args[0], "prepend on")?;
    meter.items(items.len() + 1)?;
    Ok(Val::list([&args[1]].into_iter().chain(items).cloned().collect()))
}

fn reverse(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let items = items(&args[0], "find reverse on")?;
    meter.items(items.len())?;
    Ok(Val::list(items.iter().rev().cloned().collect()))
}

fn compact(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let items = items(&args[0], "compact on")?;
    meter.items(items.len())?;
    Ok(Val::list(items.iter().filter(|item| !coerce::is_empty(item)).cloned().collect()))
}

fn contains(meter: &Meter, haystack: &[Val], needle: &Val) -> Result<bool, Failure> {
    for item in haystack {
        if deep_equal(meter, needle, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let mut kept: Vec<Val> = Vec::new();
    for item in items(&args[0], "find uniq on")? {
        meter.items(1)?;
        if !contains(meter, &kept, item)? {
            kept.push(item.clone());
        }
    }
    Ok(Val::list(kept))
}

fn without(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let mut kept = Vec::new();
    for item in items(&args[0], "find without on")? {
        meter.items(1)?;
        if !contains(meter, &args[1..], item)? {
            kept.push(item.clone());
        }
    }
    Ok(Val::list(kept))
}

fn has(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    if let Val::Nil = args[1] {
        return Ok(Val::Bool(false));
    }
    Ok(Val::Bool(contains(meter, items(&args[1], "find has on")?, &args[0])?))
}

/// `slice LIST [FROM [TO]]`: sprig's, which replaces Go's own `slice`.
fn slice(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let list = list_or(&args[0], |kind| format!("list should be type of slice or array but {kind}"))?;
    if list.items().is_empty() {
        return Ok(Val::Nil);
    }
    let bound = |at: usize, default: usize| match args.get(at) {
        Some(value) => usize::try_from(coerce::to_int64(value)).ok(),
        None => Some(default),
    };
    let range = bound(1, 0).zip(bound(2, list.items().len()));
    match range.and_then(|(start, end)| list.items().get(start..end)) {
        Some(part) => {
            meter.items(part.len())?;
            Ok(Val::List(List::new(list.elem, part.to_vec())))
        }
        None => Err(Failure::new("reflect.Value.Slice: slice index out of bounds")),
    }
}

fn concat(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let mut all = Vec::new();
    for list in args {
        let items = list_or(list, |kind| format!("Cannot concat type {kind} as list"))?.items();
        meter.items(items.len())?;
        all.extend_from_slice(items);
    }
    Ok(Val::list(all))
}
