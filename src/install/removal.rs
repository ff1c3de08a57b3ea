//! What an uninstallation removes, and in which order. Pure.
//!
//! An object is ours by the label that every rendered object has and by its name, so that overlays, an older
//! version and the chart are covered, and nothing that only shares a label or a name is.

use interlock_core::api::meta;
use interlock_core::api::meta::install;
use serde_json::Value;

use super::InstallOptions;

/// Label selector of rendered objects.
pub const SELECTOR: &str = "app.kubernetes.io/part-of=interlock";

/// A kind whose objects are removed, as group and kind.
pub type RemovedKind = (&'static str, &'static str);

/// First: what refuses or delays the writes of others. A dead process holds up nothing after it.
pub const GUARDS: [RemovedKind; 4] = [
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
];

/// Then the process, which would put its finalizer back.
pub const PROCESS: [RemovedKind; 1] = [("apps", "Deployment")];

/// Objects of the process, which have no label, by name in its namespace.
pub const RECORDS: [(RemovedKind, &str); 5] = [
    (("coordination.k8s.io", "Lease"), install::LEASE),
    (("", "Secret"), install::CERTIFICATE_SECRET),
    (("", "Secret"), install::TEMPLATE_KEY_SECRET),
    (("", "Secret"), install::DATA_PLANE_CA_SECRET),
    (("", "ConfigMap"), install::ENFORCED),
];

/// Last: all the rest, rights at the end.
pub const REST: [RemovedKind; 14] = [
    ("monitoring.coreos.com", "ServiceMonitor"),
    ("monitoring.coreos.com", "PrometheusRule"),
    ("cert-manager.io", "Certificate"),
    ("cert-manager.io", "Issuer"),
    ("", "Service"),
    ("policy", "PodDisruptionBudget"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("", "ResourceQuota"),
    ("", "ConfigMap"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("", "ServiceAccount"),
];

/// Kinds that keep a namespace: one that holds any of them holds something of others.
pub const IN_USE: [RemovedKind; 8] = [
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("", "Pod"),
    ("", "PersistentVolumeClaim"),
    (meta::KUDO_GROUP, "Instance"),
];

/// Whether an object of one of these kinds is one of the installation.
pub fn is_ours(object: &Value, options: &InstallOptions) -> bool {
    let text = |at: &str| object.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let (name, namespace) = (text("/metadata/name"), text("/metadata/namespace"));
    let labelled = object["metadata"]["labels"]["app.kubernetes.io/part-of"] == "interlock";
    let named = name == install::NAME
        || name.starts_with("interlock-")
        || [options.packages.name.as_str(), options.service()].contains(&name);
    // The service account of packages, and the right to act as it, may be elsewhere.
    let movable = ["ServiceAccount", "Role", "RoleBinding"].contains(&text("/kind"));
    labelled && named && (namespace.is_empty() || namespace == options.namespace || movable)
}

/// The finalizers of an Instance without ours; `None` where it has none of ours.
pub fn without_finalizer(instance: &Value) -> Option<Vec<&str>> {
    let finalizers = instance["metadata"]["finalizers"].as_array()?;
    let finalizers: Vec<&str> = finalizers.iter().filter_map(Value::as_str).collect();
    let left: Vec<&str> = finalizers.iter().copied().filter(|name| *name != meta::FINALIZER).collect();
    (left.len() < finalizers.len()).then_some(left)
}

#[cfg(test)]
mod tests {
    use interlock_core::api::object::NamespacedName;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::install::{CertificateIssuer, Layout, Part, objects};

    /// Everything that can be rendered is removed: by label and name, or as a definition, or as the namespace.
    #[test]
    fn everything_that_is_rendered_is_removed() {
        let split = InstallOptions {
            layout: Layout::Split,
            certificates: CertificateIssuer::CertManager,
            flavor_secrets: true,
            data_planes: true,
            protect_live: true,
            data_plane_certificates: true,
            packages_cluster_admin: true,
            strict_egress: true,
            packages: NamespacedName::new("packages", "deployer"),
            ..InstallOptions::default()
        };
        let mut all = objects(Part::All, &split).unwrap();
        all.extend(objects(Part::All, &InstallOptions::default()).unwrap());
        let stages = [&GUARDS[..], &PROCESS, &REST].concat();
        for object in &all {
            let kind = object["kind"].as_str().unwrap();
            if ["Namespace", "CustomResourceDefinition"].contains(&kind) {
                continue;
            }
            let group =
                object["apiVersion"].as_str().unwrap().rsplit_once('/').map_or("", |(group, _)| group);
            assert!(stages.contains(&(group, kind)), "no stage removes {kind}.{group}");
            assert!(is_ours(object, &split), "{object}");
        }
    }

    #[rstest]
    #[case::of_others(json!({"name": "interlock-watchdog", "namespace": "interlock-system"}), false)]
    #[case::labelled_by_others(json!({"name": "shop", "labels": {"app.kubernetes.io/part-of": "interlock"}}), false)]
    #[case::elsewhere(
        json!({"name": "interlock", "namespace": "shop", "labels": {"app.kubernetes.io/part-of": "interlock"}}),
        false
    )]
    #[case::ours(
        json!({"name": "interlock", "namespace": "interlock-system", "labels": {"app.kubernetes.io/part-of": "interlock"}}),
        true
    )]
    fn nothing_of_others_is_removed(#[case] metadata: Value, #[case] ours: bool) {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata});
        assert_eq!(is_ours(&object, &InstallOptions::default()), ours);
    }

    #[rstest]
    #[case(json!([meta::FINALIZER]), Some(vec![]))]
    #[case(json!(["a/b", meta::FINALIZER]), Some(vec!["a/b"]))]
    #[case(json!(["a/b"]), None)]
    #[case(json!(null), None)]
    fn only_our_finalizer_goes(#[case] finalizers: Value, #[case] left: Option<Vec<&str>>) {
        assert_eq!(without_finalizer(&json!({"metadata": {"finalizers": finalizers}})), left);
    }
}
