//! The API server as a process meets it: requests answered from memory.

use std::sync::Arc;

use http::Method;
use interlock_core::api::object::meta_str;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::objects::{CONFIG_MAPS, INSTANCE, REVISIONS};
use super::package::NAMESPACE;
use super::rules::Without;

/// The name of the lease, and of the process that holds it.
pub const LEASE: &str = "interlock-leader";
pub const PROCESS: &str = "process";

/// What is stored before a request, where a process may have died or fallen asleep.
#[derive(Clone)]
pub struct Moment {
    pub cluster: Cluster,
    /// Writes of the process so far.
    pub writes: usize,
}

/// What a process finds that slept before the request of that number.
#[derive(Clone)]
pub struct Wake {
    pub before_request: usize,
    pub cluster: Cluster,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Sent {
    pub method: Method,
    pub path: String,
    pub content_type: String,
    pub body: Value,
}

/// What is answered; a refusal is a code and a reason.
pub type Answer = Result<Value, (u16, &'static str)>;

#[derive(Clone)]
pub struct Api {
    pub cluster: Cluster,
    pub without: Option<Without>,
    pub wake: Option<Wake>,
    /// One for each request so far, without Events.
    pub moments: Vec<Moment>,
    /// Writes so far, without Events.
    pub writes: usize,
    /// Writes that met a newer version.
    pub conflicts: usize,
    /// What the process saw when it fell asleep.
    asleep: Option<Cluster>,
    /// Writes that are answered and not done.
    late: Vec<Sent>,
    /// The requests, for people.
    pub log: Vec<String>,
}

impl Api {
    pub fn new(cluster: Cluster, without: Option<Without>) -> Self {
        Self {
            cluster,
            without,
            wake: None,
            moments: Vec::new(),
            writes: 0,
            conflicts: 0,
            asleep: None,
            late: Vec::new(),
            log: Vec::new(),
        }
    }

    /// The Instance as a process sees it.
    pub fn seen(without: Option<Without>, object: &Value) -> Value {
        without.map_or_else(|| object.clone(), |rule| rule.seen(object))
    }

    pub fn answer(&mut self, sent: &Sent) -> Answer {
        if sent.path == "/api/v1" {
            let kind = json!({"name": "configmaps", "namespaced": true, "kind": "ConfigMap", "verbs": [], "singularName": ""});
            return Ok(json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [kind]}));
        }
        if sent.path.ends_with(LEASE) {
            // A process that was suspended is not the holder any more.
            let is_lost = self.asleep.is_some() && self.without != Some(Without::Holder);
            let holder = if is_lost { "another" } else { PROCESS };
            let metadata = json!({"namespace": NAMESPACE, "name": LEASE});
            return Ok(json!({"metadata": metadata, "spec": {"holderIdentity": holder}}));
        }
        if sent.path.ends_with("/events") {
            self.cluster.tell(&sent.body);
            return Ok(sent.body.clone());
        }
        if let Some(wake) = self.wake.take_if(|wake| wake.before_request == self.moments.len()) {
            self.asleep = Some(std::mem::replace(&mut self.cluster, wake.cluster));
            self.log.push("(sleeps)".to_owned());
        }
        self.moments.push(Moment { cluster: self.cluster.clone(), writes: self.writes });
        let answer = self.carry_out(sent);
        let said = answer.as_ref().map_or_else(|(code, _)| *code, |_| 200);
        self.log.push(format!("{} {} {said}", sent.method, sent.path));
        if sent.method != Method::GET && answer.is_ok() {
            self.writes += 1;
        }
        self.conflicts += usize::from(said == 409);
        answer
    }

    /// The process has ended by itself: what was answered is done.
    pub fn end(&mut self) {
        let late = std::mem::take(&mut self.late);
        late.iter().for_each(|sent| drop(self.write_child(sent, true)));
    }

    fn carry_out(&mut self, sent: &Sent) -> Answer {
        let of_instance = sent.path.starts_with(INSTANCE);
        if sent.method == Method::GET {
            if sent.path == REVISIONS {
                // The package makes nothing that the inventory of an Instance lists.
                return Ok(
                    json!({"apiVersion": "apps/v1", "kind": "ControllerRevisionList", "metadata": {}, "items": []}),
                );
            }
            let stale = self.asleep.as_ref().filter(|_| of_instance && self.without == Some(Without::Proof));
            let found = stale.unwrap_or(&self.cluster).objects.get(&sent.path).ok_or((404, "NotFound"))?;
            return Ok(if of_instance { Self::seen(self.without, found) } else { Value::clone(found) });
        }
        if of_instance {
            let written = self.write_instance(sent)?;
            self.end();
            return Ok(Self::seen(self.without, &written));
        }
        if self.without == Some(Without::EffectsFirst) {
            self.late.push(sent.clone());
            let mut imagined = self.clone();
            imagined.late.clear();
            return imagined.write_child(sent, false);
        }
        self.write_child(sent, false)
    }

    fn write_instance(&mut self, sent: &Sent) -> Answer {
        let found = self.cluster.objects.instance().ok_or((404, "NotFound"))?;
        let conditional = self.without != Some(Without::Versions);
        let differs = |body: &Value| meta_str(body, "resourceVersion") != meta_str(found, "resourceVersion");
        let mut object = Value::clone(found);
        match (&sent.method, sent.content_type.as_str()) {
            (&Method::PUT, _) => {
                assert!(sent.path.ends_with("/status"), "{}", sent.path);
                if conditional && differs(&sent.body) {
                    return Err((409, "Conflict"));
                }
                object["status"] = self.status(&sent.body["status"], &found["status"]);
            }
            (_, "application/json-patch+json") => {
                let mut patch: json_patch::Patch = serde_json::from_value(sent.body.clone()).unwrap();
                if self.without == Some(Without::TestOfClear) {
                    patch.0.retain(|operation| !matches!(operation, json_patch::PatchOperation::Test(_)));
                }
                json_patch::patch(&mut object, &patch).map_err(|_| (422, "Invalid"))?;
            }
            _ => {
                if conditional && differs(&sent.body) {
                    return Err((409, "Conflict"));
                }
                json_patch::merge(&mut object, &self.patch(&sent.body));
            }
        }
        Ok(Value::clone(&self.cluster.store(INSTANCE, object)))
    }

    /// The status that is stored.
    fn status(&self, written: &Value, found: &Value) -> Value {
        let mut status = written.clone();
        match self.without {
            Some(Without::Owed) => {
                if let Some(basis) = status.get_mut("lastApplied").and_then(Value::as_object_mut) {
                    basis.remove("owed");
                }
            }
            Some(Without::PutBack) => {
                // What the process has not seen stays.
                let mut entries = found["planStatus"].clone();
                json_patch::merge(&mut entries, &written["planStatus"]);
                status["planStatus"] = entries;
            }
            Some(Without::Report) => {
                let conditions = status.get_mut("conditions").and_then(Value::as_array_mut);
                if let Some(all) = conditions {
                    all.retain(|one| one["type"] != "SpecDrift" && one["type"] != "Stalled");
                }
            }
            _ => {}
        }
        status
    }

    /// The merge patch that is applied.
    fn patch(&self, written: &Value) -> Value {
        let mut patch = written.clone();
        if self.without == Some(Without::Finalizer) {
            let metadata = patch.get_mut("metadata").and_then(Value::as_object_mut);
            metadata.map(|metadata| metadata.remove("finalizers"));
        }
        patch
    }

    fn write_child(&mut self, sent: &Sent, surely: bool) -> Answer {
        let path = match sent.method {
            Method::POST => format!("{CONFIG_MAPS}/{}", meta_str(&sent.body, "name").unwrap()),
            _ => sent.path.clone(),
        };
        assert!(path.starts_with(CONFIG_MAPS), "nobody writes {path}");
        let found: Option<Arc<Value>> = self.cluster.objects.get(&path).cloned();
        let surely = surely || self.without == Some(Without::ChildVersions);
        let current = |version: Option<&str>| {
            surely || version == found.as_ref().and_then(|found| meta_str(found, "resourceVersion"))
        };
        match sent.method {
            Method::POST => {
                if found.is_some() && !surely && self.without != Some(Without::FirstWriteCreates) {
                    return Err((409, "AlreadyExists"));
                }
                Ok(Value::clone(&self.cluster.store(&path, sent.body.clone())))
            }
            Method::PATCH => {
                let mut object = Value::clone(found.as_ref().ok_or((404, "NotFound"))?);
                if !current(meta_str(&sent.body, "resourceVersion")) {
                    return Err((409, "Conflict"));
                }
                json_patch::merge(&mut object, &sent.body);
                Ok(Value::clone(&self.cluster.store(&path, object)))
            }
            Method::DELETE => {
                found.as_ref().ok_or((404, "NotFound"))?;
                if !current(sent.body["preconditions"]["resourceVersion"].as_str()) {
                    return Err((409, "Conflict"));
                }
                self.cluster.remove(&path);
                Ok(json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}))
            }
            _ => panic!("nobody sends {sent:?}"),
        }
    }
}
