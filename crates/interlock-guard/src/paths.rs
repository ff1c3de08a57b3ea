//! What of an object is guarded: paths of fields, and exceptions.

use serde_json::Value;
use thiserror::Error;

/// A path such as `spec.template`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPath(Vec<String>);

/// A text that is no path.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0:?} is no path; write names of fields with points between them, such as spec.template")]
pub struct PathError(String);

/// Guarded paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardedPaths {
    paths: Vec<FieldPath>,
    except: Vec<FieldPath>,
}

impl FieldPath {
    /// Reads a path.
    ///
    /// # Errors
    /// It has an empty name.
    pub fn read(text: &str) -> Result<Self, PathError> {
        let names: Vec<String> = text.split('.').map(str::to_owned).collect();
        let is_name = |name: &String| {
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/'))
        };
        if names.iter().all(is_name) { Ok(Self(names)) } else { Err(PathError(text.to_owned())) }
    }

    fn of<'v>(&self, object: &'v Value) -> &'v Value {
        self.0.iter().fold(object, |at, name| &at[name])
    }

    /// Takes the field out of an object, and what holds nothing else.
    fn remove(&self, object: &mut Value) {
        remove(object, &self.0);
    }

    fn is_within(&self, other: &Self) -> bool {
        self.0.starts_with(&other.0)
    }
}

impl std::fmt::Display for FieldPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

impl GuardedPaths {
    /// Reads paths and exceptions.
    ///
    /// # Errors
    /// One of them is no path.
    pub fn read(paths: &[String], except: &[String]) -> Result<Self, PathError> {
        let read =
            |texts: &[String]| texts.iter().map(|text| FieldPath::read(text)).collect::<Result<_, _>>();
        Ok(Self { paths: read(paths)?, except: read(except)? })
    }

    /// The paths in which two versions of an object differ. A field that is absent and one that is null are the same, and so
    /// is an object that had but an exception.
    pub fn changed(&self, old: &Value, new: &Value) -> Vec<&FieldPath> {
        let differs = |path: &&FieldPath| {
            let plain = |object: &Value| {
                let mut object = object.clone();
                let within = self.except.iter().filter(|own| own.is_within(path));
                within.for_each(|own| own.remove(&mut object));
                without_nulls(path.of(&object))
            };
            path.of(old) != path.of(new) && plain(old) != plain(new)
        };
        self.paths.iter().filter(differs).collect()
    }
}

fn remove(object: &mut Value, path: &[String]) {
    let (Value::Object(fields), Some((name, below))) = (object, path.split_first()) else { return };
    if let Some(field) = fields.get_mut(name) {
        remove(field, below);
        if below.is_empty() || field.as_object().is_some_and(serde_json::Map::is_empty) {
            fields.remove(name);
        }
    }
}

/// A value without fields that are null. An empty object says something, as `emptyDir: {}` does.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, own)| !own.is_null());
            kept.map(|(name, own)| (name.clone(), without_nulls(own))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case(json!({"spec": {"replicas": 2, "template": {"a": 1}}}), "")]
    #[case(json!({"spec": {"replicas": 1, "template": {"a": 2}}}), "spec")]
    #[case(json!({"spec": {"replicas": 1, "template": {"a": 1}, "paused": true}}), "spec")]
    #[case(json!({"spec": {"replicas": 1, "template": {"a": 1}}, "data": {"x": 1}}), "data")]
    #[case(json!({}), "spec")]
    #[case(json!({"spec": {"replicas": null, "template": {"a": 1, "b": null}, "scale": {"least": 1}}}), "")]
    #[case(json!({"spec": {"replicas": 1, "template": {"a": 1}, "scale": {"least": 1, "most": 2}}}), "spec")]
    #[case(json!({"spec": {"replicas": 1, "template": {"a": 1, "emptyDir": {}}}}), "spec")]
    fn what_differs_is_named_but_for_exceptions(#[case] new: Value, #[case] changed: &str) {
        let old = json!({"spec": {"replicas": 1, "template": {"a": 1}}});
        let text = |text: &str| text.to_owned();
        let paths = GuardedPaths::read(
            &[text("spec"), text("data")],
            &[text("spec.replicas"), text("spec.scale.least")],
        )
        .unwrap();
        let found: Vec<String> = paths.changed(&old, &new).into_iter().map(ToString::to_string).collect();
        assert_eq!(found.join(" "), changed);
    }

    #[test]
    fn a_text_that_is_no_path_is_refused() {
        for text in ["", "spec.", "spec..a", "spec.a[0]", "$.spec"] {
            assert!(FieldPath::read(text).is_err(), "{text}");
        }
    }
}
