//! Projection: the state if all writes succeed, which shows how far a run can get with one proof.

use std::sync::Arc;

use serde_json::Value;

use interlock_core::effect::Effect;
use interlock_core::engine::lookup::{Found, KindServed, Observed, Query};

/// The observed state plus the expected answers of planned writes.
pub(super) struct Projection(Observed);

impl From<&Observed> for Projection {
    fn from(observed: &Observed) -> Self {
        Self(observed.clone())
    }
}

impl Projection {
    /// Hands the state to another thread, until [`Self::take_back`].
    pub(super) fn lend(&mut self) -> Observed {
        std::mem::take(&mut self.0)
    }

    /// Takes the state back.
    pub(super) fn take_back(&mut self, observed: Observed) {
        self.0 = observed;
    }

    /// Adds the results of a lookup.
    pub(super) fn see(&mut self, observed: &Observed, need: &Query) {
        match need {
            Query::Kind(gvk) => {
                let served = observed.kinds.get(gvk).copied().unwrap_or(KindServed::Unknown);
                self.0.kinds.insert(gvk.clone(), served);
            }
            Query::Inventory => self.0.inventory.clone_from(&observed.inventory),
            Query::Digest(key) => {
                let digest = observed.digests.get(key).map(|digest| (key.clone(), digest.clone()));
                self.0.digests.extend(digest);
            }
            Query::PodFailure(key) => {
                let report = observed.pod_failures.get(key).map(|report| (key.clone(), report.clone()));
                self.0.pod_failures.extend(report);
            }
            Query::File(file) => {
                let read = observed.files.get(file).map(|read| (file.clone(), read.clone()));
                self.0.files.extend(read);
            }
            Query::Object(key) | Query::Certainly(key) => {
                self.0.failures.remove(key);
                if let Some(seen) = observed.objects.get(key) {
                    self.0.objects.insert(key.clone(), seen.clone());
                }
                if let Some(failure) = observed.failures.get(key) {
                    self.0.failures.insert(key.clone(), failure.clone());
                }
            }
        }
    }

    /// Adds the expected answer of a write.
    pub(super) fn write(&mut self, write: Effect) {
        let Some(key) = write.key() else { return };
        let seen = match write {
            Effect::Create { object } => Found::Present(Arc::new(object)),
            Effect::Patch { patch, .. } => match self.0.objects.get(&key) {
                Some(Found::Present(current)) => {
                    let mut object = Value::clone(current);
                    json_patch::merge(&mut object, &patch);
                    Found::Present(Arc::new(object))
                }
                _ => Found::Absent,
            },
            Effect::Delete { .. } => Found::Absent,
            // The engine wants none of these: a run ends at what they would answer.
            Effect::Apply { .. } | Effect::Status { .. } | Effect::Event { .. } | Effect::Healed { .. } => {
                return;
            }
        };
        self.0.objects.insert(key, seen);
    }
}
