//! Plan requests: a policy decides which users may make them, admission validates everything else.

use interlock_core::admission::WebhookEndpoint;
use interlock_core::api::meta;
use rstest::rstest;
use serde_json::{Value, json};

use super::{ALICE, World, idle, manifest};

const RUN: &str = "22222222-2222-4222-8222-222222222222";

/// An Instance whose plan `deploy` has this status.
fn running(status: &str) -> Value {
    let mut object = idle(json!({"NODES": "3"}));
    object["spec"]["planExecution"] = json!({"planName": "deploy", "uid": RUN, "status": "NEVER_RUN"});
    object["status"]["planStatus"] = json!({"deploy": {"uid": RUN, "status": status}});
    object
}

fn asking(request: &str, reason: &str) -> Value {
    json!({"metadata": {"annotations": {meta::REQUEST: request, meta::REASON: reason}}})
}

fn annotations(object: &Value) -> &Value {
    &object["metadata"]["annotations"]
}

#[rstest]
fn a_request_is_admitted_on_a_locked_instance_and_who_asks_is_recorded(
    #[values(World::strict(), World::same_plan())] world: World,
) {
    let mut patch = asking(&format!("abort/{RUN}/nonce-01"), "enough");
    patch["metadata"]["annotations"][meta::REQUESTED_BY] = json!("somebody else");
    let said = world.merge(&running("IN_PROGRESS"), patch);
    said.assert_allowed();
    assert_eq!(annotations(&said.object)[meta::REQUESTED_BY], ALICE);
    assert_eq!(said.object["spec"], running("IN_PROGRESS")["spec"]);
}

#[rstest]
#[case::shape("abort", "why", "VERB/RUN-UID/NONCE")]
#[case::verb(&format!("promote/{RUN}/nonce-01"), "why", "\"promote\" is no verb: write abort, abort-revert, retry,")]
#[case::nonce(&format!("abort/{RUN}/n"), "why", "\"n\" is no nonce")]
#[case::no_reason(&format!("abort/{RUN}/nonce-01"), "", "a reason is required")]
#[case::two_lines(&format!("abort/{RUN}/nonce-01"), "a\nb", "write one line")]
#[case::another_run(
    "abort/11111111-1111-4111-8111-111111111111/nonce-01",
    "why",
    "none of this Instance's; plan deploy runs now"
)]
#[case::retry_of_what_runs(&format!("retry/{RUN}/nonce-01"), "why", "has not ended")]
#[case::resume_of_what_goes_on(&format!("resume/{RUN}/nonce-01"), "why", "is not paused")]
#[case::adopt_of_what_runs(&format!("adopt/{RUN}/nonce-01"), "why", "has not ended")]
#[case::nothing_to_go_back_to(&format!("abort-revert/{RUN}/nonce-01"), "why", "nothing to go back to")]
#[case::used(&format!("abort/{RUN}/nonce-99"), "why", "was carried out already")]
fn what_cannot_be_carried_out_is_refused(#[case] request: &str, #[case] reason: &str, #[case] why: &str) {
    let mut old = running("IN_PROGRESS");
    let used = json!([{"plan": "deploy", "uid": "u", "result": "FATAL_ERROR",
        "asked": [{"verb": "abort", "reason": "r", "nonce": "nonce-99"}]}]);
    old["metadata"]["annotations"][meta::HISTORY] = json!(used.to_string());
    World::strict().merge(&old, asking(request, reason)).assert_refused("verb-request", why);
}

/// What may be asked of a run depends on what requests have changed about it.
#[rstest]
#[case::pause("pause", "IN_PROGRESS", json!(null), None)]
#[case::restart("restart", "IN_PROGRESS", json!(null), None)]
#[case::pause_twice("pause", "IN_PROGRESS", json!({"paused": {"since": "2026-01-01T00:00:00Z", "reason": "r"}}), Some("is paused already"))]
#[case::resume("resume", "IN_PROGRESS", json!({"paused": {"since": "2026-01-01T00:00:00Z", "reason": "r"}}), None)]
#[case::adopt("adopt", "FATAL_ERROR", json!({"heldBy": [{"kind": "Secret", "name": "s", "uid": "u"}]}), None)]
#[case::nothing_to_adopt("adopt", "FATAL_ERROR", json!({"heldBy": []}), Some("there is nothing to adopt"))]
#[case::forged("adopt", "FATAL_ERROR", json!({"heldBy": "all"}), Some("there is nothing to adopt"))]
fn what_can_be_asked_depends_on_what_was_asked(
    #[case] verb: &str,
    #[case] status: &str,
    #[case] requests: Value,
    #[case] why: Option<&str>,
) {
    let mut old = running(status);
    if !requests.is_null() {
        old["status"]["requests"] = requests;
        old["status"]["requests"]["run"] = json!(RUN);
    }
    let said = World::strict().merge(&old, asking(&format!("{verb}/{RUN}/nonce-01"), "why"));
    match why {
        None => said.assert_allowed(),
        Some(why) => said.assert_refused("verb-request", why),
    }
}

#[test]
fn a_request_is_made_alone() {
    let mut patch = asking(&format!("retry/{RUN}/nonce-01"), "why");
    patch["spec"] = json!({"parameters": {"NODES": "5"}});
    let said = World::strict().merge(&running("FATAL_ERROR"), patch);
    said.assert_refused("verb-request", "the spec changes in the same write");
}

#[test]
fn who_asked_and_why_stay_while_the_request_is_there() {
    let mut old = running("IN_PROGRESS");
    json_patch::merge(&mut old, &asking(&format!("abort/{RUN}/nonce-01"), "why"));
    old["metadata"]["annotations"][meta::REQUESTED_BY] = json!("bob");
    for change in [
        json!({meta::REASON: "other"}),
        json!({meta::REQUESTED_BY: "alice"}),
        json!({meta::REQUESTED_BY: null}),
    ] {
        let said = World::strict().merge(&old, json!({"metadata": {"annotations": change}}));
        assert_eq!(annotations(&said.object), annotations(&old), "{change}");
    }
    // The request may be withdrawn.
    let said = World::strict().merge(&old, json!({"metadata": {"annotations": {meta::REQUEST: null}}}));
    said.assert_allowed();
    assert_eq!(said.patch, Value::Null);
}

#[test]
fn a_copied_manifest_asks_nothing() {
    let mut object = manifest(json!({}));
    json_patch::merge(&mut object, &asking(&format!("abort/{RUN}/nonce-01"), "why"));
    let said = World::strict().create(object.clone());
    said.assert_allowed();
    assert!(
        annotations(&said.object)[meta::REQUEST].is_null()
            && annotations(&said.object)[meta::REASON].is_null()
    );
    let review = super::review("CREATE", "Instance", object, Value::Null);
    assert!(!World::strict().ask(WebhookEndpoint::Validate, &review).allowed());
}

/// The policy that checks the user's read access runs before the validating call.
#[test]
fn what_is_in_another_namespace_is_not_told_by_mutation() {
    let mut version = super::kafka("kafka-2", "2.0.0");
    version["metadata"]["namespace"] = json!("shared");
    let world = World::strict().with(version);
    let mut object = manifest(json!({"NOBODY": "1"}));
    object["spec"]["operatorVersion"] = json!({"name": "kafka-2", "namespace": "shared"});
    let review = super::review("CREATE", "Instance", object.clone(), Value::Null);
    assert!(world.ask(WebhookEndpoint::Mutate, &review).allowed());
    world.create(object.clone()).assert_refused("parameter-unknown", "NOBODY");
    object["spec"]["parameters"] = json!({});
    let said = world.create(object);
    said.assert_allowed();
    assert_eq!(said.stamp()["spec"]["operatorVersion"]["namespace"], "shared");
}
