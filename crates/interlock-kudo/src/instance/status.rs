//! The status of an Instance, borrowed from the review.

use std::borrow::Cow;
use std::cell::OnceCell;

use interlock_core::admission::review::ReviewObject;
use interlock_core::api::json::{JsonError, Raw, Scanner, SeenMembers};
use jiff::Timestamp;
use serde::Deserialize;

use super::change::baseline::Baseline;
use super::change::lock;
use super::change::lock::Lock;
use super::spec::WrittenExecution;
use super::status_wire;
use super::status_wire::StatusEntry;
use crate::api::{PlanStatus, RunRequests};

/// The status of an Instance, reduced to the fields that rules read.
#[derive(Debug, Default)]
pub struct StatusView<'a> {
    entries: Vec<StatusEntry<'a>>,
    last_applied: Option<Raw<'a>>,
    progress: Option<Raw<'a>>,
    requests: Option<Raw<'a>>,
    head: OnceCell<Option<BaselineHead<'a>>>,
}

/// The parts of `status.progress` that texts name.
#[derive(Deserialize)]
struct StartedRun {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    started: Option<Timestamp>,
}

/// The parts of the baseline that every decision needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaselineHead<'a> {
    /// Hash of the spec that was carried out.
    pub hash: Cow<'a, str>,
    /// Whether plans are pending.
    pub owes: bool,
}

impl<'a> StatusView<'a> {
    pub fn read(object: &ReviewObject<'a>) -> Result<Self, JsonError> {
        let mut status = Self::default();
        let Some(text) = object.status else { return Ok(status) };
        if !text.get().starts_with('{') {
            return Scanner::new(text.get()).error("expected an object");
        }
        let mut seen = SeenMembers::default();
        let mut plans = None;
        text.members(|name, s| match name.as_str() {
            "planStatus" => {
                seen.once(0, s).and_then(|()| s.read(status_wire::plans)).map(|read| plans = read)
            }
            "lastApplied" => {
                seen.once(1, s).and_then(|()| s.optional_value()).map(|raw| status.last_applied = raw)
            }
            // Only for texts: of several, the last.
            "progress" => s.value().map(|raw| status.progress = Some(raw)),
            "requests" => seen.once(2, s).and_then(|()| s.optional_value()).map(|raw| status.requests = raw),
            _ => s.value().map(drop),
        })?;
        if let Some(plans) = plans {
            status.entries = plans.get(status_wire::plans)?;
        }
        Ok(status)
    }

    /// The lock that this status and an execution hold.
    pub fn lock<'s>(&'s self, execution: &'s WrittenExecution<'_>) -> Option<Lock<'s>> {
        lock::lock(&execution.plan, &execution.uid, self.entries())
    }

    /// The entries of `planStatus`.
    pub fn entries(&self) -> impl Iterator<Item = lock::LockEntry<'_>> {
        self.entries.iter().map(|e| lock::LockEntry { plan: &e.plan, uid: &e.uid, status: &e.status })
    }

    /// Hash of the baseline, and whether plans are pending.
    pub fn baseline_head(&self) -> Option<&BaselineHead<'a>> {
        self.head.get_or_init(|| self.last_applied.and_then(|raw| head(raw.get()))).as_ref()
    }

    /// The baseline; `None` also where the record is not ours.
    pub fn basis(&self) -> Option<Baseline> {
        serde_json::from_str(self.last_applied?.get()).ok()
    }

    /// What requests have changed about a run; `None` also where the record is not ours.
    pub fn requests(&self) -> Option<RunRequests> {
        serde_json::from_str(self.requests?.get()).ok()
    }

    /// When a run started, for texts, if the status records that.
    pub fn started(&self, uid: &str) -> Option<Timestamp> {
        let progress: StartedRun = serde_json::from_str(self.progress?.get()).ok()?;
        progress.started.filter(|_| !uid.is_empty() && progress.uid == uid)
    }

    /// The record of a plan, for texts.
    pub fn record(&self, plan: &str) -> Option<PlanStatus> {
        let entry = self.entries.iter().find(|e| e.plan.as_str() == plan)?;
        serde_json::from_str(entry.raw.get()).ok()
    }
}

/// The head of a baseline; `None` where the record is not ours.
fn head(json: &str) -> Option<BaselineHead<'_>> {
    let (hash, owes) = status_wire::baseline_head(json).ok()?;
    Some(BaselineHead { hash: hash?.0, owes })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use interlock_core::api::stamp::{Applied, VersionRef};
    use proptest::prelude::*;

    use super::*;
    use crate::instance::change::baseline::PendingPlan;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        /// The head agrees with the whole, whatever the names of parameters are.
        #[test]
        fn the_head_of_a_baseline(
            names in prop::collection::vec("[a-z\"\\\\{:,]{0,6}|owed|\",\"owed\":\\{", 0..5),
            owes: bool,
        ) {
            let spec = Applied {
                operator_version: VersionRef { name: "a".into(), namespace: "b".into() },
                parameters: names.iter().map(|n| (n.clone().into(), n.clone().into())).collect(),
            };
            let owed = owes.then(|| ("deploy".to_owned(), PendingPlan::Failed)).into_iter().collect::<BTreeMap<_, _>>();
            let baseline = Baseline::new(&spec, owed);
            let json = serde_json::to_string(&baseline).unwrap();
            let head = head(&json).unwrap();
            prop_assert_eq!(head.hash, baseline.hash.as_str());
            prop_assert_eq!(head.owes, owes);
        }
    }
}
