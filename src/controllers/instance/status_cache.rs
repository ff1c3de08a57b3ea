//! Status cache: the status that this process last wrote, to detect and undo writes of others.
//!
//! The policies deny such writes; this handles those made while the policies were absent. Until this
//! process first writes to an Instance, a previous leader's writes may still be in flight, so they are
//! accepted. So are this process's own writes whose answer was lost.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher as _;
use std::io::Read as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use flate2::read::DeflateDecoder;
use flate2::{Compress, Compression, FlushCompress, Status};
use interlock_core::api::condition::Condition;
use interlock_core::api::kudo::PlanStatus;
use interlock_core::api::meta::condition::{PLAN_RUNNING, SPEC_STAMPED};
use interlock_core::api::object::NamespacedName;
use interlock_core::api::stamp::SpecHash;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::view::InstanceView;

/// Conditions that decisions depend on.
const DECISIVE: [&str; 2] = [PLAN_RUNNING, SPEC_STAMPED];

/// The status cache of all Instances.
#[derive(Default)]
pub struct StatusCache {
    ledger: Mutex<Ledger>,
    /// Specs that this process has archived in ControllerRevisions: uid of the Instance, and the hash.
    kept: Mutex<HashMap<NamespacedName, (String, SpecHash)>>,
}

#[derive(Default)]
struct Ledger {
    known: HashMap<NamespacedName, Known>,
    press: Press,
    /// Private to this process.
    hasher: RandomState,
}

/// A cached status, compressed: it is decompressed only where it differs from the observed one.
struct Known {
    uid: String,
    /// Of the uncompressed text, so that a comparison needs no compression.
    hash: u64,
    packed: Box<[u8]>,
    source: Source,
}

/// Compresses one text after another in the same 300 KB: to allocate and clear them each time takes longer
/// than to compress a status.
struct Press(Compress);

impl Default for Press {
    fn default() -> Self {
        Self(Compress::new(Compression::fast(), false))
    }
}

impl Press {
    fn pack(&mut self, text: &[u8]) -> Box<[u8]> {
        self.0.reset();
        let mut packed = Vec::with_capacity(text.len() / 2 + 64);
        loop {
            let read = usize::try_from(self.0.total_in()).unwrap_or(usize::MAX);
            let rest = text.get(read..).unwrap_or_default();
            match self.0.compress_vec(rest, &mut packed, FlushCompress::Finish) {
                Ok(Status::Ok | Status::BufError) => packed.reserve(packed.capacity()),
                Ok(Status::StreamEnd) | Err(_) => return packed.into_boxed_slice(),
            }
        }
    }
}

/// The source of a cached status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The API server's answer to the last write of this process.
    Written,
    /// A watch or a read: the last write may be another process's.
    Found,
}

#[derive(PartialEq, Serialize, Deserialize)]
struct Said {
    entries: BTreeMap<String, PlanStatus>,
    decisive: Vec<Condition>,
}

impl Said {
    fn of(subject: &InstanceView) -> Self {
        let decisive =
            subject.conditions().into_iter().filter(|c| DECISIVE.contains(&c.type_.as_str())).collect();
        Self { entries: subject.entries().into_owned(), decisive }
    }

    /// Maps with string keys always serialise.
    fn text(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    fn unpack(packed: &[u8]) -> Option<Self> {
        let mut text = Vec::new();
        DeflateDecoder::new(packed).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

impl Ledger {
    fn note(&mut self, subject: &InstanceView, source: Source) {
        let text = Said::of(subject).text();
        let known = Known {
            uid: subject.uid().to_owned(),
            hash: self.hasher.hash_one(&text),
            packed: self.press.pack(&text),
            source,
        };
        self.known.insert(subject.key.clone(), known);
    }
}

impl StatusCache {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Caches the status, after a write of our own.
    pub fn note(&self, subject: &InstanceView) {
        self.ledger().note(subject, Source::Written);
    }

    /// Records that a write of status failed without a definite result.
    pub fn doubt(&self, key: &NamespacedName) {
        if let Some(known) = self.ledger().known.get_mut(key) {
            known.source = Source::Found;
        }
    }

    /// Whether this process last archived the spec of that hash for an Instance.
    pub fn keeps(&self, subject: &InstanceView, hash: &SpecHash) -> bool {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&subject.key).is_some_and(|(uid, known)| uid == subject.uid() && known == hash)
    }

    /// Drops the archived hash of an Instance.
    pub fn forget_kept(&self, key: &NamespacedName) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// Records that the spec of that hash is archived.
    pub fn note_kept(&self, subject: &InstanceView, hash: SpecHash) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.insert(subject.key.clone(), (subject.uid().to_owned(), hash));
    }

    /// Drops an Instance.
    pub fn forget(&self, key: &NamespacedName) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        self.ledger().known.remove(key);
    }

    /// Drops everything, as another process may have written since.
    pub fn clear(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.ledger().known.clear();
    }

    /// The merge patch that restores the status after foreign writes; `None` without any.
    pub fn restoration(&self, subject: &InstanceView) -> Option<Value> {
        let found = Said::of(subject);
        let mut ledger = self.ledger();
        let hash = ledger.hasher.hash_one(found.text());
        let known = ledger.known.get(&subject.key).filter(|known| known.uid == subject.uid());
        let known = match known {
            Some(known) if known.hash == hash => return None,
            Some(known) if known.source == Source::Written => Said::unpack(&known.packed)?,
            _ => {
                ledger.note(subject, Source::Found);
                return None;
            }
        };
        drop(ledger);
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

    /// An Instance whose plan has this status.
    fn at(status: &str) -> InstanceView {
        let object = json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
            "metadata": { "name": "demo", "namespace": "team", "uid": "u1" },
            "spec": {}, "status": { "planStatus": { "deploy": { "name": "deploy", "status": status, "uid": "r1" } } },
        });
        InstanceView::read(&NamespacedName::new("team", "demo"), Arc::new(object)).unwrap()
    }

    fn undoes(books: &StatusCache, found: &str) -> Option<String> {
        let patch = books.restoration(&at(found))?;
        patch["planStatus"]["deploy"]["status"].as_str().map(str::to_owned)
    }

    /// A lagging watch delivers a former leader's write after the state before it was cached.
    #[test]
    fn what_a_former_leader_wrote_is_learned() {
        let books = StatusCache::default();
        for found in ["IN_PROGRESS", "COMPLETE", "COMPLETE"] {
            assert_eq!(undoes(&books, found), None);
        }
    }

    #[test]
    fn what_others_write_after_this_process_is_undone() {
        let books = StatusCache::default();
        books.note(&at("IN_PROGRESS"));
        assert_eq!(undoes(&books, "IN_PROGRESS"), None);
        assert_eq!(undoes(&books, "COMPLETE").as_deref(), Some("IN_PROGRESS"));
        assert_eq!(undoes(&books, "COMPLETE").as_deref(), Some("IN_PROGRESS"), "until that is done");
    }

    /// Longer than the initial buffer, and with a used compressor.
    #[test]
    fn what_is_packed_is_unpacked() {
        let mut press = Press::default();
        let mut said = Said { entries: BTreeMap::new(), decisive: Vec::new() };
        for length in [0, 300_000_u32, 7, 70_000] {
            let entry = PlanStatus { message: Some(noise(length)), ..PlanStatus::default() };
            said.entries.insert("deploy".to_owned(), entry);
            let packed = press.pack(&said.text());
            assert!(Said::unpack(&packed).is_some_and(|unpacked| unpacked == said), "{length}");
        }
    }

    /// Letters that compress badly.
    fn noise(length: u32) -> String {
        let mut seed = 1_u32;
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b' ' + u8::try_from(seed >> 26).unwrap())
        };
        (0..length).map(|_| next()).collect()
    }

    /// The answer to the write of COMPLETE was lost; the watch delivers it.
    #[test]
    fn an_own_write_without_an_answer_is_learned() {
        let books = StatusCache::default();
        let before = at("IN_PROGRESS");
        books.note(&before);
        books.doubt(&before.key);
        assert_eq!(undoes(&books, "COMPLETE"), None);
        books.note(&at("COMPLETE"));
        assert_eq!(undoes(&books, "PENDING").as_deref(), Some("COMPLETE"));
    }
}
