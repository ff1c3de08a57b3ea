//! Type errors of a spec: the fields whose values do not match the schema. The API server validates the
//! schema only after the mutating webhooks.

use interlock_core::admission::denial::{FieldReason, ViolationField};
use serde_json::Value;

use crate::package::Package;
use crate::package::params;
use crate::package::params::MASK;

/// The fields whose values do not match the schema, each with the remedy. The package decides which
/// values may be shown.
pub(super) fn field_type_errors(spec: &Value, package: Option<&Package>) -> Vec<ViolationField> {
    let Some(parts) = spec.as_object() else { return vec![no_map("spec", spec)] };
    let said = parts.iter().filter(|(_, value)| !value.is_null());
    said.flat_map(|(part, value)| match part.as_str() {
        "operatorVersion" => strings(part, value, &["name", "namespace"]),
        "planExecution" => strings(part, value, &["planName", "uid", "status"]),
        "parameters" => parameters(value, package),
        _ => Vec::new(),
    })
    .collect()
}

/// Type errors in a part of the spec whose members of these names are strings, or null.
fn strings(part: &str, value: &Value, names: &[&str]) -> Vec<ViolationField> {
    let Some(members) = value.as_object() else { return vec![no_map(&format!("spec.{part}"), value)] };
    let known = names.iter().filter_map(|&name| Some((name, members.get(name)?)));
    known
        .filter(|(_, value)| !value.is_string() && !value.is_null())
        .map(|(name, value)| invalid(format!("spec.{part}.{name}"), no_string(value, &value.to_string())))
        .collect()
}

fn parameters(value: &Value, package: Option<&Package>) -> Vec<ViolationField> {
    let Some(values) = value.as_object() else { return vec![no_map("spec.parameters", value)] };
    let wrong = values.iter().filter(|(_, value)| !value.is_string());
    wrong
        .map(|(name, value)| {
            let text = value.to_string();
            let shown = params::display(package.and_then(|package| package.parameter(name)), &text);
            ViolationField::parameter(name, FieldReason::Invalid, no_string(value, &shown))
        })
        .collect()
}

fn invalid(path: String, detail: String) -> ViolationField {
    ViolationField::new(path, FieldReason::Invalid, detail)
}

fn no_map(path: &str, value: &Value) -> ViolationField {
    invalid(path.to_owned(), format!("{}, and not a map; write it as one", kind(value)))
}

/// The type error of a value, and the remedy; `shown` is the displayable value.
fn no_string(value: &Value, shown: &str) -> String {
    let kind = kind(value);
    match value {
        Value::Array(_) | Value::Object(_) => {
            format!("{kind}, and not a string; write it as a string of YAML or JSON")
        }
        Value::Null => format!("{kind}, and not a string; leave it out, or write \"\""),
        // A boolean is not secret.
        Value::Bool(flag) => format!("{flag} is {kind}, and not a string; write it in quotes: \"{flag}\""),
        _ if shown == MASK => format!("{kind}, and not a string; write it in quotes"),
        _ => format!("{shown} is {kind}, and not a string; write it in quotes: \"{shown}\""),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
