//! Facts about the API server's side of admission that Interlock is built on, pinned: what it
//! sends to webhooks, what it makes of their answers, and what `kubectl` then prints.

use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::scripted::{Call, Reaction, Scripted};
use crate::support::{Client, Cluster, Namespace, Output, wait_until};

mod answers;
mod denials;
mod requests;

const GROUP: &str = "wire.testbed.interlock.dev";

/// A kind of our own with a status subresource, so that nothing else has an opinion on it.
static CRD: LazyLock<()> = LazyLock::new(|| {
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        },
    });
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    let admin = Cluster::shared().admin();
    let crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let answer = admin.post(crds, &crd);
    assert!(matches!(answer.code, 201 | 409), "{answer}");
    wait_until("the kind is served", Duration::from_secs(60), || {
        let answer = admin.read(&format!("/apis/{GROUP}/v1/widgets"));
        if answer.code == 200 { Ok(()) } else { Err(answer.to_string()) }
    });
});

/// A namespace whose widgets are watched over by a webhook that a test scripts.
struct Wire {
    ns: Namespace<'static>,
    admin: Client,
    hook: Scripted,
}

impl Wire {
    /// Registers the webhook for each of `kinds` (`Mutating`, `Validating`) and waits until it
    /// is called.
    fn new(kinds: &[&str]) -> Self {
        let cluster = Cluster::shared();
        LazyLock::force(&CRD);
        let ns = cluster.namespace("wire");
        let (admin, hook) = (ns.admin(), Scripted::start());
        let rule = json!({
            "apiGroups": [GROUP], "apiVersions": ["v1"], "resources": ["widgets"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
        });
        for kind in kinds {
            hook.register(&admin, kind, ns.name(), ns.name(), &rule);
        }
        let wire = Self { ns, admin, hook };
        wait_until("the webhook is called", Duration::from_secs(60), || {
            wire.admin.post(&format!("{}?dryRun=All", wire.path("")), &wire.widget("probe", 0)).ok();
            let called = wire.hook.take_calls().len();
            if called == kinds.len() { Ok(()) } else { Err(format!("{called} calls")) }
        });
        wire
    }

    fn path(&self, name: &str) -> String {
        self.ns.path(&format!("{GROUP}/v1"), "widgets", name)
    }

    /// A widget with one number in its spec.
    fn widget(&self, name: &str, number: u32) -> Value {
        json!({
            "apiVersion": format!("{GROUP}/v1"),
            "kind": "Widget",
            "metadata": {"name": name},
            "spec": {"number": number},
        })
    }

    /// A widget that is there already; its creation is not among the calls.
    fn existing(&self, name: &str) -> Value {
        let object = self.admin.post(&self.path(""), &self.widget(name, 1)).ok();
        self.hook.take_calls();
        object
    }

    /// Client-side apply.
    fn apply(&self, name: &str, number: u32) -> Output {
        self.admin.kubectl_in(&["apply", "-f", "-"], &self.widget(name, number).to_string())
    }

    /// A merge patch of the number by kubectl.
    fn patch(&self, name: &str, number: u32) -> Output {
        let patch = json!({"spec": {"number": number}}).to_string();
        self.admin.kubectl(&["patch", "widget", name, "--type=merge", "-p", &patch])
    }

    /// `admission webhook "NAME"`, as messages name it.
    fn quoted(&self) -> String {
        format!("admission webhook \"{}.testbed.interlock.dev\"", self.ns.name())
    }

    fn calls(&self) -> Vec<Call> {
        self.hook.take_calls()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        for kind in ["mutating", "validating"] {
            let path = "/apis/admissionregistration.k8s.io/v1";
            self.admin.delete(&format!("{path}/{kind}webhookconfigurations/{}", self.ns.name()));
        }
    }
}
