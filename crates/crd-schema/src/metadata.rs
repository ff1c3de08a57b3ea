//! The metadata of every object, as the API server decodes and validates it.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use crate::field_error::{ErrorKind, FieldErrors, Path};
use crate::formats::matches;
use crate::structural::shown;

/// Bytes of all annotations together.
const MAX_ANNOTATIONS: usize = 256 << 10;

static SUBDOMAIN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$").ok());
static NAME_PART: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$").ok());

/// Reports unknown fields of `metadata` and values of another type.
pub(crate) fn decode(object: &Value, findings: &mut FieldErrors) {
    let at = Path::default().key("metadata");
    let Some(metadata) = object.get("metadata").filter(|metadata| !metadata.is_null()) else { return };
    let Some(metadata) = metadata.as_object() else {
        findings.add(&at, ErrorKind::Undecodable, "the value is no mapping: write one with a name in it");
        return;
    };
    for (field, value) in metadata.iter().filter(|(_, value)| !value.is_null()) {
        let below = at.key(field);
        let (fits, wanted) = match field.as_str() {
            "name" | "generateName" | "namespace" | "selfLink" | "uid" | "resourceVersion"
            | "creationTimestamp" | "deletionTimestamp" => {
                (value.is_string(), "a string, in quotes where YAML takes it for something else")
            }
            "generation" | "deletionGracePeriodSeconds" => (value.is_i64(), "an integer"),
            "ownerReferences" | "finalizers" | "managedFields" => (value.is_array(), "a list"),
            "labels" | "annotations" => {
                texts(value, &below, findings);
                (value.is_object(), "a mapping of strings")
            }
            _ => {
                let message = "the field is unknown: correct its name, or remove it";
                findings.add(&below, ErrorKind::UnknownField, message);
                continue;
            }
        };
        if !fits {
            findings.add(
                &below,
                ErrorKind::Undecodable,
                format!("the value has another type: write {wanted}"),
            );
        }
    }
}

fn texts(value: &Value, at: &Path, findings: &mut FieldErrors) {
    let other =
        value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_string() && !value.is_null());
    for (key, _) in other {
        findings.add(&at.key(key), ErrorKind::Undecodable, "the value is no string: write it in quotes");
    }
}

/// Validates the metadata of an object of a kind with or without namespaces.
pub(crate) fn check(object: &Value, namespaced: bool, findings: &mut FieldErrors) {
    let at = Path::default().key("metadata");
    let none = Map::new();
    let metadata = object.get("metadata").and_then(Value::as_object).unwrap_or(&none);
    let text = |field: &str| metadata.get(field).and_then(Value::as_str).unwrap_or_default();
    let mut refuse = |field: &str, kind: ErrorKind, message: String| {
        findings.add(&at.key(field), kind, message);
    };
    let (name, prefix) = (text("name"), text("generateName"));
    if name.is_empty() && prefix.is_empty() {
        refuse("name", ErrorKind::Required, "name or generateName is required: write one".to_owned());
    }
    if !name.is_empty() && !is_subdomain(name) {
        refuse("name", ErrorKind::Invalid, no_subdomain(name));
    }
    // The API server appends five characters, and shortens what is too long.
    let start = prefix.trim_end_matches('-');
    if !prefix.is_empty() && !is_subdomain(if start.is_empty() { prefix } else { start }) {
        refuse("generateName", ErrorKind::Invalid, no_subdomain(prefix));
    }
    match (namespaced, text("namespace")) {
        (true, "") => {
            refuse("namespace", ErrorKind::Required, "a namespace is required: write one".to_owned())
        }
        (false, namespace) if !namespace.is_empty() => {
            let message = "objects of this kind have no namespace: remove the field".to_owned();
            refuse("namespace", ErrorKind::Forbidden, message);
        }
        _ => {}
    }
    labels(metadata, &at, findings);
    annotations(metadata, &at, findings);
    owners(metadata, &at, findings);
    finalizers(metadata, &at, findings);
}

fn no_subdomain(text: &str) -> String {
    format!(
        "{} is no DNS subdomain: write at most 253 lower-case letters, digits, - and ., with a letter or a digit \
         at both ends",
        shown(&Value::from(text))
    )
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && matches(&SUBDOMAIN, text)
}

/// `[prefix/]name`
fn is_qualified_name(text: &str) -> bool {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    prefix.is_none_or(is_subdomain) && name.len() <= 63 && matches(&NAME_PART, name)
}

/// A text that has to be a qualified name, in the case that counts; `what` begins the sentence.
fn qualified(in_case: &str, text: &str, what: &str, at: &Path, findings: &mut FieldErrors) {
    if !is_qualified_name(in_case) {
        let message = format!(
            "{what}{} is no qualified name: write [DNS subdomain/]NAME, with a NAME of at most 63 letters, digits, -, _ \
             and .",
            shown(&Value::from(text))
        );
        findings.add(at, ErrorKind::Invalid, message);
    }
}

fn labels(metadata: &Map<String, Value>, at: &Path, findings: &mut FieldErrors) {
    let at = at.key("labels");
    for (key, value) in metadata.get("labels").and_then(Value::as_object).into_iter().flatten() {
        qualified(key, key, "the key ", &at, findings);
        let text = value.as_str().unwrap_or_default();
        if !text.is_empty() && (text.len() > 63 || !matches(&NAME_PART, text)) {
            let message = format!(
                "{} of the key {key} is no label value: write at most 63 letters, digits, -, _ and ., with a letter \
                 or a digit at both ends",
                shown(value)
            );
            findings.add(&at, ErrorKind::Invalid, message);
        }
    }
}

fn annotations(metadata: &Map<String, Value>, at: &Path, findings: &mut FieldErrors) {
    let at = at.key("annotations");
    let mut total = 0;
    for (key, value) in metadata.get("annotations").and_then(Value::as_object).into_iter().flatten() {
        total += key.len() + value.as_str().map_or(0, str::len);
        qualified(&key.to_lowercase(), key, "the key ", &at, findings);
    }
    if total > MAX_ANNOTATIONS {
        let message =
            format!("all annotations have {total} bytes, more than {MAX_ANNOTATIONS}: shorten them");
        findings.add(&at, ErrorKind::TooLong, message);
    }
}

fn owners(metadata: &Map<String, Value>, at: &Path, findings: &mut FieldErrors) {
    let at = at.key("ownerReferences");
    let owners = metadata.get("ownerReferences").and_then(Value::as_array);
    let mut controllers = 0;
    for (i, owner) in owners.into_iter().flatten().enumerate() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                findings.add(&at.index(i).key(field), ErrorKind::Invalid, "the field is required: write it");
            }
        }
        controllers += usize::from(owner["controller"] == true);
    }
    if controllers > 1 {
        let message = "several owners are controllers: set controller for one of them";
        findings.add(&at, ErrorKind::Invalid, message);
    }
}

fn finalizers(metadata: &Map<String, Value>, at: &Path, findings: &mut FieldErrors) {
    let at = at.key("finalizers");
    let finalizers = metadata.get("finalizers").and_then(Value::as_array);
    for text in finalizers.into_iter().flatten().filter_map(Value::as_str) {
        qualified(text, text, "", &at, findings);
    }
}
