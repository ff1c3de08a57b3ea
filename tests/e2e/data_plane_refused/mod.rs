//! What the API server refuses of a DataPlane's children is seen on the DataPlane, with the API server's own text, holds
//! up no other child, and goes on by itself once its cause is gone.

mod child;
mod for_a_while;
mod optional;
mod pods;
mod status;
mod terminating;

use std::time::Duration;

use interlock_kong::api as kong;
use serde_json::{Value, json};

use crate::rollouts_seen::switch_on;
use crate::support::answering::Answering;
use crate::support::instances::condition;
use crate::support::lasting::{Lasting, Shared};
use crate::support::{Client, Cluster, Interlock, Namespace, wait_until};

/// The longest back-off of a refused write is a minute.
const CAP: Duration = Duration::from_secs(100);

/// A control plane whose DataPlanes Interlock carries out, and what stands between both.
struct World {
    cluster: Cluster,
    answering: Answering,
    process: Interlock,
}

impl World {
    /// The one of these tests: what they do is refused by namespace or by name.
    fn shared() -> &'static Self {
        static SHARED: Lasting<World> = Lasting::new();
        SHARED.get(|| {
            let cluster = Cluster::own(&[]);
            let answering = Answering::start(&cluster, &cluster.user("interlock", &[]));
            let process = Interlock::install(&cluster, &[&answering.flag()]);
            switch_on(&cluster, &process);
            World { cluster, answering, process }
        })
    }
}

impl Shared for World {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn end(&self) {
        self.process.kill();
        self.cluster.end();
    }
}

/// A DataPlane of a test.
struct Plane<'g> {
    ns: &'g Namespace<'g>,
    admin: Client,
    name: String,
}

impl<'g> Plane<'g> {
    fn create(ns: &'g Namespace<'g>, name: &str, spec: &Value) -> Self {
        let plane = Self { ns, admin: ns.admin(), name: name.to_owned() };
        let object = json!({
            "apiVersion": kong::API_VERSION, "kind": "DataPlane", "metadata": {"name": name}, "spec": spec,
        });
        plane.admin.post(&ns.path(kong::API_VERSION, "dataplanes", ""), &object).ok();
        plane
    }

    fn path(&self, resource: &str, name: &str) -> String {
        let api = match resource {
            "dataplanes" => kong::API_VERSION,
            "deployments" => "apps/v1",
            "events" => "events.k8s.io/v1",
            "horizontalpodautoscalers" => "autoscaling/v2",
            "controllerrevisions" => "apps/v1",
            _ => "v1",
        };
        self.ns.path(api, resource, name)
    }

    fn found(&self) -> Value {
        self.admin.read(&self.path("dataplanes", &self.name)).ok()
    }

    fn deployment(&self) -> String {
        format!("dataplane-{}-blue", self.name)
    }

    fn ingress(&self) -> String {
        format!("dataplane-ingress-{}", self.name)
    }

    #[track_caller]
    fn await_condition(&self, type_: &str, status: &str, reason: &str, said: &str) {
        let what = format!("{}: {type_} is {status}/{reason} and says {said:?}", self.name);
        wait_until(&what, CAP, || {
            let found = self.found();
            let is = condition(&found, type_);
            let says = is["message"].as_str().is_some_and(|message| message.contains(said));
            match is["status"] == status && is["reason"] == reason && says {
                true => Ok(()),
                false => Err(found["status"].to_string()),
            }
        });
    }

    /// `Stalled` and `Ready` say it alike.
    #[track_caller]
    fn await_stalled(&self, reason: &str, said: &str) {
        self.await_condition("Stalled", "True", reason, said);
        self.await_condition("Ready", "False", reason, said);
    }

    #[track_caller]
    fn await_well(&self) {
        self.await_condition("Ready", "True", "Ready", "");
        wait_until(&format!("{} is not stalled", self.name), CAP, || {
            let found = self.found();
            let stalled = condition(&found, "Stalled");
            if stalled.is_null() { Ok(()) } else { Err(stalled.to_string()) }
        });
    }

    #[track_caller]
    fn await_child(&self, resource: &str, name: &str) -> Value {
        wait_until(&format!("{name} is made"), CAP, || {
            let found = self.admin.read(&self.path(resource, name));
            if found.code == 200 { Ok(found.body) } else { Err(found.to_string()) }
        })
    }

    /// Waits until one Event of this reason says a text, and fails where another one says the same.
    #[track_caller]
    fn await_one_event(&self, reason: &str, said: &str) {
        wait_until(&format!("{}: an Event {reason} says {said:?}", self.name), CAP, || {
            let list = self.admin.read(&self.path("events", "")).ok();
            let is = |event: &&Value| {
                event["regarding"]["name"] == self.name
                    && event["reason"] == reason
                    && event["note"].as_str().is_some_and(|note| note.contains(said))
            };
            let events: Vec<&Value> = list["items"].as_array().into_iter().flatten().filter(is).collect();
            assert!(events.len() < 2, "{events:#?}");
            if events.is_empty() { Err(list.to_string()) } else { Ok(()) }
        });
    }
}

fn spec() -> Value {
    json!({
        "deployment": {
            "replicas": 1, "podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9"}]}},
        },
        "network": {"services": {"ingress": {"type": "ClusterIP"}}},
    })
}
