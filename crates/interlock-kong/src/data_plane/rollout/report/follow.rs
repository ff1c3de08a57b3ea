//! Follows a promotion, or the end of what was staged, by versions of the DataPlane.

use interlock_core::api::stamp::SpecHash;
use serde_json::Value;

use crate::api::stamp::{LiveStamp, StatusSelectors};
use crate::data_plane::live_spec;
use crate::data_plane::rollout::promotion;
use crate::data_plane::rollout::promotion::{PromotionRequest, staged_hash};
use crate::data_plane::rollout::report::{ReportedRollout, RolloutPhase};

/// A requested promotion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromotionFollower {
    selector: Option<String>,
    hash: SpecHash,
}

/// How far something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RolloutProgress {
    /// It goes on: the state, in one line.
    Waiting(String),
    Done,
    /// It has failed, for this reason.
    Failed(String),
    /// The spec was changed meanwhile: another one is staged.
    Replaced,
    /// The request was taken back.
    Withdrawn,
    /// Another client has written another spec.
    Overwritten,
}

impl PromotionFollower {
    /// The promotion of what is staged in an object.
    pub fn of(object: &Value) -> Self {
        let selector = StatusSelectors::of(&object["status"]).live;
        Self { selector, hash: staged_hash(&object["spec"]) }
    }

    /// How far it is.
    pub fn progress(&self, object: &Value) -> RolloutProgress {
        let condition = ReportedRollout::of(object);
        if self.is_committed(object) {
            let followed = StatusSelectors::of(&object["status"]).live != self.selector;
            let rests = condition.as_ref().is_some_and(|found| {
                matches!(found.phase(), RolloutPhase::Idle | RolloutPhase::Grace) && found.is_current
            });
            return match followed && rests {
                true => RolloutProgress::Done,
                false => waiting(condition.as_ref()),
            };
        }
        if staged_hash(&object["spec"]) != self.hash {
            return RolloutProgress::Replaced;
        }
        if let Some(failure) = condition.as_ref().and_then(failure) {
            return failure;
        }
        match promotion::of(object).is_some_and(PromotionRequest::is_for_this) {
            true => waiting(condition.as_ref()),
            false => RolloutProgress::Withdrawn,
        }
    }

    /// Whether the staged spec is live: the stamp says so before the status, and Kong's operator, which
    /// knows no stamp, by another selector.
    fn is_committed(&self, object: &Value) -> bool {
        let selectors = StatusSelectors::of(&object["status"]);
        let moved = |selector: Option<&str>| selector.is_some() && selector != self.selector.as_deref();
        match LiveStamp::of_object(object) {
            Ok(stamp) => {
                let spec = stamp.spec().and_then(|text| serde_json::from_str::<Value>(text).ok());
                let is_this = match spec {
                    Some(spec) => staged_hash(&spec) == self.hash,
                    None => stamp.hash == live_spec::hash(&object["spec"]),
                };
                is_this && moved(stamp.selector.as_deref())
            }
            Err(_) => moved(selectors.live.as_deref()),
        }
    }
}

/// How far the end of a rollout is, whose spec was set back to what is live.
pub fn abort_progress(object: &Value) -> RolloutProgress {
    match ReportedRollout::of(object) {
        Some(found) if found.is_current && found.phase() == RolloutPhase::Idle => RolloutProgress::Done,
        Some(found) => failure(&found).unwrap_or_else(|| waiting(Some(&found))),
        None => waiting(None),
    }
}

pub(in crate::data_plane::rollout) fn failure(condition: &ReportedRollout<'_>) -> Option<RolloutProgress> {
    let failed = condition.is_current && condition.phase().has_failed();
    let said = if condition.message.is_empty() { condition.phase().as_str() } else { condition.message };
    failed.then(|| RolloutProgress::Failed(said.to_owned()))
}

pub(in crate::data_plane::rollout) fn waiting(condition: Option<&ReportedRollout<'_>>) -> RolloutProgress {
    RolloutProgress::Waiting(match condition {
        Some(condition) if condition.is_current => line(condition),
        Some(_) => "the controller has not seen this spec yet".to_owned(),
        None => format!("no controller has reported a phase ({})", RolloutPhase::Unreported),
    })
}

/// The same words as `interlock rollout status --watch`.
fn line(condition: &ReportedRollout<'_>) -> String {
    let phase = condition.phase();
    let message = Some(condition.message).filter(|message| !message.is_empty());
    match phase.waits_for_as(message) {
        // A word of another operator.
        _ if phase == RolloutPhase::Unknown => condition.reason.to_owned(),
        // What there is to say beside the promotion that was requested is in the status.
        Some(waits_for) if phase != RolloutPhase::AwaitingPromotion => {
            format!("{phase}, waits for {waits_for}")
        }
        _ => phase.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use interlock_core::api::meta;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::data_plane::live_spec;

    fn spec(image: &str) -> Value {
        json!({"deployment": {"rollout": {"strategy": {"blueGreen": {}}}, "podTemplateSpec": {"image": image}}})
    }

    /// A DataPlane with this spec, stamp (image and selector) and status selector.
    fn plane(image: &str, stamp: (&str, &str), selector: &str, reason: &str, observed: i64) -> Value {
        let live = live_spec::after(None, &spec(stamp.0)).to_string();
        let text = format!(
            "{{\"v\":1,\"hash\":\"{}\",\"spec\":{live},\"uid\":\"u-1\",\"selector\":\"{}\"}}",
            SpecHash::of(&live),
            stamp.1
        );
        json!({
            "metadata": {"uid": "u-1", "generation": 2, "annotations": {meta::LAST_APPLIED_SPEC: text,
                meta::PROMOTE_WHEN_READY: staged_hash(&spec("b"))}},
            "spec": spec(image),
            "status": {"selector": selector, "rollout": {"deployment": {"selector": "green-22"}, "conditions": [
                {"type": "RolledOut", "reason": reason, "message": "", "observedGeneration": observed}]}},
        })
    }

    fn follower() -> PromotionFollower {
        PromotionFollower::of(&plane("b", ("a", "blue-111"), "blue-111", "AwaitingPromotion", 2))
    }

    fn wait(text: &str) -> RolloutProgress {
        RolloutProgress::Waiting(text.to_owned())
    }

    #[rstest]
    #[case::asked(plane("b", ("a", "blue-111"), "blue-111", "AwaitingPromotion", 2), wait("AwaitingPromotion"))]
    #[case::not_seen(plane("b", ("a", "blue-111"), "blue-111", "WaitingForChange", 1), wait("the controller has not seen this spec yet"))]
    #[case::begun(plane("b", ("a", "blue-111"), "blue-111", "PromotionInProgress", 2), wait("Promoting, waits for the live Services to select the promoted pods"))]
    #[case::committed(plane("b", ("b", "green-22"), "blue-111", "PromotionInProgress", 2), wait("Promoting, waits for the live Services to select the promoted pods"))]
    #[case::committed_and_not_followed(plane("b", ("b", "green-22"), "blue-111", "WaitingForChange", 2), wait("Idle"))]
    #[case::followed(plane("b", ("b", "green-22"), "green-22", "PromotionInProgress", 2), wait("Promoting, waits for the live Services to select the promoted pods"))]
    #[case::done(plane("b", ("b", "green-22"), "green-22", "PromotionDone", 2), RolloutProgress::Done)]
    #[case::rests(plane("b", ("b", "green-22"), "green-22", "WaitingForChange", 2), RolloutProgress::Done)]
    #[case::edited_after_it(plane("c", ("b", "green-22"), "green-22", "WaitingForChange", 2), RolloutProgress::Done)]
    #[case::edited(plane("c", ("a", "blue-111"), "blue-111", "Progressing", 2), RolloutProgress::Replaced)]
    #[case::failed(plane("b", ("a", "blue-111"), "blue-111", "Failed", 2), RolloutProgress::Failed("Failed".to_owned()))]
    #[case::failed_before(plane("b", ("a", "blue-111"), "blue-111", "Failed", 1), wait("the controller has not seen this spec yet"))]
    // Kong's operator writes no stamp: the one that stands is superseded by the selector.
    #[case::by_kong(plane("b", ("a", "blue-111"), "33333333", "WaitingForChange", 2), RolloutProgress::Done)]
    fn a_promotion_is_followed(#[case] object: Value, #[case] progress: RolloutProgress) {
        assert_eq!(follower().progress(&object), progress);
    }

    #[test]
    fn a_request_that_is_gone_is_withdrawn() {
        let mut object = plane("b", ("a", "blue-111"), "blue-111", "AwaitingPromotion", 2);
        object["metadata"]["annotations"].as_object_mut().unwrap().remove(meta::PROMOTE_WHEN_READY);
        assert_eq!(follower().progress(&object), RolloutProgress::Withdrawn);
    }

    #[rstest]
    #[case::done("WaitingForChange", 2, RolloutProgress::Done)]
    #[case::before("WaitingForChange", 1, wait("the controller has not seen this spec yet"))]
    #[case::going_on("Progressing", 2, wait("Staging, waits for the pods of the preview"))]
    #[case::failed("Failed", 2, RolloutProgress::Failed("Failed".to_owned()))]
    fn an_abort_is_followed(#[case] reason: &str, #[case] observed: i64, #[case] progress: RolloutProgress) {
        assert_eq!(abort_progress(&plane("a", ("a", "blue-111"), "blue-111", reason, observed)), progress);
    }
}
