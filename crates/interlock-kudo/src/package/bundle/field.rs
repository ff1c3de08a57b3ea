//! Reading a file field by field, with the conversions of Go's YAML reader and with errors that
//! name the field.

use serde_json::Value;
use thiserror::Error;

use super::value::scalar_text;

/// A field has a value of another type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path} must be {wanted}, but is {found}")]
pub struct WrongType {
    path: String,
    wanted: &'static str,
    found: &'static str,
}

/// A value and its path.
#[derive(Clone, Debug)]
pub(in crate::package) struct PackagedField<'a> {
    value: &'a Value,
    path: String,
}

static NULL: Value = Value::Null;

impl<'a> PackagedField<'a> {
    pub(in crate::package) fn root(value: &'a Value) -> Self {
        Self { value, path: String::new() }
    }

    pub(in crate::package) fn value(&self) -> &'a Value {
        self.value
    }

    /// A member; null where there is none.
    pub(in crate::package) fn get(&self, key: &str) -> Self {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Self { value: self.value.get(key).unwrap_or(&NULL), path }
    }

    /// A string. Like Go's reader, converts any scalar to one.
    pub(in crate::package) fn text(&self, key: &str) -> Result<Option<String>, WrongType> {
        self.get(key).as_text()
    }

    /// A list of strings.
    pub(in crate::package) fn texts(&self, key: &str) -> Result<Option<Vec<String>>, WrongType> {
        let Some(items) = self.list(key)? else { return Ok(None) };
        items.iter().map(|item| Ok(item.as_text()?.unwrap_or_default())).collect::<Result<_, _>>().map(Some)
    }

    /// A boolean.
    pub(in crate::package) fn flag(&self, key: &str) -> Result<Option<bool>, WrongType> {
        let field = self.get(key);
        match field.value {
            Value::Null => Ok(None),
            Value::Bool(flag) => Ok(Some(*flag)),
            _ => Err(field.wrong("true or false")),
        }
    }

    pub(in crate::package) fn list(&self, key: &str) -> Result<Option<Vec<Self>>, WrongType> {
        let field = self.get(key);
        match field.value {
            Value::Null => Ok(None),
            Value::Array(items) => {
                let at = |(i, value)| Self { value, path: format!("{}[{i}]", field.path) };
                Ok(Some(items.iter().enumerate().map(at).collect()))
            }
            _ => Err(field.wrong("a list")),
        }
    }

    /// A mapping.
    pub(in crate::package) fn entries(&self, key: &str) -> Result<Option<Vec<(String, Self)>>, WrongType> {
        let field = self.get(key);
        match field.value {
            Value::Null => Ok(None),
            Value::Object(members) => {
                Ok(Some(members.keys().map(|key| (key.clone(), field.get(key))).collect()))
            }
            _ => Err(field.wrong("a mapping")),
        }
    }

    fn as_text(&self) -> Result<Option<String>, WrongType> {
        match self.value {
            Value::Null => Ok(None),
            Value::Array(_) | Value::Object(_) => Err(self.wrong("a string")),
            scalar => Ok(Some(scalar_text(scalar))),
        }
    }

    fn wrong(&self, wanted: &'static str) -> WrongType {
        let found = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "a mapping",
        };
        WrongType { path: self.path.clone(), wanted, found }
    }
}
