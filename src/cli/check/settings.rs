//! Reads the settings of an Interlock object as strictly as kubectl, the API server and the process do
//! together.

use std::path::Path;

use anyhow::{Context as _, bail};
use interlock_core::api::interlock::{DEFAULT, Interlock, Settings};
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, meta_str};
use interlock_core::kinds::Kinds;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt as _;
use serde_json::Value;

use crate::cli::common::files::read_one;
use crate::controllers::capabilities;

/// Fields of every object, which are not part of the spec.
const COMMON_FIELDS: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// The settings of an Interlock object. Problems that the process would report and ignore are errors here, and so is
/// an object that it would not honour.
pub(super) fn read_settings(path: &Path, kinds: Kinds) -> anyhow::Result<Settings> {
    let object = read_one(path)?;
    let problem = |problem: &str| format!("{}: {problem}", path.display());
    if Gvk::of(&object) != Some(Gvk::new(meta::INTERLOCK_API_VERSION, "Interlock")) {
        bail!(problem("is no Interlock of interlock.dev/v1alpha1"));
    }
    if let Some(why) = not_honoured(&object).or_else(|| unknown_field(&object)) {
        bail!(problem(&why));
    }
    let interlock: Interlock =
        serde_json::from_value(object).with_context(|| problem("the Interlock cannot be read"))?;
    let settings = Settings::read(&interlock.spec, &capabilities::settable(&capabilities::of(kinds)));
    match settings.problems.first() {
        None => Ok(settings),
        Some(first) => bail!(problem(&format!("{}: {}", first.field, first.problem))),
    }
}

/// What the process would ignore of an Interlock object that the API server takes; its condition `Accepted` says it then.
pub(super) fn ignored(object: &Value, kinds: Kinds) -> Vec<String> {
    if meta_str(object, "name") != Some(DEFAULT) {
        return vec![format!("metadata.name: only the Interlock named {DEFAULT:?} is honoured; name it so")];
    }
    let Ok(interlock) = serde_json::from_value::<Interlock>(object.clone()) else { return Vec::new() };
    let settings = Settings::read(&interlock.spec, &capabilities::settable(&capabilities::of(kinds)));
    settings.problems.iter().map(|own| format!("{}: {}; it is ignored", own.field, own.problem)).collect()
}

/// Why the process would ignore this object.
fn not_honoured(object: &Value) -> Option<String> {
    let name = meta_str(object, "name").unwrap_or_default();
    if name != DEFAULT {
        return Some(format!(
            "metadata.name is {name:?}, and only the Interlock named {DEFAULT:?} is honoured: name it so, or leave \
             --interlock out"
        ));
    }
    meta_str(object, "deletionTimestamp").map(|since| {
        format!(
            "metadata.deletionTimestamp is {since:?}, and an Interlock that is being deleted is not honoured: leave \
             --interlock out, as the defaults hold then"
        )
    })
}

/// A field that the definition lacks: without it an entry may apply to more namespaces than its author
/// meant.
fn unknown_field(object: &Value) -> Option<String> {
    let crd = Interlock::crd();
    let schema = crd.spec.versions.first()?.schema.as_ref()?.open_api_v3_schema.as_ref()?;
    let mut own = object.as_object()?.clone();
    own.retain(|name, _| !COMMON_FIELDS.contains(&name.as_str()));
    let unknown = unknown_below(&Value::Object(own), schema, "")?;
    Some(format!(
        "{} is no field of an Interlock: correct it (there are {}), or leave it out",
        unknown.path,
        unknown.known.join(", ")
    ))
}

/// A field without a schema, and those beside it that have one.
struct UnknownField<'a> {
    path: String,
    known: Vec<&'a str>,
}

/// A value whose type differs from the schema's has no fields to check; reading it fails.
fn unknown_below<'a>(given: &Value, schema: &'a JSONSchemaProps, path: &str) -> Option<UnknownField<'a>> {
    match (given, &schema.properties, &schema.additional_properties, &schema.items) {
        (Value::Object(members), Some(properties), ..) => members.iter().find_map(|(name, value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match properties.get(name) {
                Some(schema) => unknown_below(value, schema, &path),
                None => Some(UnknownField { path, known: properties.keys().map(String::as_str).collect() }),
            }
        }),
        (Value::Object(members), None, Some(JSONSchemaPropsOrBool::Schema(schema)), _) => {
            members.iter().find_map(|(name, value)| unknown_below(value, schema, &format!("{path}.{name}")))
        }
        (Value::Array(items), .., Some(JSONSchemaPropsOrArray::Schema(schema))) => items
            .iter()
            .enumerate()
            .find_map(|(i, value)| unknown_below(value, schema, &format!("{path}[{i}]"))),
        _ => None,
    }
}
