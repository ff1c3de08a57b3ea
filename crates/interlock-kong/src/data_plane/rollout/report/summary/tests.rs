//! What is said about DataPlanes in every phase.

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::data_plane::live_spec;

fn spec(image: &str, flavor: &str) -> Value {
    json!({"deployment": {
        "replicas": 3, "rollout": {"strategy": {"blueGreen": {}}},
        "podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": image, "env": [
            {"name": "KONG_ROUTER_FLAVOR", "value": flavor}]}]}}}})
}

fn stamp_of(live: &Value) -> Value {
    let live = live_spec::after(None, live);
    json!({"v": 1, "hash": SpecHash::of(&live.to_string()), "spec": live, "uid": "u-1", "selector": "blue-111",
        "flavor": "traditional"})
}

fn plane(written: Value, reason: &str) -> Value {
    json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
        "metadata": {"name": "edge", "namespace": "kong", "uid": "u-1", "generation": 2,
            "annotations": {meta::LAST_APPLIED_SPEC: stamp_of(&spec("kong:3.8", "traditional")).to_string()}},
        "spec": written,
        "status": {"selector": "blue-111", "replicas": 3, "readyReplicas": 2, "rollout": {
            "deployment": {"selector": "green-22"},
            "conditions": [{"type": "RolledOut", "status": "False", "reason": reason, "message": "",
                "observedGeneration": 2, "lastTransitionTime": "2026-01-02T03:04:05Z"}]}},
    })
}

fn staged(reason: &str) -> Value {
    plane(spec("kong:3.9", "traditional_compatible"), reason)
}

fn idle() -> Value {
    plane(spec("kong:3.8", "traditional"), "WaitingForChange")
}

fn said(object: &Value) -> String {
    let summary = RolloutSummary::of(object, None);
    let hash = staged_hash(&object["spec"]);
    summary.to_string().replace(hash.short(), "HASH")
}

const LIVE: &str = "live: kong:3.8, router flavor traditional, 2 of 3 replicas ready, selector blue-111\n";
const STAGED: &str = "staged: spec HASH
  spec.deployment.podTemplateSpec.spec.containers[proxy].env[KONG_ROUTER_FLAVOR].value: traditional -> traditional_compatible
  spec.deployment.podTemplateSpec.spec.containers[proxy].image: kong:3.8 -> kong:3.9
";

#[test]
fn what_awaits_its_promotion() {
    assert_eq!(
        said(&staged("AwaitingPromotion")),
        format!(
            "DataPlane kong/edge: AwaitingPromotion, last change 2026-01-02T03:04:05Z\n{LIVE}{STAGED}\
             waits for: a promotion\n\
             next: `interlock rollout promote edge -n kong`, or `interlock rollout abort edge -n kong`\n"
        )
    );
}

#[rstest]
#[case::idle(idle(), RolloutPhase::Idle, None, None)]
#[case::staging(
    staged("Progressing"),
    RolloutPhase::Staging,
    Some("the pods of the preview"),
    Some("which takes effect when the preview is ready")
)]
#[case::promoting(staged("PromotionInProgress"), RolloutPhase::Promoting, Some("the live Services"), None)]
#[case::failed(
    staged("Failed"),
    RolloutPhase::Failed,
    Some("the cause"),
    Some("`interlock rollout abort edge -n kong`")
)]
#[case::promotion_failed(
    staged("PromotionFailed"),
    RolloutPhase::PromotionFailed,
    Some("another attempt"),
    Some("`kubectl describe dataplane edge -n kong`")
)]
#[case::unknown(
    staged("Sleeping"),
    RolloutPhase::Unknown,
    Some("the cause"),
    Some("`interlock rollout promote edge -n kong`")
)]
fn phases(
    #[case] object: Value,
    #[case] phase: RolloutPhase,
    #[case] waits_for: Option<&str>,
    #[case] next: Option<&str>,
) {
    let found = RolloutSummary::of(&object, None);
    assert_eq!(found.phase, phase);
    for (found, expected) in [(&found.waits_for, waits_for), (&found.next, next)] {
        assert_eq!(found.is_some(), expected.is_some(), "{found:?}");
        assert!(expected.is_none_or(|part| found.as_ref().unwrap().contains(part)), "{found:?}");
    }
}

#[test]
fn a_spec_that_the_controller_has_not_seen_is_being_staged() {
    let mut object = staged("WaitingForChange");
    object["status"]["rollout"]["conditions"][0]["observedGeneration"] = json!(1);
    assert_eq!(RolloutSummary::of(&object, None).phase, RolloutPhase::Staging);
    object["spec"] = spec("kong:3.8", "traditional");
    assert_eq!(RolloutSummary::of(&object, None).phase, RolloutPhase::Idle);
}

#[test]
fn the_message_of_the_condition_says_what_is_waited_for() {
    let mut object = staged("Progressing");
    object["status"]["rollout"]["conditions"][0]["message"] = json!("Preview Deployment not yet ready");
    assert_eq!(
        RolloutSummary::of(&object, None).waits_for.as_deref(),
        Some("Preview Deployment not yet ready")
    );
}

#[test]
fn without_a_strategy_nothing_is_staged() {
    let mut object = idle();
    object["spec"]["deployment"].as_object_mut().unwrap().remove("rollout");
    let text = said(&object);
    assert!(text.contains("DataPlane kong/edge: InPlace"), "{text}");
    assert!(text.contains("staged: nothing; without spec.deployment.rollout.strategy.blueGreen"), "{text}");
}

#[test]
fn nobody_carries_it_out() {
    let mut object = staged("Progressing");
    object["status"] = json!({});
    let text = said(&object);
    assert!(text.contains("DataPlane kong/edge: Unreported\n"), "{text}");
    assert!(text.contains("next: set spec.capabilities.dataplanes.mode"), "{text}");
}

#[test]
fn a_live_side_that_was_never_ready_is_starting() {
    let mut object = staged("Progressing");
    let ready = json!({"type": "Ready", "status": "False", "message": "Deployment x is not ready yet"});
    object["status"] = json!({"conditions": [ready]});
    let text = said(&object);
    assert!(text.contains("DataPlane kong/edge: Starting\n"), "{text}");
    assert!(text.contains("waits for: Deployment x is not ready yet\n"), "{text}");
}

#[rstest]
#[case::kong("true", PromotionRequest::True)]
#[case::nonsense("soon", PromotionRequest::Nonsense)]
#[case::another(&SpecHash::of("x").to_string(), PromotionRequest::AnotherSpec)]
fn requests(#[case] value: &str, #[case] request: PromotionRequest) {
    let mut object = staged("AwaitingPromotion");
    object["metadata"]["annotations"][meta::PROMOTE_WHEN_READY] = json!(value);
    let found = RolloutSummary::of(&object, None);
    assert_eq!(found.promotion, Some(request));
    assert!(found.to_string().contains("\npromotion: "), "{found}");
    let offers = found.next.is_some_and(|next| next.contains("rollout promote"));
    assert_eq!(offers, !request.is_for_this());
}

#[test]
fn a_request_that_is_left_over_is_said() {
    let mut object = idle();
    object["metadata"]["annotations"][meta::PROMOTE_WHEN_READY] = json!("true");
    let text = said(&object);
    assert!(
        text.contains("promotion: requested, with nothing staged; remove annotation gateway-operator"),
        "{text}"
    );
}

#[test]
fn a_failure_is_said_as_one() {
    let mut object = staged("Failed");
    object["status"]["rollout"]["conditions"][0]["message"] = json!("failed to ensure preview Deployment");
    let text = said(&object);
    assert!(text.contains("\nwhy: failed to ensure preview Deployment\n"), "{text}");
}

#[rstest]
#[case::missing(|object: &mut Value| drop(object["metadata"].as_object_mut().unwrap().remove("annotations")), "is missing")]
#[case::copied(|object: &mut Value| object["metadata"]["uid"] = json!("u-2"), "was copied from another object")]
fn an_unrecorded_live_spec_is_said(#[case] spoil: fn(&mut Value), #[case] why: &str) {
    let mut object = staged("AwaitingPromotion");
    spoil(&mut object);
    let text = said(&object);
    assert!(text.contains("; its spec is unknown: ") && text.contains(why), "{text}");
    assert!(text.contains("staged: unknown, as "), "{text}");
    assert!(text.contains("next: compare the spec with what the pods run"), "{text}");
}

/// As Kong's operator promotes.
#[test]
fn a_promotion_by_another_operator_makes_what_is_stored_live() {
    let mut object = staged("WaitingForChange");
    object["status"]["selector"] = json!("33333333");
    let found = RolloutSummary::of(&object, None);
    assert_eq!(
        (found.live.image.as_deref(), found.live.selector.as_deref()),
        (Some("kong:3.9"), Some("33333333"))
    );
    assert_eq!((found.staged, found.live.unknown), (None, None));
}

/// The stamp of a large spec only refers to it.
#[test]
fn a_referenced_spec_is_known_by_its_revision() {
    let mut object = staged("AwaitingPromotion");
    let live = live_spec::after(None, &spec("kong:3.8", "traditional"));
    let mut stamp = stamp_of(&live);
    stamp.as_object_mut().unwrap().remove("spec");
    stamp["ref"] = json!("ControllerRevision");
    object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(stamp.to_string());
    let text = said(&object);
    assert!(text.contains("its spec is unknown: the ControllerRevision that keeps spec"), "{text}");
    assert!(text.contains("router flavor traditional"), "{text}");
    assert!(text.contains("staged: spec HASH\n"), "{text}");
    let known = RolloutSummary::of(&object, Some(&live));
    assert_eq!(known, RolloutSummary::of(&staged("AwaitingPromotion"), None));
    let another = RolloutSummary::of(&object, Some(&json!({})));
    assert_eq!(another, RolloutSummary::of(&object, None), "its hash is another one");
    object["spec"] = spec("kong:3.8", "traditional");
    assert_eq!(RolloutSummary::of(&object, None).staged, None);
}

#[test]
fn programs_get_the_same() {
    let found = json!(RolloutSummary::of(&staged("AwaitingPromotion"), None));
    assert_eq!(
        (&found["phase"], &found["live"]["selector"]),
        (&json!("AwaitingPromotion"), &json!("blue-111"))
    );
    assert_eq!(found["staged"]["fields"][1]["staged"], "kong:3.9");
    assert_eq!(found["staged"]["hash"], json!(staged_hash(&staged("x")["spec"])));
    assert_eq!(json!(RolloutSummary::of(&idle(), None))["staged"], Value::Null);
}

/// The pods of the preview are ready and asked where the controller says so of the spec that it reports on.
#[rstest]
#[case::of_this_spec(2, "Answers", RolloutPhase::Asking)]
#[case::of_an_earlier_one(1, "Answers", RolloutPhase::Staging)]
#[case::of_the_pods(2, "Pods", RolloutPhase::Staging)]
#[case::of_a_later_version(2, "Sleep", RolloutPhase::Staging)]
fn the_reported_gate_says_more_than_the_phase(
    #[case] observed: i64,
    #[case] gate: &str,
    #[case] phase: RolloutPhase,
) {
    let mut object = staged("Progressing");
    let gates =
        json!({"type": "GatesPassed", "status": "False", "reason": gate, "observedGeneration": observed});
    object["status"]["rollout"]["conditions"].as_array_mut().unwrap().push(gates);
    assert_eq!(RolloutSummary::of(&object, None).phase, phase);
    assert_eq!(phase.as_str(), "Staging");
}

/// What the graph keeps of a DataPlane is what people are shown of it.
#[rstest]
#[case::idle(idle())]
#[case::staging(staged("Progressing"))]
#[case::awaiting(staged("AwaitingPromotion"))]
#[case::failed(staged("Failed"))]
#[case::unrecorded({
    let mut object = staged("AwaitingPromotion");
    object["metadata"]["annotations"] = json!({});
    object
})]
fn the_step_is_the_same_without_the_fields(#[case] object: Value) {
    let summary = RolloutSummary::of(&object, None);
    assert_eq!((phase_of(&object), step_of(&object)), (summary.phase, summary.step));
}
