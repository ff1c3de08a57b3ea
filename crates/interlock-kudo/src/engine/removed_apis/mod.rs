//! Versions of Kubernetes' own APIs that packages were written for and that no supported API server serves any
//! more. An object of one becomes an object of its successor when it is rendered, so that packages of 2020 run
//! unchanged (<https://kubernetes.io/docs/reference/using-api/deprecation-guide/>).
//!
//! What the old version meant by a missing field is written out where the successor means something else. A
//! field that cannot be read is left as it is: the API server reports it.

mod autoscaling;
mod custom_resource_definition;
mod fields;
mod ingress;
mod structural;
mod workloads;

use interlock_core::api::meta;
use interlock_core::api::object::Gvk;
use interlock_core::effect::{Note, Severity};
use serde_json::{Map, Value};

/// A removed version of an API.
#[derive(Clone, Copy, Debug)]
pub struct RemovedApi {
    /// The removed `apiVersion`.
    pub api_version: &'static str,
    pub kind: &'static str,
    /// The first version of Kubernetes without it.
    pub removed_in: &'static str,
    /// The `apiVersion` that replaces it.
    pub successor: &'static str,
    convert: fn(&mut Value),
}

const fn same(
    api_version: &'static str,
    kind: &'static str,
    removed_in: &'static str,
    successor: &'static str,
) -> RemovedApi {
    with(api_version, kind, removed_in, successor, |_| ())
}

const fn with(
    api_version: &'static str,
    kind: &'static str,
    removed_in: &'static str,
    successor: &'static str,
    convert: fn(&mut Value),
) -> RemovedApi {
    RemovedApi { api_version, kind, removed_in, successor, convert }
}

/// The removed versions that have a successor, by group.
pub static REMOVED_APIS: &[RemovedApi] = &[
    with(
        "apiextensions.k8s.io/v1beta1",
        "CustomResourceDefinition",
        "1.22",
        "apiextensions.k8s.io/v1",
        custom_resource_definition::convert,
    ),
    same("apiregistration.k8s.io/v1beta1", "APIService", "1.22", "apiregistration.k8s.io/v1"),
    with("apps/v1beta1", "Deployment", "1.16", "apps/v1", workloads::apps_v1beta1_deployment),
    with("apps/v1beta1", "StatefulSet", "1.16", "apps/v1", workloads::apps_v1beta1_stateful_set),
    with("apps/v1beta2", "DaemonSet", "1.16", "apps/v1", workloads::selector),
    with("apps/v1beta2", "Deployment", "1.16", "apps/v1", workloads::selector),
    with("apps/v1beta2", "ReplicaSet", "1.16", "apps/v1", workloads::selector),
    with("apps/v1beta2", "StatefulSet", "1.16", "apps/v1", workloads::selector),
    with("autoscaling/v2beta1", "HorizontalPodAutoscaler", "1.25", "autoscaling/v2", autoscaling::v2beta1),
    same("autoscaling/v2beta2", "HorizontalPodAutoscaler", "1.26", "autoscaling/v2"),
    same("batch/v1beta1", "CronJob", "1.25", "batch/v1"),
    same("batch/v2alpha1", "CronJob", "1.21", "batch/v1"),
    same("coordination.k8s.io/v1beta1", "Lease", "1.22", "coordination.k8s.io/v1"),
    with("extensions/v1beta1", "DaemonSet", "1.16", "apps/v1", workloads::extensions_daemon_set),
    with("extensions/v1beta1", "Deployment", "1.16", "apps/v1", workloads::extensions_deployment),
    with("extensions/v1beta1", "Ingress", "1.22", "networking.k8s.io/v1", ingress::convert),
    same("extensions/v1beta1", "NetworkPolicy", "1.16", "networking.k8s.io/v1"),
    with("extensions/v1beta1", "ReplicaSet", "1.16", "apps/v1", workloads::selector),
    with("networking.k8s.io/v1beta1", "Ingress", "1.22", "networking.k8s.io/v1", ingress::convert),
    same("networking.k8s.io/v1beta1", "IngressClass", "1.22", "networking.k8s.io/v1"),
    same("node.k8s.io/v1beta1", "RuntimeClass", "1.25", "node.k8s.io/v1"),
    with("policy/v1beta1", "PodDisruptionBudget", "1.25", "policy/v1", disruption_budget),
    same("rbac.authorization.k8s.io/v1beta1", "ClusterRole", "1.22", "rbac.authorization.k8s.io/v1"),
    same("rbac.authorization.k8s.io/v1beta1", "ClusterRoleBinding", "1.22", "rbac.authorization.k8s.io/v1"),
    same("rbac.authorization.k8s.io/v1beta1", "Role", "1.22", "rbac.authorization.k8s.io/v1"),
    same("rbac.authorization.k8s.io/v1beta1", "RoleBinding", "1.22", "rbac.authorization.k8s.io/v1"),
    same("scheduling.k8s.io/v1beta1", "PriorityClass", "1.22", "scheduling.k8s.io/v1"),
    same("storage.k8s.io/v1beta1", "StorageClass", "1.22", "storage.k8s.io/v1"),
];

/// Event reason.
pub const CONVERTED: &str = "RemovedAPIConverted";

/// The row of a kind whose version was removed.
pub fn find(gvk: &Gvk) -> Option<&'static RemovedApi> {
    REMOVED_APIS.iter().find(|removed| Gvk::new(removed.api_version, removed.kind) == *gvk)
}

/// The kind as it is served: its successor, if its version was removed.
pub fn served(gvk: Gvk) -> Gvk {
    find(&gvk).map_or(gvk, |removed| Gvk::new(removed.successor, removed.kind))
}

/// The object as an object of the successor, annotated with what it was; unchanged if its version was not
/// removed.
pub fn convert(mut object: Value) -> Value {
    let Some(removed) = Gvk::of(&object).as_ref().and_then(find) else { return object };
    object["apiVersion"] = removed.successor.into();
    fields::annotate(&mut object, meta::CONVERTED_FROM, removed.api_version);
    (removed.convert)(&mut object);
    object
}

/// The report of an object that was converted.
pub fn note(object: &Value, key: &dyn std::fmt::Display) -> Option<Note> {
    let from = object["metadata"]["annotations"].get(meta::CONVERTED_FROM)?.as_str()?;
    let kind = object["kind"].as_str()?;
    let removed = find(&Gvk::new(from, kind))?;
    let message = format!(
        "{key} is written as {} in its template; Kubernetes {} removed that version, so it was applied as {}: \
         change the template of the package",
        removed.api_version, removed.removed_in, removed.successor
    );
    Some(Note { severity: Severity::Warning, reason: CONVERTED.to_owned(), message })
}

/// An empty selector selected no pods in v1beta1, and selects all of the namespace in v1.
fn disruption_budget(object: &mut Value) {
    let Some(spec) = fields::spec(object) else { return };
    if spec.get("selector").and_then(Value::as_object).is_some_and(Map::is_empty) {
        spec.remove("selector");
    }
}

#[cfg(test)]
mod tests;
