//! What this process last knew status to say: a write of somebody else's is found and undone.
//!
//! The guards refuse such writes; this is for those that came while the guards were absent. What
//! was written before this process first wrote to an Instance may be what a former leader wrote,
//! of which a watch may still have to tell: it is learned, and not undone. So is what this process
//! wrote without hearing what came of it.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read as _, Write as _};
use std::sync::{Mutex, PoisonError};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::subject::Subject;
use crate::api::condition::Condition;
use crate::api::kudo::PlanStatus;
use crate::api::meta::condition::{PLAN_RUNNING, SPEC_STAMPED};
use crate::api::object::NamespacedName;
use crate::api::stamp::SpecHash;

/// Conditions that decisions are made from.
const DECISIVE: [&str; 2] = [PLAN_RUNNING, SPEC_STAMPED];

/// The books of all Instances.
#[derive(Default)]
pub struct Books {
    known: Mutex<HashMap<NamespacedName, Known>>,
    /// Specs that this process has put into Secrets: uid of the Instance, and the hash.
    kept: Mutex<HashMap<NamespacedName, (String, SpecHash)>>,
}

/// What status said, packed: it is unpacked only where it differs from what is found.
struct Known {
    uid: String,
    packed: Box<[u8]>,
    source: Source,
}

/// Where it is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The API server's answer to the last write of this process.
    Written,
    /// What was found: the last write may be another one.
    Found,
}

#[derive(PartialEq, Serialize, Deserialize)]
struct Said {
    entries: BTreeMap<String, PlanStatus>,
    decisive: Vec<Condition>,
}

impl Said {
    fn of(subject: &Subject) -> Self {
        let decisive =
            subject.conditions().into_iter().filter(|c| DECISIVE.contains(&c.type_.as_str())).collect();
        Self { entries: subject.entries().into_owned(), decisive }
    }

    /// Maps with string keys always serialise, and memory can always be written to.
    fn pack(&self) -> Box<[u8]> {
        let mut packed = DeflateEncoder::new(Vec::new(), Compression::fast());
        let _ = packed.write_all(&serde_json::to_vec(self).unwrap_or_default());
        packed.finish().unwrap_or_default().into_boxed_slice()
    }

    fn unpack(packed: &[u8]) -> Option<Self> {
        let mut text = Vec::new();
        DeflateDecoder::new(packed).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

impl Known {
    fn of(subject: &Subject, source: Source) -> Self {
        Self { uid: subject.uid().to_owned(), packed: Said::of(subject).pack(), source }
    }
}

impl Books {
    /// Takes down what status says, after a write of our own.
    pub fn note(&self, subject: &Subject) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(subject.key.clone(), Known::of(subject, Source::Written));
    }

    /// Takes down that a write of status failed in a way that leaves open whether it was made.
    pub fn doubt(&self, key: &NamespacedName) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get_mut(key) {
            known.source = Source::Found;
        }
    }

    /// Whether this process has put the spec of that hash into Secrets, as the last of an Instance.
    pub fn keeps(&self, subject: &Subject, hash: &SpecHash) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&subject.key).is_some_and(|(uid, known)| uid == subject.uid() && known == hash)
    }

    /// Takes down that the spec of that hash is in Secrets.
    pub fn note_kept(&self, subject: &Subject, hash: SpecHash) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(subject.key.clone(), (subject.uid().to_owned(), hash));
    }

    /// Forgets an Instance.
    pub fn forget(&self, key: &NamespacedName) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// Forgets everything, when another process may have written.
    pub fn clear(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The merge patch of the status that undoes what others wrote; `None` where nothing was.
    pub fn restoration(&self, subject: &Subject) -> Option<Value> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Known::of(subject, Source::Found);
        let own = |known: &&Known| known.uid == now.uid && known.source == Source::Written;
        let Some(known) = known.get(&subject.key).filter(own) else {
            known.insert(subject.key.clone(), now);
            return None;
        };
        if known.packed == now.packed {
            return None;
        }
        let (known, found) = (Said::unpack(&known.packed)?, Said::of(subject));
        let mut patch = Map::new();
        if known.entries != found.entries {
            let mut entries: Map<String, Value> =
                found.entries.keys().map(|plan| (plan.clone(), Value::Null)).collect();
            for (plan, entry) in &known.entries {
                let mut value = json!(entry);
                if let (Value::Object(map), None) = (&mut value, &entry.message) {
                    map.insert("message".to_owned(), Value::Null);
                }
                entries.insert(plan.clone(), value);
            }
            patch.insert("planStatus".to_owned(), Value::Object(entries));
        }
        if known.decisive != found.decisive {
            let mut conditions = subject.conditions();
            conditions.retain(|c| !DECISIVE.contains(&c.type_.as_str()));
            conditions.extend(known.decisive.iter().cloned());
            patch.insert("conditions".to_owned(), json!(conditions));
        }
        (!patch.is_empty()).then_some(Value::Object(patch))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// An Instance whose plan stands so.
    fn at(status: &str) -> Subject {
        let object = json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
            "metadata": { "name": "demo", "namespace": "team", "uid": "u1" },
            "spec": {}, "status": { "planStatus": { "deploy": { "name": "deploy", "status": status, "uid": "r1" } } },
        });
        Subject::read(&NamespacedName::new("team", "demo"), Arc::new(object)).unwrap()
    }

    fn undoes(books: &Books, found: &str) -> Option<String> {
        let patch = books.restoration(&at(found))?;
        patch["planStatus"]["deploy"]["status"].as_str().map(str::to_owned)
    }

    /// A watch that lags tells of what a former leader wrote after it is known how it stood before.
    #[test]
    fn what_a_former_leader_wrote_is_learned() {
        let books = Books::default();
        for found in ["IN_PROGRESS", "COMPLETE", "COMPLETE"] {
            assert_eq!(undoes(&books, found), None);
        }
    }

    #[test]
    fn what_others_write_after_this_process_is_undone() {
        let books = Books::default();
        books.note(&at("IN_PROGRESS"));
        assert_eq!(undoes(&books, "IN_PROGRESS"), None);
        assert_eq!(undoes(&books, "COMPLETE").as_deref(), Some("IN_PROGRESS"));
        assert_eq!(undoes(&books, "COMPLETE").as_deref(), Some("IN_PROGRESS"), "until that is done");
    }

    /// The answer to the write of COMPLETE was lost; the watch brings it.
    #[test]
    fn an_own_write_without_an_answer_is_learned() {
        let books = Books::default();
        let before = at("IN_PROGRESS");
        books.note(&before);
        books.doubt(&before.key);
        assert_eq!(undoes(&books, "COMPLETE"), None);
        books.note(&at("COMPLETE"));
        assert_eq!(undoes(&books, "PENDING").as_deref(), Some("COMPLETE"));
    }
}
