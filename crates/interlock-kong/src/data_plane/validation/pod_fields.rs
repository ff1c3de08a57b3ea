//! The fields of a pod template: which there are, and of what type. `pod_fields.txt` lists them as Kubernetes publishes
//! them, and a test writes it from the types of `k8s_openapi`.
//!
//! A newer API server may know more fields, so one that is not listed is a reason to warn. The type of a field never
//! changes, so a value of another type is refused everywhere.

use crate::data_plane::rules::ids::DATA_PLANE_TEMPLATE;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::child_problem::ChildProblem;
use crate::data_plane::flavor::change::Findings;

/// As it is written: the version, then a line for each type with its fields, `field:type`.
const TEXT: &str = include_str!("pod_fields.txt");

/// The path of the template.
const PLACE: &str = "spec.deployment.podTemplateSpec";
/// Its type.
const TEMPLATE: &str = "PodTemplateSpec";
/// The most characters of a name that a path shows.
const SHOWN: usize = 63;

type Fields = BTreeMap<&'static str, &'static str>;

static TYPES: LazyLock<BTreeMap<&'static str, Fields>> = LazyLock::new(|| {
    let types = TEXT.lines().skip(1).filter_map(|line| line.split_once(' '));
    types
        .map(|(name, fields)| (name, fields.split(' ').filter_map(|f| f.split_once(':')).collect()))
        .collect()
});

/// What the fields of a user's template are and are not.
#[derive(Debug, Default)]
pub(super) struct FieldProblems {
    /// Values of another type.
    pub wrong: Vec<ChildProblem>,
    /// Fields that are not known.
    pub unknown: Findings,
}

/// Looks at each field of a template, and names at most so many.
pub(super) fn problems(template: &Value, most: usize) -> FieldProblems {
    let mut walk = Walk { path: PLACE.to_owned(), most, found: FieldProblems::default() };
    walk.value(template, TEMPLATE);
    walk.found
}

struct Walk {
    path: String,
    most: usize,
    found: FieldProblems,
}

impl Walk {
    fn value(&mut self, value: &Value, of: &'static str) {
        let inner = |open, close| of.strip_prefix(open)?.strip_suffix(close);
        match (of, value) {
            (_, Value::Null)
            | ("any", _)
            | ("string", Value::String(_))
            | ("number", Value::Number(_))
            | ("boolean", Value::Bool(_)) => {}
            (_, Value::Array(items)) if of.starts_with('[') => {
                for (i, item) in items.iter().enumerate() {
                    self.below(&element(item, i), item, inner('[', ']').unwrap_or(of));
                }
            }
            (_, Value::Object(members)) if of.starts_with('{') => {
                for (name, item) in members {
                    self.below(&format!("[{}]", shown(name)), item, inner('{', '}').unwrap_or(of));
                }
            }
            (_, Value::Object(members)) => match TYPES.get(of) {
                Some(fields) => self.object(members, fields),
                None => self.wrong(of, value),
            },
            _ => self.wrong(of, value),
        }
    }

    fn object(&mut self, members: &Map<String, Value>, fields: &Fields) {
        // What begins with a dollar is a directive of the merge.
        for (name, value) in members.iter().filter(|(name, _)| !name.starts_with('$')) {
            match fields.get(name.as_str()) {
                Some(of) => self.below(&format!(".{name}"), value, of),
                None => self.unknown(name, fields),
            }
        }
    }

    fn below(&mut self, step: &str, value: &Value, of: &'static str) {
        let length = self.path.len();
        self.path.push_str(step);
        self.value(value, of);
        self.path.truncate(length);
    }

    fn wrong(&mut self, of: &str, value: &Value) {
        if self.found.wrong.len() == self.most {
            return;
        }
        let wanted = match (of, &of[..1]) {
            ("string", _) => "a string",
            ("number", _) => "a number",
            ("boolean", _) => "true or false",
            (_, "[") => "a list",
            _ => "an object",
        };
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        self.found.wrong.push(ChildProblem {
            rule: DATA_PLANE_TEMPLATE,
            field: self.path.clone(),
            detail: format!("must be {wanted}, and is {found}"),
            next: "write a value of the type that the field has",
        });
    }

    fn unknown(&mut self, name: &str, fields: &Fields) {
        if self.found.unknown.warned.len() == self.most {
            return;
        }
        let near =
            nearest(shown(name), fields).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        self.found.unknown.warn(
            DATA_PLANE_TEMPLATE,
            format!(
                "{}.{} is no field of Kubernetes {}, and the API server refuses the Deployment where it does not know it{near}",
                self.path,
                shown(name),
                version()
            ),
        );
    }
}

/// The field that a name is most like, if that is half of it.
fn nearest(name: &str, fields: &Fields) -> Option<&'static str> {
    let name = name.to_lowercase();
    let distance = |field: &str| strsim::osa_distance(&name, &field.to_lowercase());
    let near = fields.keys().map(|field| (distance(field), *field)).min()?;
    (near.0 * 2 <= name.chars().count()).then_some(near.1)
}

fn version() -> &'static str {
    TEXT.lines().next().unwrap_or_default()
}

/// The step to an element: by its name where it has one.
fn element(item: &Value, i: usize) -> String {
    match item.get("name").and_then(Value::as_str) {
        Some(name) => format!("[name={}]", shown(name)),
        None => format!("[{i}]"),
    }
}

fn shown(name: &str) -> &str {
    name.char_indices().nth(SHOWN).map_or(name, |(end, _)| &name[..end])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use k8s_openapi::api::core::v1::PodTemplateSpec;
    use schemars::generate::SchemaSettings;

    use super::*;

    /// The types that a template is made of, as lines.
    fn published() -> String {
        let schema = SchemaSettings::draft07().into_generator().into_root_schema_for::<PodTemplateSpec>();
        let schema = Value::from(schema);
        let definitions = schema["definitions"].as_object().unwrap();
        let mut lines = BTreeSet::from([line(TEMPLATE, &schema, definitions)]);
        lines.extend(
            definitions
                .iter()
                .filter(|(_, definition)| definition["properties"].is_object())
                .map(|(name, definition)| line(short(name), definition, definitions)),
        );
        lines.into_iter().fold("1.36\n".to_owned(), |text, line| text + &line + "\n")
    }

    fn line(name: &str, definition: &Value, definitions: &Map<String, Value>) -> String {
        let fields = definition["properties"].as_object().unwrap();
        let fields = fields.iter().map(|(field, schema)| format!("{field}:{}", of(schema, definitions)));
        [name.to_owned()].into_iter().chain(fields).collect::<Vec<_>>().join(" ")
    }

    fn short(name: &str) -> &str {
        name.rsplit(['.', '/']).next().unwrap()
    }

    /// The type of a value in one word.
    fn of(schema: &Value, definitions: &Map<String, Value>) -> String {
        let schema = match schema["allOf"].as_array() {
            Some(all) => &all[0],
            None => schema,
        };
        if let Some(reference) = schema["$ref"].as_str() {
            let name = reference.strip_prefix("#/definitions/").unwrap();
            let definition = &definitions[name];
            return match definition["properties"].is_object() {
                true => short(name).to_owned(),
                false if short(name) == "Time" || short(name) == "MicroTime" => "string".to_owned(),
                false => "any".to_owned(),
            };
        }
        let types = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
        match types[0].as_str() {
            Some("array") => format!("[{}]", of(&schema["items"], definitions)),
            Some("object") => format!("{{{}}}", of(&schema["additionalProperties"], definitions)),
            Some("integer") => "number".to_owned(),
            Some(other) => other.to_owned(),
            None => "any".to_owned(),
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the list is a file of the sources")]
    fn the_file_lists_the_fields_of_this_version() {
        let found = published();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/data_plane/validation/pod_fields.txt");
            std::fs::write(file, &found).unwrap();
        }
        similar_asserts::assert_eq!(TEXT, found, "UPDATE_DOCS=1 writes it");
        assert!(TYPES["Container"].contains_key("imagePullPolicy") && TYPES.contains_key("ObjectMeta"));
    }
}
