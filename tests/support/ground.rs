//! A namespace with packages, and what becomes of the Instances in it.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use super::instances::idle;
use super::{Client, Cluster, Namespace, wait_until};

/// A plan that computes takes long on a machine that does other things too.
const CAP: Duration = Duration::from_secs(180);

/// A namespace with packages, and a user who may do everything in it.
pub struct Ground<'a> {
    pub ns: Namespace<'a>,
    pub user: Client,
}

impl<'a> Ground<'a> {
    /// With the OperatorVersions of a file.
    pub fn new(cluster: &'a Cluster, base: &str, package: &str) -> Self {
        let ns = cluster.namespace(base);
        let user = ns.user("alice");
        user.create_package(ns.name(), package);
        Self { ns, user }
    }

    /// Of an Instance; of all of them where the name is empty.
    pub fn path(&self, name: &str) -> String {
        self.ns.path(meta::KUDO_API_VERSION, "instances", name)
    }

    /// The Instance, which must be there.
    #[track_caller]
    pub fn get(&self, name: &str) -> Value {
        self.user.read(&self.path(name)).ok()
    }

    #[track_caller]
    pub fn create(&self, name: &str, version: &str, parameters: &Value) {
        self.user.post(&self.path(""), &instance(name, version, parameters)).ok();
    }

    #[track_caller]
    pub fn edit(&self, name: &str, parameters: &Value) {
        self.user.merge_patch(&self.path(name), &json!({"spec": {"parameters": parameters}})).ok();
    }

    /// Lets a plan go on that waits at the gate of its Instance, or will: a Service without an address.
    pub fn open(&self, name: &str) {
        let path = format!("{}/status", self.ns.path("v1", "services", &format!("{name}-gate")));
        let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
        wait_until(&format!("the gate of {name} is there"), CAP, || {
            let answer = self.ns.admin().merge_patch(&path, &status);
            if answer.code == 404 { Err(answer.to_string()) } else { Ok(answer.ok()) }
        });
    }

    #[track_caller]
    pub fn await_that(&self, name: &str, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        wait_until(&format!("{name}: {what}"), CAP, || {
            let found = self.user.read(&self.path(name));
            if found.code == 200 && holds(&found.body) { Ok(found.body) } else { Err(found.to_string()) }
        })
    }

    /// Waits until a plan has ended so, and nothing is scheduled.
    #[track_caller]
    pub fn await_plan(&self, name: &str, plan: &str, status: &str) -> Value {
        self.await_that(name, &format!("plan {plan} is {status} and nothing is scheduled"), |found| {
            // The status that observes the clear of planExecution is the last write.
            let observed = found["status"]["observedGeneration"] == found["metadata"]["generation"];
            idle(found) && observed && found["status"]["planStatus"][plan]["status"] == status
        })
    }

    /// Waits until a step of a plan is so.
    #[track_caller]
    pub fn await_step(&self, name: &str, plan: &str, step: usize, status: &str) -> Value {
        self.await_that(name, &format!("step {step} of plan {plan} is {status}"), |found| {
            found["status"]["planStatus"][plan]["phases"][0]["steps"][step]["status"] == status
        })
    }
}

/// An Instance as a user writes it.
pub fn instance(name: &str, version: &str, parameters: &Value) -> Value {
    json!({
        "apiVersion": meta::KUDO_API_VERSION,
        "kind": "Instance",
        "metadata": {"name": name},
        "spec": {"operatorVersion": {"name": version}, "parameters": parameters},
    })
}
