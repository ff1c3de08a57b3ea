//! Paths of objects, for requests without kubectl.

use serde_json::Value;

/// What tests read by the names that `kubectl get` takes: group and version, plural, whether it is namespaced.
const RESOURCES: [(&str, &str, &str, bool); 13] = [
    ("configmap", "v1", "configmaps", true),
    ("dataplane", "gateway-operator.konghq.com/v1beta1", "dataplanes", true),
    ("deployment", "apps/v1", "deployments", true),
    ("envoyfilters.networking.istio.io", "networking.istio.io/v1alpha3", "envoyfilters", true),
    ("instances.kudo.dev", "kudo.dev/v1beta1", "instances", true),
    ("job", "batch/v1", "jobs", true),
    ("namespace", "v1", "namespaces", false),
    ("persistentvolumeclaim", "v1", "persistentvolumeclaims", true),
    ("pod", "v1", "pods", true),
    ("resourcequota", "v1", "resourcequotas", true),
    ("secret", "v1", "secrets", true),
    ("service", "v1", "services", true),
    ("statefulset", "apps/v1", "statefulsets", true),
];

/// Path of an object by a name of its resource that `kubectl get` takes; `None` where that is not in the table.
pub fn path(resource: &str, namespace: &str, name: &str) -> Option<String> {
    let found = RESOURCES.iter().find(|(known, ..)| known.eq_ignore_ascii_case(resource));
    let (_, api_version, plural, namespaced) = found?;
    Some(joined(api_version, namespaced.then_some(namespace), plural, name))
}

/// Path of an object, which names its namespace where its kind has one.
pub fn path_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &object["metadata"];
    let plural = plural(&text(&object["kind"]));
    joined(&text(&object["apiVersion"]), metadata["namespace"].as_str(), &plural, &text(&metadata["name"]))
}

/// Path of the collection of an object.
pub fn collection_of(object: &Value) -> String {
    let path = path_of(object);
    path[..path.rfind('/').unwrap_or_default()].to_owned()
}

fn joined(api_version: &str, namespace: Option<&str>, plural: &str, name: &str) -> String {
    let root = if api_version.contains('/') { "apis" } else { "api" };
    let within = namespace.map(|namespace| format!("namespaces/{namespace}/")).unwrap_or_default();
    format!("/{root}/{api_version}/{within}{plural}/{name}")
}

/// As Kubernetes names the resources of its kinds.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ if kind.ends_with('s') => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}
