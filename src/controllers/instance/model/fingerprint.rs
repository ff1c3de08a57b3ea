//! What decides whether two situations are the same: versions, generations and times left out, runs distinguished by
//! where their uid stands.
//!
//! Situations are merged only where they behave the same: what the ledger knows of a uid or a spec counts wherever
//! an object names it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use interlock_core::api::meta;
use interlock_core::kinds::instance::change::uid;
use serde_json::Value;

use super::cluster::Cluster;
use super::ledger::Ledger;
use super::situation::{Situation, Sleeper};

/// Members that tell no states apart.
const PASSING: [&str; 5] = [
    "resourceVersion",
    "generation",
    "observedGeneration",
    meta::HISTORY,
    "kudo.dev/last-plan-execution-uid",
];

/// The key of a situation.
pub fn fingerprint(situation: &Situation) -> u64 {
    let mut print = Fingerprint::default();
    print.cluster(&situation.cluster);
    if let Some(Sleeper { cached, before_request, left }) = &situation.sleeper {
        print.add(before_request);
        print.cluster(cached);
        print.versions(left, &situation.cluster);
    }
    print.hasher.finish()
}

/// What distinguishes an object, and what it names.
pub struct Shape {
    hash: u64,
    named: Vec<Named>,
}

/// A text whose meaning depends on what else is there.
enum Named {
    /// Which uid it is tells no states apart, but where else it stands does.
    Uid(Box<str>),
    /// The hash of a spec.
    Spec(Box<str>),
}

impl Shape {
    pub fn of(object: &Value) -> Self {
        let mut shape = Shaping::default();
        let observed = object["metadata"]["generation"] == object["status"]["observedGeneration"];
        observed.hash(&mut shape.hasher);
        shape.value(object);
        Self { hash: shape.hasher.finish(), named: shape.named }
    }
}

#[derive(Default)]
struct Shaping {
    hasher: DefaultHasher,
    named: Vec<Named>,
}

impl Shaping {
    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                for (name, member) in members.iter().filter(|(name, _)| !PASSING.contains(&name.as_str())) {
                    name.hash(&mut self.hasher);
                    self.value(member);
                }
                0_u8.hash(&mut self.hasher);
            }
            Value::Array(items) => {
                items.len().hash(&mut self.hasher);
                items.iter().for_each(|item| self.value(item));
            }
            Value::String(text) => self.text(text),
            scalar => scalar.hash(&mut self.hasher),
        }
    }

    fn text(&mut self, text: &str) {
        if uid::is_version_5(text) {
            return self.named.push(Named::Uid(text.into()));
        }
        if text.starts_with('{')
            && let Ok(json @ Value::Object(_)) = serde_json::from_str::<Value>(text)
        {
            return self.value(&json);
        }
        if text.starts_with("sha256:") {
            self.named.push(Named::Spec(text.into()));
        }
        text.hash(&mut self.hasher);
    }
}

#[derive(Default)]
struct Fingerprint<'a> {
    hasher: DefaultHasher,
    /// Uids in the order in which they are met.
    uids: HashMap<&'a str, usize>,
}

impl<'a> Fingerprint<'a> {
    fn add(&mut self, part: impl Hash) {
        part.hash(&mut self.hasher);
    }

    fn cluster(&mut self, cluster: &'a Cluster) {
        let ledger = &*cluster.ledger;
        for (path, stored) in cluster.objects.all() {
            self.add((path, stored.shape.hash));
            for named in &stored.shape.named {
                match named {
                    Named::Uid(uid) => self.uid(uid, ledger),
                    Named::Spec(hash) => self.add(ledger.is_known(hash)),
                }
            }
        }
        for (plan, run) in &ledger.runs {
            self.add((plan, &run.params));
            self.uid(&run.uid, ledger);
        }
        self.add((&ledger.first, &ledger.last));
        let open = ledger.promised.as_ref().filter(|uid| !ledger.uids.contains(*uid));
        self.add(open.is_some());
        open.into_iter().for_each(|uid| self.uid(uid, ledger));
    }

    fn uid(&mut self, uid: &'a str, ledger: &Ledger) {
        let next = self.uids.len();
        let met = *self.uids.entry(uid).or_insert(next);
        self.add((met, ledger.uids.contains(uid)));
    }

    /// Which objects one cluster has at the version that another has.
    fn versions(&mut self, one: &Cluster, other: &Cluster) {
        let version = |cluster: &Cluster, path: &String| {
            cluster.objects.get(path).map(|object| object["metadata"]["resourceVersion"].clone())
        };
        for (path, _) in one.objects.all().chain(other.objects.all()) {
            self.add((path, version(one, path) == version(other, path)));
        }
    }
}
