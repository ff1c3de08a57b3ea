//! What may be asked of a rollout: a promotion of what is staged, and its end.

use interlock_core::api::stamp::SpecHash;
use serde_json::Value;
use thiserror::Error;

use crate::api::stamp::NoStamp;
use crate::data_plane::live_spec;
use crate::data_plane::rollout::promotion::staged_hash;
use crate::data_plane::rollout::report::changes::{LiveSpec, StagedChanges, StagedState};
use crate::data_plane::rollout::report::{ReportedRollout, RolloutPhase};
use crate::data_plane::rollout::sourced_flavor;

/// Why a rollout cannot be promoted or aborted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VerbRefusal {
    /// The spec has no strategy that stages changes.
    #[error("nothing is staged: without spec.deployment.rollout.strategy.blueGreen changes are live at once")]
    InPlace,
    /// The spec is the live one.
    #[error("nothing is staged: the spec is what is live")]
    NothingStaged,
    /// What is live is not recorded.
    #[error("what is live is not known, and so what is staged: {0}")]
    Unrecorded(NoStamp),
    /// What is live is kept elsewhere, and was not read.
    #[error("the live spec {0} is kept in a ControllerRevision that was not read")]
    Referenced(String),
    /// What is staged is not in the spec, but in what its router flavor comes from.
    #[error("the spec is what is live; what is staged is {0}")]
    SourcedFlavor(String),
    /// A promotion is under way.
    #[error("a promotion is in progress, and cannot be taken back")]
    InProgress,
}

/// The end of a rollout.
#[derive(Clone, Debug, PartialEq)]
pub struct Abort {
    /// The spec to write: the live one, with the rollout and the immediate fields as written.
    pub spec: Value,
    /// What that undoes.
    pub undone: StagedChanges,
}

/// The hash of the spec that a promotion of an object makes live, where something is staged.
pub fn promote(object: &Value, kept: Option<&Value>) -> Result<SpecHash, VerbRefusal> {
    let spec = &object["spec"];
    if !live_spec::is_staged(spec) {
        return Err(VerbRefusal::InPlace);
    }
    match StagedState::of(&LiveSpec::of(object, kept), spec) {
        StagedState::Nothing if sourced_flavor::staged(&object["status"]).is_some() => Ok(staged_hash(spec)),
        StagedState::Nothing => Err(VerbRefusal::NothingStaged),
        StagedState::Unknown(why) => Err(VerbRefusal::Unrecorded(why)),
        StagedState::Fields(_) | StagedState::Something => Ok(staged_hash(spec)),
    }
}

/// How to end the rollout of an object, where something is staged.
pub fn abort(object: &Value, kept: Option<&Value>) -> Result<Abort, VerbRefusal> {
    promote(object, kept)?;
    if ReportedRollout::of(object).is_some_and(|found| found.phase() == RolloutPhase::Promoting) {
        return Err(VerbRefusal::InProgress);
    }
    let live = match LiveSpec::of(object, kept) {
        LiveSpec::Known(live) => live,
        LiveSpec::Referenced(hash) => return Err(VerbRefusal::Referenced(hash.to_string())),
        LiveSpec::Unrecorded(why) => return Err(VerbRefusal::Unrecorded(why)),
    };
    let spec = &object["spec"];
    if let (StagedState::Nothing, Some(what)) =
        (StagedState::of(&LiveSpec::Known(live.clone()), spec), sourced_flavor::staged(&object["status"]))
    {
        return Err(VerbRefusal::SourcedFlavor(what.to_owned()));
    }
    Ok(Abort { spec: live_spec::restored(&live, spec), undone: StagedChanges::between(&live, spec) })
}

#[cfg(test)]
mod tests {
    use interlock_core::api::meta;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn spec(image: &str, replicas: i32) -> Value {
        json!({"deployment": {"rollout": {"strategy": {"blueGreen": {}}}, "replicas": replicas,
            "podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": image}]}}}})
    }

    fn plane(written: Value, reason: &str) -> Value {
        let live = live_spec::after(None, &spec("a", 3));
        let stamp = json!({"v": 1, "hash": SpecHash::of(&live.to_string()), "spec": live});
        json!({"spec": written, "metadata": {"annotations": {meta::LAST_APPLIED_SPEC: stamp.to_string()}},
            "status": {"rollout": {"conditions": [{"type": "RolledOut", "reason": reason}]}}})
    }

    fn in_place() -> Value {
        let mut object = plane(spec("b", 3), "Progressing");
        object["spec"]["deployment"].as_object_mut().unwrap().remove("rollout");
        object
    }

    fn unrecorded() -> Value {
        let mut object = plane(spec("b", 3), "Progressing");
        object["metadata"] = json!({});
        object
    }

    fn referenced() -> Value {
        let mut object = plane(spec("b", 3), "Progressing");
        let stamp = json!({"v": 1, "hash": SpecHash::of("x"), "ref": "ControllerRevision"});
        object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(stamp.to_string());
        object
    }

    #[rstest]
    #[case::staged(plane(spec("b", 3), "Progressing"), None, None)]
    #[case::ready(plane(spec("b", 3), "AwaitingPromotion"), None, None)]
    #[case::failed(plane(spec("b", 3), "Failed"), None, None)]
    #[case::promoting(plane(spec("b", 3), "PromotionInProgress"), None, Some(VerbRefusal::InProgress))]
    #[case::idle(
        plane(spec("a", 3), "WaitingForChange"),
        Some(VerbRefusal::NothingStaged),
        Some(VerbRefusal::NothingStaged)
    )]
    #[case::scaled(
        plane(spec("a", 9), "WaitingForChange"),
        Some(VerbRefusal::NothingStaged),
        Some(VerbRefusal::NothingStaged)
    )]
    #[case::in_place(in_place(), Some(VerbRefusal::InPlace), Some(VerbRefusal::InPlace))]
    #[case::unrecorded(
        unrecorded(),
        Some(VerbRefusal::Unrecorded(NoStamp::Missing)),
        Some(VerbRefusal::Unrecorded(NoStamp::Missing))
    )]
    #[case::referenced(referenced(), None, Some(VerbRefusal::Referenced(SpecHash::of("x").to_string())))]
    fn what_may_be_asked(
        #[case] object: Value,
        #[case] promotion: Option<VerbRefusal>,
        #[case] end: Option<VerbRefusal>,
    ) {
        assert_eq!(promote(&object, None).err(), promotion);
        assert_eq!(abort(&object, None).err(), end);
    }

    #[test]
    fn an_abort_keeps_what_is_live_at_once() {
        let object = plane(spec("b", 9), "Progressing");
        let found = abort(&object, None).unwrap();
        assert_eq!(found.spec, spec("a", 9));
        assert_eq!(found.undone.fields.len(), 1, "{:?}", found.undone);
        assert_eq!(promote(&plane(found.spec, "Progressing"), None), Err(VerbRefusal::NothingStaged));
    }
}
