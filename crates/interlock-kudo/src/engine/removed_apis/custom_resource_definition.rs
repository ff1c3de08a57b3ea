//! CustomResourceDefinitions of `apiextensions.k8s.io/v1beta1`: each version has a schema of its own in v1, which
//! must be structural.

use serde_json::{Map, Value, json};

use super::{fields, structural};

/// Groups of Kubernetes itself need an approval in v1, or the statement that there is none.
const APPROVAL: &str = "api-approved.kubernetes.io";

/// What v1beta1 says once for all versions, and v1 for each.
const OF_EACH_VERSION: [&str; 2] = ["subresources", "additionalPrinterColumns"];

/// Rewrites the spec, and drops the status, which only the API server writes.
pub(super) fn convert(object: &mut Value) {
    approve(object);
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    let Some(spec) = fields::spec(object) else { return };
    // v1beta1 keeps fields that no schema names, unless it says otherwise.
    let preserves = spec.remove("preserveUnknownFields") != Some(Value::Bool(false));
    let version = spec.remove("version");
    if spec.get("versions").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        let only = json!([{"name": version.unwrap_or(Value::Null), "served": true, "storage": true}]);
        spec.insert("versions".to_owned(), only);
    }
    fields::default(spec, "scope", "Namespaced");
    let schema = spec.remove("validation").and_then(|mut validation| schema_of(&mut validation));
    let shared = OF_EACH_VERSION.map(|name| (name, spec.remove(name)));
    for version in fields::items(spec.get_mut("versions")) {
        for (name, value) in &shared {
            if let Some(value) = value {
                fields::default(version, name, value.clone());
            }
        }
        let own = version.get_mut("schema").and_then(schema_of).or_else(|| schema.clone());
        let own = structural::root(own.unwrap_or_else(|| json!({})), preserves);
        version.insert("schema".to_owned(), json!({"openAPIV3Schema": own}));
        for column in fields::items(version.get_mut("additionalPrinterColumns")) {
            fields::rename(column, "JSONPath", "jsonPath");
        }
    }
    if let Some(conversion) = spec.get_mut("conversion").and_then(Value::as_object_mut) {
        convert_conversion(conversion);
    }
}

fn schema_of(validation: &mut Value) -> Option<Value> {
    Some(validation.get_mut("openAPIV3Schema")?.take()).filter(Value::is_object)
}

fn convert_conversion(conversion: &mut Map<String, Value>) {
    let client = conversion.remove("webhookClientConfig");
    let versions = conversion.remove("conversionReviewVersions");
    if conversion.get("strategy").is_some_and(|strategy| strategy == "Webhook") {
        let Some(webhook) = fields::object(conversion, "webhook") else { return };
        client.into_iter().for_each(|client| fields::default(webhook, "clientConfig", client));
        fields::default(webhook, "conversionReviewVersions", versions.unwrap_or_else(|| json!(["v1beta1"])));
    }
}

fn approve(object: &mut Value) {
    let group = object["spec"]["group"].as_str().unwrap_or_default();
    if ["k8s.io", "kubernetes.io"].iter().any(|of| group == *of || group.ends_with(&format!(".{of}"))) {
        fields::annotate(object, APPROVAL, "unapproved, written for apiextensions.k8s.io/v1beta1");
    }
}
