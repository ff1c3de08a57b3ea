//! Strips `managedFields` from objects while they are decoded. Few kinds are watched with them, and they are a
//! quarter of an object's text and more than that of its members.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value};

/// An object without `managedFields`.
#[derive(Clone, Debug, PartialEq)]
pub struct Stripped(pub Value);

impl<'de> Deserialize<'de> for Stripped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Level::Object.deserialize(deserializer).map(Self)
    }
}

/// An object with all its members.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct Whole(pub Value);

impl From<Stripped> for Value {
    fn from(Stripped(object): Stripped) -> Self {
        object
    }
}

impl From<Whole> for Value {
    fn from(Whole(object): Whole) -> Self {
        object
    }
}

/// The level of a member in an object.
#[derive(Clone, Copy)]
enum Level {
    Object,
    Metadata,
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Object => "an object of the API",
            Self::Metadata => "its metadata",
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut read = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            let value = match (self, name.as_str()) {
                (Self::Metadata, "managedFields") => {
                    members.next_value::<IgnoredAny>()?;
                    continue;
                }
                (Self::Object, "metadata") => members.next_value_seed(Self::Metadata)?,
                _ => members.next_value()?,
            };
            read.insert(name, value);
        }
        Ok(Value::Object(read))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_managed_fields_of_the_object_itself_are_left_out() {
        let template = json!({"metadata": {"managedFields": [], "name": "b"}});
        let mut object = json!({
            "kind": "A", "metadata": {"name": "a", "managedFields": [{"manager": "x"}], "labels": {"l": "1"}},
            "spec": {"managedFields": 1, "template": template}, "list": [1, null, "x"],
        });
        let Stripped(read) = serde_json::from_str(&object.to_string()).unwrap();
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(read, object);
    }

    #[test]
    fn a_value_that_is_no_object_is_an_error() {
        let error = serde_json::from_str::<Stripped>(r#"{"metadata": 1}"#).unwrap_err();
        assert!(error.to_string().contains("expected its metadata"), "{error}");
    }
}
