//! The CustomResourceDefinitions, from the types in [`interlock_core::api`].
//!
//! Those of `kudo.dev` accept every object that KUDO's own CRDs accept and prune like them: they require,
//! default and restrict no field that KUDO's leave alone. Clients of KUDO send `null` in a few places;
//! exactly those are nullable.

use interlock_core::api::interlock::Interlock;
use interlock_core::api::override_object::Override;
use interlock_gateway::policies::rate_limit_policies;
use interlock_kong::api::definition::DataPlane;
use interlock_kudo::api::{Instance, Operator, OperatorVersion};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;
use serde_json::Value;

/// Where KUDO v0.19 allows `null` (`config/crds/*.yaml`): paths of properties, `*` for the
/// values of a map or the items of a list.
const NULLABLE: [&str; 5] = [
    "spec.plans",
    "spec.plans.*.phases",
    "spec.tasks.*.spec.resources",
    "spec.tasks.*.spec.pipe",
    "status.planStatus.*.lastUpdatedTimestamp",
];

/// Operators, OperatorVersions, Instances, Interlocks, Overrides.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut all = kudo();
    all.push(listed(Interlock::crd()));
    all.push(listed(Override::crd()));
    all
}

/// DataPlanes, for clusters without Kong's own definition, which is served as well as this one.
pub fn kong() -> Vec<CustomResourceDefinition> {
    let mut crd = listed(DataPlane::crd());
    for version in &mut crd.spec.versions {
        if let Some(schema) = version.schema.as_mut().and_then(|s| s.open_api_v3_schema.as_mut()) {
            never_null(schema);
        }
    }
    vec![crd]
}

/// RateLimitPolicies, for clusters without Kuadrant's own definition, which is served as well as this one.
pub fn kuadrant() -> Vec<Value> {
    vec![rate_limit_policies()]
}

/// As Kong's: absent fields are omitted.
fn never_null(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    schema.properties.iter_mut().flatten().for_each(|(_, property)| never_null(property));
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        never_null(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        never_null(values);
    }
}

fn kudo() -> Vec<CustomResourceDefinition> {
    [Operator::crd(), OperatorVersion::crd(), Instance::crd()].into_iter().map(like_kudo).collect()
}

fn listed(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    crd.spec.names.list_kind = Some(format!("{}List", crd.spec.names.kind));
    crd
}

fn like_kudo(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let mut crd = listed(crd);
    for version in &mut crd.spec.versions {
        let Some(schema) = version.schema.as_mut().and_then(|s| s.open_api_v3_schema.as_mut()) else {
            continue;
        };
        relax(schema, "");
        schema.properties.get_or_insert_default().entry("status".to_owned()).or_insert_with(|| {
            JSONSchemaProps {
                description: Some("Empty; nothing writes it.".to_owned()),
                type_: Some("object".to_owned()),
                ..JSONSchemaProps::default()
            }
        });
    }
    crd
}

/// Removes constraints of the derived schema that KUDO's lacks.
fn relax(schema: &mut JSONSchemaProps, path: &str) {
    schema.default = None;
    schema.nullable = NULLABLE.contains(&path).then_some(true);
    // The one type that KUDO's schema restricts is metav1.Condition.
    if !path.ends_with(".conditions.*") {
        schema.required = None;
    }
    for (name, property) in schema.properties.iter_mut().flatten() {
        let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        relax(property, &below);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        relax(items, &format!("{path}.*"));
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        relax(values, &format!("{path}.*"));
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::{Map, Value};

    use super::*;

    /// KUDO's own CRDs, which are not part of this repository; `None` without them.
    fn stock(plural: &str) -> Option<Value> {
        let shared =
            std::env::var_os("INTERLOCK_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
        let file = shared.join(format!("crds/kudo_{plural}.yaml"));
        let Ok(text) = std::fs::read_to_string(&file) else {
            // On CI, a skip is a failure if the folder exists.
            assert!(
                std::env::var_os("CI").is_none_or(|ci| ci != "true") || !shared.exists(),
                "{} is not there",
                file.display()
            );
            eprintln!("skipped: {} is not there", file.display());
            return None;
        };
        Some(serde_saphyr::from_str(&text).unwrap())
    }

    fn keyword<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
        schema.get(name).filter(|v| *v != &Value::Bool(false))
    }

    /// Collects objects that `theirs` accepts and `ours` rejects, and fields that differ.
    fn stricter(ours: &Value, theirs: &Value, path: &str, found: &mut Vec<String>) {
        for same in
            ["type", "nullable", "format", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-list-type"]
        {
            if keyword(ours, same) != keyword(theirs, same) {
                found.push(format!("{path}: {same}: {:?}, KUDO has {:?}", ours.get(same), theirs.get(same)));
            }
        }
        for limit in
            ["required", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "default"]
        {
            if ours.get(limit).is_some() && ours.get(limit) != theirs.get(limit) {
                found.push(format!(
                    "{path}: {limit}: {:?}, KUDO has {:?}",
                    ours.get(limit),
                    theirs.get(limit)
                ));
            }
        }
        if ours.get("description").is_none() && path.contains('.') && !path.ends_with('*') {
            found.push(format!("{path}: no description"));
        }
        let none = Map::new();
        let fields =
            |schema: &Value| schema.get("properties").and_then(Value::as_object).unwrap_or(&none).clone();
        let (mine, other) = (fields(ours), fields(theirs));
        for name in mine.keys().chain(other.keys()) {
            // Every CRD has these three, written out or not.
            if path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                continue;
            }
            // What Interlock records beside KUDO's fields.
            let record =
                ["observedGeneration", "lastApplied", "progress", "requests"].contains(&name.as_str());
            if path == ".status" && record && !other.contains_key(name) {
                continue;
            }
            match (mine.get(name), other.get(name)) {
                (Some(a), Some(b)) => stricter(a, b, &format!("{path}.{name}"), found),
                (a, _) => found
                    .push(format!("{path}.{name}: only in {}", if a.is_some() { "ours" } else { "KUDO's" })),
            }
        }
        for nested in ["items", "additionalProperties"] {
            match (ours.get(nested), theirs.get(nested)) {
                (None, None) => {}
                (Some(a), Some(b)) => stricter(a, b, &format!("{path}.*"), found),
                _ => found.push(format!("{path}: {nested} in one of both only")),
            }
        }
    }

    #[test]
    fn nothing_is_stricter_than_kudo() {
        for crd in kudo() {
            let Some(theirs) = stock(&crd.spec.names.plural) else { return };
            let ours = serde_json::to_value(&crd).unwrap();
            for same in
                ["/metadata/name", "/spec/scope", "/spec/group", "/spec/names/kind", "/spec/names/singular"]
            {
                assert_eq!(ours.pointer(same), theirs.pointer(same), "{same}");
            }
            for same in ["name", "served", "storage", "subresources"] {
                let at = format!("/spec/versions/0/{same}");
                assert_eq!(ours.pointer(&at), theirs.pointer(&at), "{}: {at}", crd.spec.names.plural);
            }
            let schema = "/spec/versions/0/schema/openAPIV3Schema";
            let mut found = Vec::new();
            stricter(ours.pointer(schema).unwrap(), theirs.pointer(schema).unwrap(), "", &mut found);
            assert!(found.is_empty(), "{}:\n{}", crd.spec.names.plural, found.join("\n"));
        }
    }

    #[test]
    fn nothing_is_required_or_restricted() {
        for crd in kudo() {
            let text = serde_json::to_string(&crd.spec.versions).unwrap();
            for word in
                ["\"enum\":[", "\"pattern\"", "\"default\":\"", "\"maxLength\"", "x-kubernetes-validations"]
            {
                assert!(!text.contains(word), "{} has {word}", crd.spec.names.plural);
            }
            assert!(text.len() < 64 * 1024, "client-side apply keeps a copy in an annotation");
        }
    }
}
