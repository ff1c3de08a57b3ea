//! The two times that the API server looks at an object: when it decodes it, before webhooks change it, and when
//! it validates what they made of it.

use serde_json::{Value, json};

use crate::correlation::Correlated;
use crate::definition::{Definition, DefinitionVersion};
use crate::field_error::{ErrorKind, FieldError, FieldErrors, Path, Unevaluated};
use crate::{defaults, lists, metadata, rules, structural, unknown};

/// What stands for the characters that the API server appends to `generateName`.
const GENERATED: &str = "xxxxx";

/// What a validation found.
#[derive(Debug, Default)]
pub struct Validation {
    /// The violations, up to [`crate::limits::MAX_ERRORS`].
    pub errors: Vec<FieldError>,
    /// Violations beyond those.
    pub omitted: usize,
    /// The rules that were not evaluated.
    pub unevaluated: Vec<Unevaluated>,
}

impl Validation {
    /// Whether the API server would admit the object, as far as the rules were evaluated.
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty() && self.omitted == 0
    }

    fn of(findings: FieldErrors) -> Self {
        Self { errors: findings.errors, omitted: findings.omitted, unevaluated: findings.unevaluated }
    }
}

impl DefinitionVersion {
    /// Decodes an object strictly: reports unknown fields, removes them, and sets defaults.
    pub fn decode(&self, object: &mut Value) -> Validation {
        let mut findings = FieldErrors::default();
        metadata::decode(object, &mut findings);
        unknown::prune(object, &self.schema, Some(&mut findings));
        defaults::apply(object, &self.schema);
        Validation::of(findings)
    }

    /// An object as the API server reads it from its storage.
    pub fn stored(&self, mut object: Value) -> Value {
        unknown::prune(&mut object, &self.schema, None);
        defaults::apply(&mut object, &self.schema);
        object
    }

    /// The object that a write leaves: where the status has requests of its own, it is the old one's.
    pub fn written(&self, object: Value, old: Option<&Value>) -> Value {
        let mut object = self.stored(object);
        if let Some(members) = object.as_object_mut().filter(|_| self.has_status_subresource) {
            match old.and_then(|old| old.get("status")) {
                Some(status) => members.insert("status".to_owned(), status.clone()),
                None => members.remove("status"),
            };
        }
        object
    }

    /// Validates what a write leaves ([`Self::written`]); with the stored object that it replaces, where it is an
    /// update.
    pub fn validate(&self, definition: &Definition, object: &Value, old: Option<&Value>) -> Validation {
        let object = named(object);
        let mut findings = FieldErrors::default();
        metadata::check(&object, definition.namespaced, &mut findings);
        structural::check(Correlated::root(&object, old), &self.schema, &Path::default(), &mut findings);
        embedded(&object, &self.schema, &Path::default(), &mut findings);
        self.scale(&object, &mut findings);
        self.lists(&object, old, &mut findings);
        if findings.errors.iter().any(|error| error.kind.blocks_rules()) {
            if rules::has_rules(&self.schema) {
                let reason =
                    "CEL rules are asked of objects that violate nothing else: correct the violations first";
                findings.unevaluated(&Path::default(), "x-kubernetes-validations", reason);
            }
        } else {
            rules::check(Correlated::root(&object, old), &self.schema, &mut findings);
        }
        Validation::of(findings)
    }

    /// The number of replicas is not negative.
    fn scale(&self, object: &Value, findings: &mut FieldErrors) {
        let keys = self.replicas.as_deref().unwrap_or_default();
        let (mut value, mut path) = (object, Path::default());
        for key in keys {
            (value, path) = (&value[key], path.key(key));
        }
        if let Some(replicas) = value.as_i64().filter(|replicas| *replicas < 0) {
            let message = format!("{replicas} is negative: write 0 or more replicas");
            findings.add(&path, ErrorKind::Invalid, message);
        }
    }

    /// What a list holds twice is kept by an update, where it did so before.
    fn lists(&self, object: &Value, old: Option<&Value>, findings: &mut FieldErrors) {
        let mut before = FieldErrors::default();
        if let Some(old) = old {
            lists::check(old, &self.schema, &Path::default(), &mut before);
        }
        if before.is_empty() {
            lists::check(object, &self.schema, &Path::default(), findings);
        }
    }
}

/// The object with a name, where it is to be generated.
fn named(object: &Value) -> Value {
    let mut object = object.clone();
    let prefix = object["metadata"]["generateName"].as_str().filter(|prefix| !prefix.is_empty());
    if let Some(name) = prefix.map(|prefix| format!("{prefix}{GENERATED}"))
        && object["metadata"]["name"].as_str().unwrap_or_default().is_empty()
    {
        object["metadata"]["name"] = json!(name);
    }
    object
}

/// Embedded objects have a kind.
fn embedded(
    value: &Value,
    schema: &crate::schema::StructuralSchema,
    path: &Path,
    findings: &mut FieldErrors,
) {
    if schema.embedded_resource && value.is_object() {
        for field in ["apiVersion", "kind"] {
            if value[field].as_str().unwrap_or_default().is_empty() {
                let message = "an embedded object needs the field: write it";
                findings.add(&path.key(field), ErrorKind::Required, message);
            }
        }
    }
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                if let Some((below, _)) = schema.of_key(key) {
                    embedded(value, below, &path.key(key), findings);
                }
            }
        }
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                if let Some(below) = schema.items.as_deref() {
                    embedded(item, below, &path.index(i), findings);
                }
            }
        }
        _ => {}
    }
}
