//! The way back to a revision: the spec to write, and how far it is.

use interlock_core::api::meta;
use interlock_core::api::stamp::SpecHash;
use serde_json::Value;
use thiserror::Error;

use super::History;
use super::summary::live_hash;
use crate::api::condition;
use crate::data_plane::live_spec;
use crate::data_plane::rollout::promotion::staged_hash;
use crate::data_plane::rollout::report::changes::StagedChanges;
use crate::data_plane::rollout::report::follow::{RolloutProgress, failure, waiting};
use crate::data_plane::rollout::report::{ReportedRollout, RolloutPhase};

/// Numbers that a text names.
const NAMED: usize = 10;

/// Why a revision cannot be gone back to.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UndoRefusal {
    /// A promotion is under way.
    #[error("a promotion is in progress, and the spec cannot be changed until its end")]
    InProgress,
    /// No controller has recorded a revision.
    #[error("no revision is recorded")]
    NoHistory,
    /// There is none before the live one.
    #[error("there is no revision before the live one")]
    NoFormer,
    /// There is none with that number.
    #[error("there is no revision {number}; there are {listed}")]
    Unknown {
        number: i64,
        /// Those that there are.
        listed: String,
    },
    /// Its spec cannot be read.
    #[error("the ControllerRevisions of revision {0} do not keep its whole spec")]
    Unreadable(i64),
    /// The spec is that of the revision.
    #[error("the spec is that of revision {0} already")]
    Written(i64),
}

/// What writing the spec does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoOutcome {
    /// It is staged, and waits for a promotion.
    Staged,
    /// Nothing is staged any more: it is what is live.
    Unstaged,
    /// It takes effect at once.
    InPlace,
}

/// The way back to a revision.
#[derive(Clone, Debug, PartialEq)]
pub struct Undo {
    /// The number of the revision.
    pub revision: i64,
    /// The spec to write: that of the revision, with the rollout and the immediate fields as written.
    pub spec: Value,
    pub changes: StagedChanges,
    pub outcome: UndoOutcome,
}

/// How to go back to a revision, else to the one before the live one. `kept` is the live spec, where that was read
/// from the archive.
pub fn undo(
    object: &Value,
    kept: Option<&Value>,
    history: &History<'_>,
    to: Option<i64>,
) -> Result<Undo, UndoRefusal> {
    if ReportedRollout::of(object).is_some_and(|found| found.phase() == RolloutPhase::Promoting) {
        return Err(UndoRefusal::InProgress);
    }
    let live = live_hash(object, kept);
    let revision = match to {
        _ if history.revisions.is_empty() => return Err(UndoRefusal::NoHistory),
        Some(number) => history
            .numbered(number)
            .ok_or_else(|| UndoRefusal::Unknown { number, listed: numbers(history) })?,
        None => {
            let current = live.as_deref().and_then(|live| history.of_hash(live)).map(|live| live.number);
            let before = |number: i64| current.is_none_or(|current| number < current);
            let former = history.revisions.iter().find(|revision| before(revision.number));
            former.ok_or(UndoRefusal::NoFormer)?
        }
    };
    let written = &object["spec"];
    let former = revision.spec().ok_or(UndoRefusal::Unreadable(revision.number))?;
    if !live_spec::is_changed(&former, written) {
        return Err(UndoRefusal::Written(revision.number));
    }
    let spec = live_spec::restored(&former, written);
    let outcome = match live_spec::is_staged(written) {
        false => UndoOutcome::InPlace,
        true if live.as_deref() == Some(revision.hash) => UndoOutcome::Unstaged,
        true => UndoOutcome::Staged,
    };
    let changes = StagedChanges::between(&live_spec::after(None, written), &spec);
    Ok(Undo { revision: revision.number, spec, changes, outcome })
}

fn numbers(history: &History<'_>) -> String {
    let listed: Vec<String> =
        history.revisions.iter().take(NAMED).map(|revision| revision.number.to_string()).collect();
    let more = history.revisions.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", listed.join(", "))
}

/// How far a spec is that was written to go back: until its pods are ready, not until it is promoted.
pub fn undo_progress(hash: &SpecHash, object: &Value) -> RolloutProgress {
    if staged_hash(&object["spec"]) != *hash {
        return RolloutProgress::Overwritten;
    }
    match ReportedRollout::of(object).filter(|_| live_spec::is_staged(&object["spec"])) {
        Some(found) => {
            let rests = matches!(
                found.phase(),
                RolloutPhase::AwaitingPromotion | RolloutPhase::Grace | RolloutPhase::Idle
            );
            match found.is_current && rests {
                true => RolloutProgress::Done,
                false => failure(&found).unwrap_or_else(|| waiting(Some(&found))),
            }
        }
        None => ready_progress(object),
    }
}

/// Without a rollout: whether it is ready in its present generation.
fn ready_progress(object: &Value) -> RolloutProgress {
    let generation = object["metadata"]["generation"].as_i64();
    match condition(&object["status"], meta::condition::READY) {
        Some(ready) if ready["observedGeneration"].as_i64() < generation => {
            RolloutProgress::Waiting("the controller has not seen this spec yet".to_owned())
        }
        Some(ready) if ready["status"] == "True" => RolloutProgress::Done,
        Some(ready) => RolloutProgress::Waiting(ready["message"].as_str().unwrap_or_default().to_owned()),
        None => RolloutProgress::Waiting("no controller has reported on it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn spec(image: &str, blue_green: bool) -> Value {
        let mut spec = json!({"deployment": {"podTemplateSpec": {"image": image}}});
        if blue_green {
            spec["deployment"]["rollout"] = json!({"strategy": {"blueGreen": {}}});
        }
        spec
    }

    /// A DataPlane of generation 2 with this reason of `RolledOut`, or this status of `Ready`.
    fn plane(image: &str, blue_green: bool, reported: &str, observed: i64) -> Value {
        let condition = |type_: &str, status: &str, reason: &str| {
            json!({
                "type": type_, "status": status, "reason": reason, "message": "why", "observedGeneration": observed,
                "lastTransitionTime": "2026-01-02T03:04:05Z",
            })
        };
        let status = match blue_green {
            true => json!({"rollout": {"conditions": [condition("RolledOut", "False", reported)]}}),
            false => json!({"conditions": [condition("Ready", reported, "R")]}),
        };
        json!({"metadata": {"generation": 2}, "spec": spec(image, blue_green), "status": status})
    }

    fn wait(text: &str) -> RolloutProgress {
        RolloutProgress::Waiting(text.to_owned())
    }

    #[rstest]
    #[case::not_seen(
        plane("a", true, "WaitingForChange", 1),
        wait("the controller has not seen this spec yet")
    )]
    #[case::starts(plane("a", true, "Progressing", 2), wait("Staging, waits for why"))]
    #[case::staged(plane("a", true, "AwaitingPromotion", 2), RolloutProgress::Done)]
    #[case::promoted(plane("a", true, "PromotionDone", 2), RolloutProgress::Done)]
    #[case::what_is_live(plane("a", true, "WaitingForChange", 2), RolloutProgress::Done)]
    #[case::failed(plane("a", true, "Failed", 2), RolloutProgress::Failed("why".to_owned()))]
    #[case::failed_before(plane("a", true, "Failed", 1), wait("the controller has not seen this spec yet"))]
    #[case::overwritten(plane("b", true, "AwaitingPromotion", 2), RolloutProgress::Overwritten)]
    #[case::in_place_not_seen(
        plane("a", false, "True", 1),
        wait("the controller has not seen this spec yet")
    )]
    #[case::in_place(plane("a", false, "False", 2), wait("why"))]
    #[case::in_place_ready(plane("a", false, "True", 2), RolloutProgress::Done)]
    #[case::unreported(json!({"spec": spec("a", true)}), wait("no controller has reported on it"))]
    fn the_way_back_is_followed(#[case] object: Value, #[case] progress: RolloutProgress) {
        assert_eq!(undo_progress(&staged_hash(&spec("a", true)), &object), progress);
    }

    #[test]
    fn nothing_is_undone_during_a_promotion() {
        let object = plane("a", true, "PromotionInProgress", 2);
        assert_eq!(undo(&object, None, &History::default(), None), Err(UndoRefusal::InProgress));
    }
}
