//! Paths of objects, for requests without kubectl.

use serde_json::Value;

/// Kinds that tests apply and read: group and version, kind, whether objects have a namespace.
const KINDS: [(&str, &str, bool); 30] = [
    ("apps/v1", "Deployment", true),
    ("apps/v1", "StatefulSet", true),
    ("batch/v1", "Job", true),
    ("gateway-operator.konghq.com/v1beta1", "DataPlane", true),
    ("gateway.envoyproxy.io/v1alpha1", "EnvoyPatchPolicy", true),
    ("gateway.networking.k8s.io/v1", "Gateway", true),
    ("gateway.networking.k8s.io/v1", "GatewayClass", false),
    ("gateway.networking.k8s.io/v1", "HTTPRoute", true),
    ("interlock.dev/v1alpha1", "Interlock", false),
    ("kuadrant.io/v1", "RateLimitPolicy", true),
    ("kudo.dev/v1beta1", "Instance", true),
    ("kudo.dev/v1beta1", "Operator", true),
    ("kudo.dev/v1beta1", "OperatorVersion", true),
    ("networking.istio.io/v1alpha3", "EnvoyFilter", true),
    ("policy/v1", "PodDisruptionBudget", true),
    ("rbac.authorization.k8s.io/v1", "ClusterRole", false),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", false),
    ("rbac.authorization.k8s.io/v1", "Role", true),
    ("rbac.authorization.k8s.io/v1", "RoleBinding", true),
    ("v1", "ConfigMap", true),
    ("v1", "LimitRange", true),
    ("v1", "Namespace", false),
    ("v1", "PersistentVolumeClaim", true),
    ("v1", "Pod", true),
    ("v1", "ResourceQuota", true),
    ("v1", "Secret", true),
    ("v1", "Service", true),
    ("v1", "ServiceAccount", true),
    ("autoscaling/v2", "HorizontalPodAutoscaler", true),
    ("networking.k8s.io/v1", "Ingress", true),
];

/// Path of an object by a name of its resource that `kubectl get` takes, such as `instances.kudo.dev`; `None` where its
/// kind is not in the table.
pub fn path(resource: &str, namespace: &str, name: &str) -> Option<String> {
    let resource = resource.to_lowercase();
    let (resource, group) =
        resource.split_once('.').map_or((&*resource, None), |(resource, group)| (resource, Some(group)));
    let is_named = |(api_version, kind, _): &&(&str, &str, bool)| {
        (plural(kind) == resource || kind.to_lowercase() == resource)
            && group.is_none_or(|group| api_version.split_once('/').is_some_and(|(own, _)| own == group))
    };
    let (api_version, kind, namespaced) = KINDS.iter().find(is_named)?;
    Some(joined(api_version, namespaced.then_some(namespace), &plural(kind), name))
}

/// Path of an object that may leave its namespace to kubectl; `None` where its kind is not in the table.
pub fn path_within(object: &Value, namespace: &str) -> Option<String> {
    let is_of = |(api_version, kind, _): &&(&str, &str, bool)| {
        object["apiVersion"] == **api_version && object["kind"] == **kind
    };
    let (api_version, kind, namespaced) = KINDS.iter().find(is_of)?;
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or(namespace);
    let name = object["metadata"]["name"].as_str()?;
    Some(joined(api_version, namespaced.then_some(namespace), &plural(kind), name))
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
