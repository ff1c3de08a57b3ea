//! Status cache: the status that this process last wrote, to detect and undo writes of others.
//!
//! The policies deny such writes; this handles those made while the policies were absent. Until this
//! process first writes to an Instance, a previous leader's writes may still be in flight, so they are
//! accepted. So are this process's own writes whose answer was lost.
//!
//! Only Instances whose status this process wrote take memory: about 1 KB of JSON for one plan and twelve
//! parameters. An Instance that is at rest when the process starts takes none.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use interlock_core::api::object::NamespacedName;
use interlock_core::api::stamp::SpecHash;
use interlock_kudo::api::{Baseline, PlanStatus, Progress, RunRequests};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::status_patch::entry_patch;
use super::view::InstanceView;

/// The status cache of all Instances.
#[derive(Default)]
pub struct StatusCache {
    written: Mutex<HashMap<NamespacedName, WrittenStatus>>,
    /// Specs that this process has archived in ControllerRevisions: uid of the Instance, and the hash.
    archived: Mutex<HashMap<NamespacedName, (String, SpecHash)>>,
}

/// The status in the API server's answer to the last write of this process.
struct WrittenStatus {
    /// Of the Instance.
    uid: String,
    /// A [`GuardedStatus`] as JSON, which takes less memory than its maps and strings.
    json: Box<str>,
}

/// The part of a status that only this process may write.
#[derive(Serialize, Deserialize)]
struct GuardedStatus {
    entries: BTreeMap<String, PlanStatus>,
    last_applied: Option<Baseline>,
    progress: Option<Progress>,
    requests: Option<RunRequests>,
}

impl GuardedStatus {
    fn of(instance: &InstanceView) -> Self {
        let status = instance.instance.status.clone().unwrap_or_default();
        Self {
            entries: status.plan_status,
            last_applied: status.last_applied,
            progress: status.progress,
            requests: status.requests,
        }
    }

    /// Maps with string keys always serialise.
    fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl StatusCache {
    fn written(&self) -> MutexGuard<'_, HashMap<NamespacedName, WrittenStatus>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn archived(&self) -> MutexGuard<'_, HashMap<NamespacedName, (String, SpecHash)>> {
        self.archived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Caches the status that the API server returned for a write of this process.
    pub fn record_write(&self, instance: &InstanceView) {
        let json = GuardedStatus::of(instance).json().into_boxed_str();
        let status = WrittenStatus { uid: instance.uid().to_owned(), json };
        self.written().insert(instance.key.clone(), status);
    }

    /// Drops the status of an Instance after a write without a definite result.
    pub fn invalidate(&self, key: &NamespacedName) {
        self.written().remove(key);
    }

    /// Whether this process last archived the spec of that hash for an Instance.
    pub fn has_archived(&self, instance: &InstanceView, hash: &SpecHash) -> bool {
        let archived = self.archived();
        archived.get(&instance.key).is_some_and(|(uid, known)| uid == instance.uid() && known == hash)
    }

    /// Drops the archived hash of an Instance.
    pub fn forget_archived(&self, key: &NamespacedName) {
        self.archived().remove(key);
    }

    /// Records that the spec of that hash is archived.
    pub fn record_archived(&self, instance: &InstanceView, hash: SpecHash) {
        self.archived().insert(instance.key.clone(), (instance.uid().to_owned(), hash));
    }

    /// Drops an Instance.
    pub fn forget(&self, key: &NamespacedName) {
        self.archived().remove(key);
        self.written().remove(key);
    }

    /// Drops everything, as another process may have written since.
    pub fn clear(&self) {
        self.archived().clear();
        self.written().clear();
    }

    /// The status of an Instance as this process last wrote it, where others have changed it since.
    fn overwritten(&self, instance: &InstanceView, found: &GuardedStatus) -> Option<GuardedStatus> {
        let written = self.written();
        let known = written.get(&instance.key).filter(|known| known.uid == instance.uid())?;
        if *known.json == *found.json() {
            return None;
        }
        serde_json::from_str(&known.json).ok()
    }

    /// The merge patch that restores the status after foreign writes; `None` without any.
    pub fn restoration(&self, instance: &InstanceView) -> Option<Value> {
        let found = GuardedStatus::of(instance);
        let known = self.overwritten(instance, &found)?;
        let mut patch = Map::new();
        if known.entries != found.entries {
            let mut entries: Map<String, Value> =
                found.entries.keys().map(|plan| (plan.clone(), Value::Null)).collect();
            for (plan, entry) in &known.entries {
                entries.insert(plan.clone(), entry_patch(entry));
            }
            patch.insert("planStatus".to_owned(), Value::Object(entries));
        }
        if known.last_applied != found.last_applied {
            patch.insert("lastApplied".to_owned(), json!(known.last_applied));
        }
        if known.progress != found.progress {
            patch.insert("progress".to_owned(), json!(known.progress));
        }
        if known.requests != found.requests {
            patch.insert("requests".to_owned(), json!(known.requests));
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

    fn undoes(cache: &StatusCache, found: &str) -> Option<String> {
        let patch = cache.restoration(&at(found))?;
        patch["planStatus"]["deploy"]["status"].as_str().map(str::to_owned)
    }

    /// A lagging watch delivers a former leader's write after the state before it was cached.
    #[test]
    fn what_a_former_leader_wrote_is_learned() {
        let cache = StatusCache::default();
        for found in ["IN_PROGRESS", "COMPLETE", "COMPLETE"] {
            assert_eq!(undoes(&cache, found), None);
        }
    }

    #[test]
    fn what_others_write_after_this_process_is_undone() {
        let cache = StatusCache::default();
        cache.record_write(&at("IN_PROGRESS"));
        assert_eq!(undoes(&cache, "IN_PROGRESS"), None);
        assert_eq!(undoes(&cache, "COMPLETE").as_deref(), Some("IN_PROGRESS"));
        assert_eq!(undoes(&cache, "COMPLETE").as_deref(), Some("IN_PROGRESS"), "until that is done");
    }

    #[test]
    fn a_long_message_is_restored_whole() {
        let cache = StatusCache::default();
        let said = |message: &str| {
            let mut instance = at("IN_PROGRESS");
            let status = instance.instance.status.as_mut().unwrap();
            status.plan_status.get_mut("deploy").unwrap().message = Some(message.to_owned());
            instance
        };
        let long = "a \"quoted\" ä\n".repeat(30_000);
        cache.record_write(&said(&long));
        assert_eq!(cache.restoration(&said(&long)), None);
        let patch = cache.restoration(&said("short")).unwrap();
        assert_eq!(patch["planStatus"]["deploy"]["message"], long);
    }

    /// The answer to the write of COMPLETE was lost; the watch delivers it.
    #[test]
    fn an_own_write_without_an_answer_is_learned() {
        let cache = StatusCache::default();
        let before = at("IN_PROGRESS");
        cache.record_write(&before);
        cache.invalidate(&before.key);
        assert_eq!(undoes(&cache, "COMPLETE"), None);
        cache.record_write(&at("COMPLETE"));
        assert_eq!(undoes(&cache, "PENDING").as_deref(), Some("COMPLETE"));
    }
}
