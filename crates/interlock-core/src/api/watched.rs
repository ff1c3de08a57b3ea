//! Built-in kinds: we watch the objects that packages made, while an Instance's package makes some.
//!
//! Each row yields a role and a watch. Secrets are not among them: a right to list them is a right
//! to read them all, so plans read them by name. Custom kinds are watched as well, where the
//! administrator grants it.

use serde_json::Value;

/// A kind that is built into the API server.
#[derive(Clone, Copy, Debug)]
pub struct BuiltIn {
    /// API group, empty for core.
    pub group: &'static str,
    /// API version without the group.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural, as in the path.
    pub plural: &'static str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

/// The kinds, by group.
pub const BUILT_IN: &[BuiltIn] = &[
    namespaced("", "v1", "ConfigMap", "configmaps"),
    namespaced("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    namespaced("", "v1", "Pod", "pods"),
    namespaced("", "v1", "Service", "services"),
    namespaced("", "v1", "ServiceAccount", "serviceaccounts"),
    namespaced("apps", "v1", "DaemonSet", "daemonsets"),
    namespaced("apps", "v1", "Deployment", "deployments"),
    namespaced("apps", "v1", "StatefulSet", "statefulsets"),
    namespaced("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    namespaced("batch", "v1", "CronJob", "cronjobs"),
    namespaced("batch", "v1", "Job", "jobs"),
    namespaced("networking.k8s.io", "v1", "Ingress", "ingresses"),
    namespaced("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
    namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    namespaced("rbac.authorization.k8s.io", "v1", "Role", "roles"),
    namespaced("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings"),
    cluster_wide("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles"),
    cluster_wide("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings"),
];

const fn namespaced(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> BuiltIn {
    BuiltIn { group, version, kind, plural, namespaced: true }
}

const fn cluster_wide(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> BuiltIn {
    BuiltIn { group, version, kind, plural, namespaced: false }
}

/// Label of ClusterRoles whose rules are added to those of the controller: `get`, `list` and
/// `watch` of custom kinds that packages make.
pub const AGGREGATE: &str = "rbac.interlock.dev/aggregate-to-watch";

/// The labelled objects of a built-in kind. Interlock does not read the others of the kind, so a
/// watch of the labelled ones has a name of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labelled {
    /// API group, empty for core.
    pub group: &'static str,
    /// Kind of the objects.
    pub kind: &'static str,
    /// The label.
    pub label: &'static str,
    /// Its value; `None` matches any.
    pub value: Option<&'static str>,
    /// Name of the watch, in place of the kind.
    pub name: &'static str,
}

impl Labelled {
    /// The label selector.
    pub fn selector(&self) -> String {
        match self.value {
            Some(value) => format!("{}={value}", self.label),
            None => self.label.to_owned(),
        }
    }

    /// Whether an object of the kind is one of them.
    pub fn holds(&self, object: &Value) -> bool {
        let found = object["metadata"]["labels"][self.label].as_str();
        found.is_some_and(|found| self.value.is_none_or(|value| value == found))
    }
}
