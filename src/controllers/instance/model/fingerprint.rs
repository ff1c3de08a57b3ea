//! What decides whether two states are the same: versions, generations and times left out, runs distinguished by
//! where their uid stands.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use interlock_core::api::meta;
use interlock_core::kinds::instance::change::uid;
use serde_json::Value;

use super::cluster::Cluster;

/// Members that tell no states apart.
const PASSING: [&str; 5] = [
    "resourceVersion",
    "generation",
    "observedGeneration",
    meta::HISTORY,
    "kudo.dev/last-plan-execution-uid",
];

/// Collects what distinguishes a state.
#[derive(Default)]
pub struct Fingerprint {
    hasher: DefaultHasher,
    /// Uids in the order in which they are met.
    uids: HashMap<String, usize>,
}

impl Fingerprint {
    pub fn add(&mut self, part: impl Hash) {
        part.hash(&mut self.hasher);
    }

    pub fn cluster(&mut self, cluster: &Cluster) {
        for (path, object) in &cluster.objects.0 {
            self.add(path);
            self.add(object["metadata"]["generation"] == object["status"]["observedGeneration"]);
            self.value(object);
        }
        let ledger = &cluster.ledger;
        for (plan, run) in &ledger.runs {
            self.add((plan, &run.params));
            self.text(&run.uid);
        }
        self.add((&ledger.first, &ledger.last));
        let open = ledger.promised.as_ref().filter(|uid| !ledger.uids.contains(*uid));
        self.add(open.is_some());
        open.into_iter().for_each(|uid| self.text(uid));
    }

    /// Which objects one cluster has at the version that another has.
    pub fn versions(&mut self, one: &Cluster, other: &Cluster) {
        let version = |cluster: &Cluster, path: &String| {
            cluster.objects.0.get(path).map(|object| object["metadata"]["resourceVersion"].clone())
        };
        for path in one.objects.0.keys().chain(other.objects.0.keys()) {
            self.add((path, version(one, path) == version(other, path)));
        }
    }

    pub fn finish(self) -> u64 {
        self.hasher.finish()
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, member) in members.iter().filter(|(name, _)| !PASSING.contains(&name.as_str())) {
                    self.add(name);
                    self.value(member);
                }
                self.add(0_u8);
            }
            Value::Array(items) => {
                self.add(items.len());
                items.iter().for_each(|item| self.value(item));
            }
            Value::String(text) => self.text(text),
            scalar => self.add(scalar),
        }
    }

    fn text(&mut self, text: &str) {
        if uid::is_version_5(text) {
            let next = self.uids.len();
            let met = *self.uids.entry(text.to_owned()).or_insert(next);
            return self.add(met);
        }
        match serde_json::from_str::<Value>(text) {
            Ok(json) if json.is_object() => self.value(&json),
            _ => self.add(text),
        }
    }
}
