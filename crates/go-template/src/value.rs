//! The values that a template is rendered with.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use super::limits::{ENTRY_COST, ITEM_COST};

/// A value as Go's `interface{}` holds it after `encoding/json` or `sigs.k8s.io/yaml` decoded it.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Value {
    /// `nil`.
    #[default]
    Nil,
    /// `bool`.
    Bool(bool),
    /// `int`; decoded documents hold none, their numbers are [`Value::Float`].
    Int(i64),
    /// `float64`.
    Float(f64),
    /// `string`.
    String(String),
    /// `[]interface{}`.
    List(Vec<Value>),
    /// `map[string]interface{}`; templates see its keys in order.
    Map(BTreeMap<String, Value>),
}

/// A map that many renderings read. Each copies what its template reads of it, and no more.
#[derive(Clone, Debug, Default)]
pub struct SharedMap(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    entries: BTreeMap<String, Value>,
    cost: usize,
}

impl SharedMap {
    /// What a copy of all of it costs a rendering.
    pub(super) fn cost(&self) -> usize {
        self.0.cost
    }
}

impl From<BTreeMap<String, Value>> for SharedMap {
    fn from(entries: BTreeMap<String, Value>) -> Self {
        let cost = cost_of_map(&entries);
        Self(Arc::new(Shared { entries, cost }))
    }
}

impl Deref for SharedMap {
    type Target = BTreeMap<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.0.entries
    }
}

fn cost_of_map(map: &BTreeMap<String, Value>) -> usize {
    map.iter().map(|(key, value)| ENTRY_COST + key.len() + value.cost()).sum()
}

/// A value that a template sees under a name.
#[derive(Clone, Debug)]
pub enum Given<'a> {
    /// A `string`.
    Text(&'a str),
    /// Any value.
    Value(&'a Value),
    /// A `map[string]interface{}`.
    Map(SharedMap),
}

/// The values that a template is rendered with, by name.
#[derive(Clone, Debug, Default)]
pub struct Root<'a>(pub BTreeMap<&'a str, Given<'a>>);

impl<'a> From<&'a Value> for Root<'a> {
    /// The entries of a map; other values have none.
    fn from(value: &'a Value) -> Self {
        let Value::Map(map) = value else { return Self::default() };
        let given = |value: &'a Value| match value {
            Value::Map(map) => Given::Map(map.clone().into()),
            value => Given::Value(value),
        };
        Self(map.iter().map(|(name, value)| (name.as_str(), given(value))).collect())
    }
}

impl Value {
    /// What a copy of it costs a rendering.
    pub(super) fn cost(&self) -> usize {
        match self {
            Self::Nil | Self::Bool(_) | Self::Int(_) | Self::Float(_) => 0,
            Self::String(text) => text.len(),
            Self::List(items) => items.iter().map(|item| ITEM_COST + item.cost()).sum(),
            Self::Map(map) => cost_of_map(map),
        }
    }
}

impl From<serde_json::Value> for Value {
    /// Every number becomes a float, as `encoding/json` decodes it: `1000000` prints as `1e+06`.
    fn from(json: serde_json::Value) -> Self {
        match json {
            serde_json::Value::Null => Self::Nil,
            serde_json::Value::Bool(b) => Self::Bool(b),
            serde_json::Value::Number(n) => Self::Float(n.as_f64().unwrap_or(f64::NAN)),
            serde_json::Value::String(s) => Self::String(s),
            serde_json::Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            serde_json::Value::Object(map) => {
                Self::Map(map.into_iter().map(|(key, value)| (key, Self::from(value))).collect())
            }
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Value {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}
