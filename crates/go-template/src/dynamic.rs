//! Values of a running template: the contents of Go's `reflect.Value`.
//!
//! Strings are bytes, and maps are shared and mutable (sprig's `set`), as in Go. Values live within one
//! rendering and never leave its thread.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::limits::{LimitReached, MAX_VALUE_DEPTH, Meter};
use super::time::{Time, Zone};
use super::value::{Given, Root, SharedMap, Value};
use super::version::SemVersion;

/// A value with its Go type.
#[derive(Clone, Debug, Default)]
pub(super) enum Val {
    #[default]
    Nil,
    Bool(bool),
    /// `int`: literals, lengths, indices.
    Int(i64),
    /// `int64`: results of sprig's arithmetic.
    Int64(i64),
    /// `uint8`: an element of a string.
    Byte(u8),
    Float(f64),
    Str(Rc<[u8]>),
    List(List),
    Map(Map),
    /// `*semver.Version`.
    Version(Rc<SemVersion>),
    /// `time.Time`.
    Time(Rc<Time>),
    /// `sprig.certificate`.
    Certificate(Rc<Certificate>),
}

/// A certificate and its key, both as PEM.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Certificate {
    pub(super) cert: Rc<[u8]>,
    pub(super) key: Rc<[u8]>,
}

/// Element type of a list or map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elem {
    /// `interface {}`
    Any,
    /// `string`
    Str,
    /// `int`
    Int,
}

impl Elem {
    fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Str => "string",
            Self::Int => "int",
        }
    }
}

/// A Go slice; never changed in place.
#[derive(Clone, Debug)]
pub(super) struct List {
    pub(super) elem: Elem,
    items: Rc<Items>,
}

#[derive(Debug, Default)]
struct Items(Vec<Val>);

/// A Go map with string keys.
#[derive(Clone, Debug)]
pub(super) struct Map {
    pub(super) elem: Elem,
    entries: Rc<RefCell<Entries>>,
}

/// Entries in key order, in which Go prints and ranges over a map.
pub(super) type Tree = BTreeMap<Rc<[u8]>, Val>;

#[derive(Debug, Default)]
struct Entries {
    made: Tree,
    /// Where those are that no template has read yet.
    given: Option<SharedMap>,
}

impl Entries {
    fn get(&mut self, key: &[u8]) -> Option<Val> {
        let Some(given) = &self.given else { return self.made.get(key).cloned() };
        if let Some(found) = self.made.get(key) {
            return Some(found.clone());
        }
        let value = Val::copy(given.get(std::str::from_utf8(key).ok()?)?);
        self.made.insert(key.into(), value.clone());
        Some(value)
    }

    /// All of them.
    fn whole(&mut self) -> &mut Tree {
        for (key, value) in self.given.take().iter().flat_map(|given| given.iter()) {
            self.made.entry(key.as_bytes().into()).or_insert_with(|| Val::copy(value));
        }
        &mut self.made
    }
}

// A chain of containers can be as long as the work bound allows, so dropping it must not recurse.
impl Drop for Items {
    fn drop(&mut self) {
        release(std::mem::take(&mut self.0));
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        release(std::mem::take(&mut self.made).into_values().collect());
    }
}

fn release(mut pending: Vec<Val>) {
    while let Some(value) = pending.pop() {
        match value {
            Val::List(list) => {
                if let Some(mut items) = Rc::into_inner(list.items) {
                    pending.append(&mut items.0);
                }
            }
            Val::Map(map) => {
                if let Some(mut entries) = Rc::into_inner(map.entries) {
                    pending.extend(std::mem::take(&mut entries.get_mut().made).into_values());
                }
            }
            _ => {}
        }
    }
}

impl List {
    /// A slice of the given element type.
    pub(super) fn new(elem: Elem, items: Vec<Val>) -> Self {
        Self { elem, items: Rc::new(Items(items)) }
    }

    pub(super) fn items(&self) -> &[Val] {
        &self.items.0
    }
}

impl Map {
    /// A map of the given element type.
    pub(super) fn new(elem: Elem, entries: Tree) -> Self {
        Self { elem, entries: Rc::new(RefCell::new(Entries { made: entries, given: None })) }
    }

    /// A map whose values are copied as they are read.
    fn shared(given: SharedMap) -> Self {
        let entries = Entries { made: Tree::new(), given: Some(given) };
        Self { elem: Elem::Any, entries: Rc::new(RefCell::new(entries)) }
    }

    pub(super) fn get(&self, key: &[u8]) -> Option<Val> {
        self.entries.borrow_mut().get(key)
    }

    pub(super) fn len(&self) -> usize {
        let entries = self.entries.borrow();
        entries.given.as_ref().map_or(entries.made.len(), |given| given.len())
    }

    /// Its present entries.
    pub(super) fn entries(&self) -> Vec<(Rc<[u8]>, Val)> {
        let mut entries = self.entries.borrow_mut();
        entries.whole().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    pub(super) fn insert(&self, key: Rc<[u8]>, value: Val) {
        // The old value is dropped after the borrow ends.
        let _old = self.entries.borrow_mut().whole().insert(key, value);
    }

    pub(super) fn remove(&self, key: &[u8]) {
        let _old = self.entries.borrow_mut().whole().remove(key);
    }

    /// Whether both are the same map, not merely equal.
    pub(super) fn same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.entries, &other.entries)
    }
}

impl Val {
    pub(super) fn str(text: impl AsRef<[u8]>) -> Self {
        Self::Str(text.as_ref().into())
    }

    pub(super) fn list(items: Vec<Val>) -> Self {
        Self::List(List::new(Elem::Any, items))
    }

    pub(super) fn strings<T: AsRef<[u8]>>(items: impl IntoIterator<Item = T>) -> Self {
        Self::List(List::new(Elem::Str, items.into_iter().map(Self::str).collect()))
    }

    pub(super) fn map(entries: Tree) -> Self {
        Self::Map(Map::new(Elem::Any, entries))
    }

    /// The fields of a structure that a template can read (in Go, also methods without arguments).
    pub(super) fn part(&self, name: &str) -> Option<Self> {
        match self {
            Self::Version(version) => Self::part_of_version(version, name),
            Self::Time(time) => Self::part_of_time(time, name),
            Self::Certificate(pair) => match name {
                "Cert" => Some(Self::Str(pair.cert.clone())),
                "Key" => Some(Self::Str(pair.key.clone())),
                _ => None,
            },
            _ => None,
        }
    }

    fn part_of_time(time: &Rc<Time>, name: &str) -> Option<Self> {
        let civil = time.civil();
        Some(match name {
            "Year" => Self::Int(civil.year),
            "Day" => Self::Int(civil.day),
            "YearDay" => Self::Int(civil.day_of_year),
            "Hour" => Self::Int(civil.hour),
            "Minute" => Self::Int(civil.minute),
            "Second" => Self::Int(civil.second),
            "Nanosecond" => Self::Int(i64::from(time.nano)),
            "Unix" => Self::Int64(time.second),
            "UnixNano" => {
                Self::Int64(time.second.wrapping_mul(1_000_000_000).wrapping_add(i64::from(time.nano)))
            }
            "UTC" | "Local" => Self::Time(Rc::new(time.within(Zone::utc()))),
            "IsZero" => Self::Bool(time.is_zero()),
            "String" => Self::str(time.text()),
            _ => return None,
        })
    }

    fn part_of_version(version: &SemVersion, name: &str) -> Option<Self> {
        let [major, minor, patch] = version.numbers;
        Some(match name {
            "Major" => Self::Int64(major),
            "Minor" => Self::Int64(minor),
            "Patch" => Self::Int64(patch),
            "Prerelease" => Self::str(&version.prerelease),
            "Metadata" => Self::str(&version.metadata),
            "Original" => Self::str(&version.original),
            "String" => Self::str(version.to_string()),
            _ => return None,
        })
    }

    /// Go's name of its type, as `%T` prints it.
    pub(super) fn type_name(&self) -> String {
        match self {
            Self::Nil => "<nil>".to_owned(),
            Self::Bool(_) => "bool".to_owned(),
            Self::Int(_) => "int".to_owned(),
            Self::Int64(_) => "int64".to_owned(),
            Self::Byte(_) => "uint8".to_owned(),
            Self::Float(_) => "float64".to_owned(),
            Self::Str(_) => "string".to_owned(),
            Self::List(list) => format!("[]{}", list.elem.name()),
            Self::Map(map) => format!("map[string]{}", map.elem.name()),
            Self::Version(_) => "*semver.Version".to_owned(),
            Self::Time(_) => "time.Time".to_owned(),
            Self::Certificate(_) => "sprig.certificate".to_owned(),
        }
    }

    /// Go's name of its kind.
    pub(super) fn kind_name(&self) -> &'static str {
        match self {
            Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Int64(_) => "int64",
            Self::Byte(_) => "uint8",
            Self::Float(_) => "float64",
            Self::Str(_) => "string",
            Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Version(_) => "ptr",
            Self::Time(_) | Self::Certificate(_) => "struct",
        }
    }

    /// Truth in `if`, `and`, `or`, `not`: whether it differs from the zero value of its type.
    pub(super) fn truth(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(value) | Self::Int64(value) => *value != 0,
            Self::Byte(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::List(list) => !list.items().is_empty(),
            Self::Map(map) => map.len() > 0,
            Self::Version(_) | Self::Time(_) | Self::Certificate(_) => true,
        }
    }

    /// Its number, if its type is one of Go's integer types.
    pub(super) fn integer(&self) -> Option<i64> {
        match self {
            Self::Int(value) | Self::Int64(value) => Some(*value),
            Self::Byte(value) => Some(i64::from(*value)),
            _ => None,
        }
    }
}

// Templates may change their values (`set`), so each rendering has its own.
impl Val {
    /// The values of a rendering.
    pub(super) fn of_root(meter: &Meter, root: &Root<'_>) -> Result<Self, LimitReached> {
        meter.entries(root.0.len())?;
        let entries = root.0.iter().map(|(key, given)| {
            let value = match given {
                Given::Text(text) => Self::text(meter, text)?,
                Given::Value(value) => Self::of(meter, value)?,
                Given::Map(map) => {
                    // What a rendering costs does not depend on what it reads.
                    meter.bytes(map.cost())?;
                    Self::Map(Map::shared(map.clone()))
                }
            };
            Ok((key.as_bytes().into(), value))
        });
        Ok(Self::map(entries.collect::<Result<_, LimitReached>>()?))
    }

    pub(super) fn of(meter: &Meter, value: &Value) -> Result<Self, LimitReached> {
        meter.bytes(value.cost())?;
        Ok(Self::copy(value))
    }

    /// A copy that is paid for.
    fn copy(value: &Value) -> Self {
        match value {
            Value::Nil => Self::Nil,
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Float(value) => Self::Float(*value),
            Value::String(text) => Self::str(text),
            Value::List(items) => Self::list(items.iter().map(Self::copy).collect()),
            Value::Map(map) => {
                Self::map(map.iter().map(|(key, value)| (key.as_bytes().into(), Self::copy(value))).collect())
            }
        }
    }

    /// The value for a program: bytes that are not UTF-8 become U+FFFD, a version and a time become
    /// their texts, and a certificate a map.
    pub(super) fn to_value(&self, meter: &Meter, depth: usize) -> Result<Value, LimitReached> {
        if depth > MAX_VALUE_DEPTH {
            return Err(LimitReached::ValueDepth);
        }
        let text = |bytes: &[u8]| {
            meter.bytes(bytes.len())?;
            Ok::<_, LimitReached>(String::from_utf8_lossy(bytes).into_owned())
        };
        Ok(match self {
            Self::Nil => Value::Nil,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) | Self::Int64(value) => Value::Int(*value),
            Self::Byte(value) => Value::Int(i64::from(*value)),
            Self::Float(value) => Value::Float(*value),
            Self::Str(bytes) => Value::String(text(bytes)?),
            Self::Version(version) => Value::String(version.to_string()),
            Self::Time(time) => Value::String(time.rfc3339()),
            Self::Certificate(pair) => {
                meter.entries(2)?;
                let (cert, key) = (text(&pair.cert)?, text(&pair.key)?);
                [("Cert", cert), ("Key", key)].into_iter().collect()
            }
            Self::List(list) => {
                meter.items(list.items().len())?;
                let items = list.items().iter().map(|item| item.to_value(meter, depth + 1));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            Self::Map(map) => {
                meter.entries(map.len())?;
                let entries = map.entries().into_iter();
                let entries =
                    entries.map(|(key, value)| Ok((text(&key)?, value.to_value(meter, depth + 1)?)));
                Value::Map(entries.collect::<Result<_, LimitReached>>()?)
            }
        })
    }

    fn text(meter: &Meter, text: &str) -> Result<Self, LimitReached> {
        meter.bytes(text.len())?;
        Ok(Self::str(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_chain_of_lists_is_dropped_without_recursion() {
        let mut value = Val::Nil;
        for _ in 0..500_000 {
            value = Val::list(vec![value]);
        }
        drop(value);
        let mut value = Val::Nil;
        for _ in 0..500_000 {
            value = Val::map(Tree::from([(b"k".as_slice().into(), value)]));
        }
        drop(value);
    }
}
