//! A ValidatingAdmissionPolicy of others.

use serde_json::{Value, json};

use super::{Client, Namespace};

const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";

/// A policy that denies requests in a namespace; it goes when this is dropped.
pub struct DenyingPolicy {
    admin: Client,
    pub name: String,
}

impl DenyingPolicy {
    /// Denies with a message, and a reason if any; `rule` = what it matches. It takes a moment to be in force.
    #[track_caller]
    pub fn apply(ns: &Namespace<'_>, rule: &Value, message: &str, reason: Option<&str>) -> Self {
        let name = format!("denies-{}", ns.name());
        let mut validation = json!({"expression": "false", "message": message});
        if let Some(reason) = reason {
            validation["reason"] = json!(reason);
        }
        let policy = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Fail", "validations": [validation], "matchConstraints": {"resourceRules": [rule]},
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
        let applied = Self { admin: ns.admin(), name };
        for object in [policy, binding] {
            applied.admin.kubectl_in(&["apply", "-f", "-"], &object.to_string()).ok();
        }
        applied
    }
}

impl Drop for DenyingPolicy {
    fn drop(&mut self) {
        for kind in ["validatingadmissionpolicybindings", "validatingadmissionpolicies"] {
            self.admin.delete(&format!("{REGISTRATION}/{kind}/{}", self.name));
        }
    }
}
