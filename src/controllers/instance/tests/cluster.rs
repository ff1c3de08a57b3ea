//! The stored objects, and what Kubernetes does with them by itself.

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::ledger::Ledger;
use super::objects::{INSTANCE, Objects};

/// Every time that is stored: when a state was reached tells no states apart.
static NOW: LazyLock<String> = LazyLock::new(|| {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap().to_string()
});

/// Which cluster it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity(usize, usize);

/// The objects of one state, shared with the states that have them too.
#[derive(Clone, Default)]
pub struct Cluster {
    pub objects: Objects,
    version: u64,
    pub ledger: Arc<Ledger>,
}

impl Cluster {
    /// Tells clusters apart that are alive: those of one identity are the same down to their versions.
    pub fn identity(&self) -> Identity {
        Identity(self.objects.address(), Arc::as_ptr(&self.ledger) as usize)
    }

    fn fresh_uid(&self, path: &str) -> String {
        Uuid::new_v5(&Uuid::NAMESPACE_URL, format!("{path} {}", self.version).as_bytes()).to_string()
    }

    /// Stores an object under a new version, if it has changed; returns it as it is then.
    pub fn store(&mut self, path: &str, mut object: Value) -> Arc<Value> {
        fix_times(&mut object);
        let before = self.objects.get(path).cloned();
        let metadata = before.as_ref().map(|before| &before["metadata"]);
        object["metadata"]["uid"] = match metadata {
            Some(metadata) => metadata["uid"].clone(),
            None => json!(self.fresh_uid(path)),
        };
        object["metadata"]["resourceVersion"] =
            metadata.map_or(Value::Null, |m| m["resourceVersion"].clone());
        object["metadata"]["generation"] = metadata.map_or(json!(0), |m| m["generation"].clone());
        if let Some(before) = before.as_ref().filter(|before| ***before == object) {
            return before.clone();
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let asked =
            |object: &Value| (object["spec"].clone(), object["metadata"]["deletionTimestamp"].clone());
        if before.as_ref().is_none_or(|before| asked(before) != asked(&object)) {
            let generation = object["metadata"]["generation"].as_i64().unwrap();
            object["metadata"]["generation"] = json!(generation + 1);
        }
        let object = Arc::new(object);
        self.objects.insert(path, object.clone());
        self.follow(path, before.as_deref(), &object);
        object
    }

    fn follow(&mut self, path: &str, before: Option<&Value>, object: &Arc<Value>) {
        let ledger = Arc::make_mut(&mut self.ledger);
        if path == INSTANCE {
            ledger.instance_written(before, object, &self.objects);
        } else {
            let uid = &object["metadata"]["ownerReferences"][0]["uid"];
            let owner = self.objects.instance().filter(|instance| instance["metadata"]["uid"] == *uid);
            ledger.child_written(object, owner.map(Arc::as_ref));
            if owner.is_none() {
                // The garbage collector.
                self.objects.remove(path);
            }
        }
        let held = object["metadata"]["finalizers"].as_array().is_some_and(|held| !held.is_empty());
        if object["metadata"]["deletionTimestamp"].is_string() && !held {
            ledger.instance_gone(object, &self.objects);
            // The garbage collector, again.
            self.objects.clear();
        }
    }

    /// An Event is written.
    pub fn tell(&mut self, event: &Value) {
        if event["reason"] == "CleanupSkipped" && !self.ledger.skipped {
            Arc::make_mut(&mut self.ledger).skipped = true;
        }
    }

    pub fn remove(&mut self, path: &str) {
        self.objects.remove(path);
    }

    /// A user deletes the Instance.
    pub fn delete_instance(&mut self) {
        let mut object = Value::clone(self.objects.instance().unwrap());
        object["metadata"]["deletionTimestamp"] = json!(*NOW);
        self.store(INSTANCE, object);
    }
}

fn fix_times(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(fix_times),
        Value::Array(items) => items.iter_mut().for_each(fix_times),
        Value::String(text) if is_time(text) => NOW.clone_into(text),
        _ => {}
    }
}

fn is_time(text: &str) -> bool {
    text.len() >= NOW.len() && text.as_bytes()[4] == b'-' && text.parse::<Timestamp>().is_ok()
}
