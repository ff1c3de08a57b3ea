//! What would be seen if all went well: how far a run can get with one proof.

use std::sync::Arc;

use serde_json::Value;

use interlock_core::effect::ChildWrite;
use interlock_core::plan::observe::{Found, KindServed, Observed, Query};

/// What was seen, and what writes that were not made would be answered.
pub(super) struct Imagined(Observed);

impl From<&Observed> for Imagined {
    fn from(observed: &Observed) -> Self {
        Self(observed.clone())
    }
}

impl Imagined {
    /// Gives it away, to be asked about on another thread, until [`Self::take_back`].
    pub(super) fn lend(&mut self) -> Observed {
        std::mem::take(&mut self.0)
    }

    /// Has it again.
    pub(super) fn take_back(&mut self, observed: Observed) {
        self.0 = observed;
    }

    /// Takes in what was looked up.
    pub(super) fn see(&mut self, observed: &Observed, need: &Query) {
        match need {
            Query::Kind(gvk) => {
                let served = observed.kinds.get(gvk).copied().unwrap_or(KindServed::Unsure);
                self.0.kinds.insert(gvk.clone(), served);
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

    /// Takes in the answer that a write would have.
    pub(super) fn write(&mut self, write: ChildWrite) {
        let Some(key) = write.key() else { return };
        let seen = match write {
            ChildWrite::Create { object } => Found::Present(Arc::new(object)),
            ChildWrite::MergePatch { patch, .. } => match self.0.objects.get(&key) {
                Some(Found::Present(current)) => {
                    let mut object = Value::clone(current);
                    json_patch::merge(&mut object, &patch);
                    Found::Present(Arc::new(object))
                }
                _ => Found::Absent,
            },
            ChildWrite::Delete { .. } => Found::Absent,
        };
        self.0.objects.insert(key, seen);
    }
}
