//! A namespace that is being terminated and cannot end: its children are deleted, and none can be made again.

use super::*;

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

/// A policy of others that protects DataPlanes from deletion, until this is dropped.
struct Protection {
    admin: Client,
    name: String,
}

impl Protection {
    fn of(ns: &Namespace<'_>, plane: &str) -> Self {
        let name = format!("protected-{}", ns.name());
        let protection = Self { admin: ns.admin(), name: name.clone() };
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail", "validations": [{"expression": "false", "message": "it is protected"}],
                "matchConstraints": {"resourceRules": [{
                    "apiGroups": [kong::API_VERSION.split('/').next()], "apiVersions": ["*"], "operations": ["DELETE"],
                    "resources": ["dataplanes"],
                }]},
            },
        });
        let binding = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {
                "policyName": name, "validationActions": ["Deny"],
                "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns.name()}}},
            },
        });
        for object in [policy, binding] {
            protection.admin.kubectl_in(&["apply", "-f", "-"], &object.to_string()).ok();
        }
        let path = format!("{}?dryRun=All", ns.path(kong::API_VERSION, "dataplanes", plane));
        wait_until("the policy is in force", CAP, || {
            let answer = protection.admin.delete(&path);
            if answer.message().contains("it is protected") { Ok(()) } else { Err(answer.to_string()) }
        });
        protection
    }
}

impl Drop for Protection {
    fn drop(&mut self) {
        for kind in ["validatingadmissionpolicybindings", "validatingadmissionpolicies"] {
            self.admin.delete(&format!("{ADMISSION}/{kind}/{}", self.name));
        }
    }
}

/// No Event can be made there.
#[test]
fn a_namespace_that_is_being_terminated_is_told_of() {
    let world = World::shared();
    if !world.cluster.has_workloads() {
        return;
    }
    let ns = world.cluster.namespace("ends");
    let plane = Plane::create(&ns, "edge", &spec());
    plane.await_well();
    let protection = Protection::of(&ns, "edge");
    let path = format!("/api/v1/namespaces/{}", ns.name());
    ns.admin().delete(&path).ok();
    plane.await_stalled("NamespaceTerminating", "because it is being terminated");
    drop(protection);
    wait_until("the namespace is gone", CAP, || {
        let answer = ns.admin().read(&path);
        if answer.code == 404 { Ok(()) } else { Err(answer.to_string()) }
    });
}
