//! Ingresses of `extensions/v1beta1` and `networking.k8s.io/v1beta1`.

use serde_json::{Map, Value, json};

use super::fields;

/// Backends name their Service in a field of its own, and each path says how it matches.
pub(super) fn convert(object: &mut Value) {
    let Some(spec) = fields::spec(object) else { return };
    fields::rename(spec, "backend", "defaultBackend");
    if let Some(default) = spec.get_mut("defaultBackend").and_then(Value::as_object_mut) {
        backend(default);
    }
    for rule in fields::items(spec.get_mut("rules")) {
        let Some(http) = rule.get_mut("http") else { continue };
        for path in fields::items(http.get_mut("paths")) {
            fields::default(path, "pathType", "ImplementationSpecific");
            if let Some(of_path) = path.get_mut("backend").and_then(Value::as_object_mut) {
                backend(of_path);
            }
        }
    }
}

fn backend(backend: &mut Map<String, Value>) {
    let (name, port) = (backend.remove("serviceName"), backend.remove("servicePort"));
    if name.is_none() && port.is_none() {
        return;
    }
    let port = match port {
        Some(number @ Value::Number(_)) => json!({"number": number}),
        Some(name @ Value::String(_)) => json!({"name": name}),
        Some(other) => other,
        None => Value::Null,
    };
    let mut service = Map::new();
    service.extend(name.map(|name| ("name".to_owned(), name)));
    if !port.is_null() {
        service.insert("port".to_owned(), port);
    }
    backend.entry("service").or_insert(Value::Object(service));
}
