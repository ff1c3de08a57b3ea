//! Maps. `set`, `unset`, `merge` and `mergeOverwrite` change their argument.

use super::coerce;
use crate::dynamic::{Elem, Map, Tree, Val};
use crate::error::Failure;
use crate::function::Type::{Any, Dict, Str};
use crate::function::{Function, arg, fixed, variadic};
use crate::limits::Meter;

pub(super) const FUNCTIONS: &[Function] = &[
    variadic("dict", &[], Any, dict),
    fixed("set", &[Dict, Str, Any], set),
    fixed("unset", &[Dict, Str], unset),
    fixed("hasKey", &[Dict, Str], |_, args| {
        Ok(Val::Bool(arg::map(args, 0).is_some_and(|map| map.get(arg::text(args, 1)).is_some())))
    }),
    variadic("pluck", &[Str], Dict, pluck),
    variadic("keys", &[], Dict, keys),
    fixed("values", &[Dict], values),
    variadic("pick", &[Dict], Str, |meter, args| chosen(meter, args, true)),
    variadic("omit", &[Dict], Str, |meter, args| chosen(meter, args, false)),
    variadic("merge", &[Dict], Dict, |meter, args| merged(meter, args, false)),
    variadic("mergeOverwrite", &[Dict], Dict, |meter, args| merged(meter, args, true)),
    fixed("deepCopy", &[Any], |meter, args| match &args[0] {
        Val::Nil => Err(Failure::new("reflect: call of reflect.Value.Type on zero Value")),
        value => copied(meter, value),
    }),
];

/// Keys and values in turn; a last key without a value gets an empty text.
fn dict(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let mut entries = Tree::new();
    meter.entries(args.len().div_ceil(2))?;
    for pair in args.chunks(2) {
        let key = coerce::text(meter, &pair[0])?;
        entries.insert(key.into(), pair.get(1).cloned().unwrap_or_else(|| Val::str("")));
    }
    Ok(Val::map(entries))
}

fn set(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let Some(map) = arg::map(args, 0) else {
        return Err(Failure::new("assignment to entry in nil map"));
    };
    insert(meter, map, arg::shared(args, 1), &args[2])?;
    Ok(args[0].clone())
}

/// A map in itself could be neither printed nor freed; Go's process would crash.
fn insert(meter: &Meter, map: &Map, key: std::rc::Rc<[u8]>, value: &Val) -> Result<(), Failure> {
    let mut pending = vec![value.clone()];
    while let Some(value) = pending.pop() {
        match &value {
            Val::Map(inner) => {
                if inner.same(map) {
                    return Err(Failure::new("the map would contain itself"));
                }
                meter.visit(inner.len())?;
                pending.extend(inner.entries().into_iter().map(|(_, value)| value));
            }
            Val::List(list) => {
                meter.visit(list.items().len())?;
                pending.extend_from_slice(list.items());
            }
            _ => {}
        }
    }
    meter.entries(1)?;
    map.insert(key, value.clone());
    Ok(())
}

fn unset(_: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let Some(map) = arg::map(args, 0) else { return Ok(Val::map(Tree::new())) };
    map.remove(arg::text(args, 1));
    Ok(args[0].clone())
}

fn pluck(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    meter.items(args.len())?;
    let key = arg::text(args, 0);
    let found = (1..args.len()).filter_map(|i| arg::map(args, i)?.get(key));
    Ok(Val::list(found.collect()))
}

fn keys(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let mut all = Vec::new();
    for i in 0..args.len() {
        let Some(map) = arg::map(args, i) else { continue };
        meter.items(map.len())?;
        for (key, _) in map.entries() {
            meter.bytes(key.len())?;
            all.push(key);
        }
    }
    Ok(Val::strings(all))
}

fn values(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let Some(map) = arg::map(args, 0) else { return Ok(Val::list(Vec::new())) };
    meter.items(map.len())?;
    Ok(Val::list(map.entries().into_iter().map(|(_, value)| value).collect()))
}

/// `pick` and `omit`.
fn chosen(meter: &Meter, args: &[Val], listed: bool) -> Result<Val, Failure> {
    let Some(map) = arg::map(args, 0) else { return Ok(Val::map(Tree::new())) };
    meter.visit(map.len().saturating_mul(args.len()))?;
    meter.entries(map.len())?;
    let entries = map.entries().into_iter();
    let is_listed = |key: &[u8]| (1..args.len()).any(|i| arg::text(args, i) == key);
    Ok(Val::map(entries.filter(|(key, _)| is_listed(key) == listed).collect()))
}

fn merged(meter: &Meter, args: &[Val], overwrite: bool) -> Result<Val, Failure> {
    let target = arg::map(args, 0).cloned().unwrap_or_else(|| Map::new(Elem::Any, Tree::new()));
    for i in 1..args.len() {
        if let Some(source) = arg::map(args, i) {
            merge_into(meter, &target, source, overwrite, 0)?;
        }
    }
    Ok(Val::Map(target))
}

/// `mergo.Merge` 0.3.16: sets empty entries of the target, but not to nil; with `overwrite` the source wins,
/// even with empty values. Maps are merged key by key.
fn merge_into(
    meter: &Meter,
    target: &Map,
    source: &Map,
    overwrite: bool,
    depth: usize,
) -> Result<(), Failure> {
    if depth > crate::limits::MAX_VALUE_DEPTH {
        return Err(crate::limits::LimitReached::ValueDepth.into());
    }
    if target.same(source) {
        return Ok(());
    }
    meter.visit(source.len())?;
    for (key, value) in source.entries() {
        match (target.get(&key), &value) {
            (Some(Val::Map(inner)), Val::Map(value)) => {
                merge_into(meter, &inner, value, overwrite, depth + 1)?
            }
            (_, Val::Nil) if !overwrite => {}
            (Some(present), _) if !overwrite && !coerce::is_empty(&present) => {}
            (_, value) => insert(meter, target, key, value)?,
        }
    }
    Ok(())
}

fn copied(meter: &Meter, value: &Val) -> Result<Val, Failure> {
    fn copy(meter: &Meter, value: &Val, depth: usize) -> Result<Val, Failure> {
        if depth > crate::limits::MAX_VALUE_DEPTH {
            return Err(crate::limits::LimitReached::ValueDepth.into());
        }
        meter.items(1)?;
        match value {
            Val::Map(map) => {
                meter.entries(map.len())?;
                let entries = map.entries().into_iter();
                let entries = entries.map(|(key, value)| Ok((key, copy(meter, &value, depth + 1)?)));
                Ok(Val::Map(Map::new(map.elem, entries.collect::<Result<Tree, Failure>>()?)))
            }
            Val::List(list) => {
                let items = list.items().iter().map(|item| copy(meter, item, depth + 1));
                let items = items.collect::<Result<Vec<Val>, Failure>>()?;
                Ok(Val::List(crate::dynamic::List::new(list.elem, items)))
            }
            value => Ok(value.clone()),
        }
    }
    copy(meter, value, 0)
}
