//! `instances/status`: no other user writes planStatus or our conditions.

use interlock_core::admission::WebhookEndpoint;
use interlock_core::api::meta;
use rstest::rstest;
use serde_json::{Value, json};

use super::{World, review, running};

fn write(patch: Value, user: &str) -> super::Said {
    let old = running("deploy");
    let mut object = old.clone();
    json_patch::merge(&mut object, &patch);
    let mut review = review("UPDATE", "Instance", object, old);
    review["request"]["subResource"] = json!("status");
    review["request"]["userInfo"]["username"] = json!(user);
    World::strict().ask(WebhookEndpoint::Validate, &review)
}

#[rstest]
#[case::forged_complete(
    json!({"planStatus": {"deploy": {"status": "COMPLETE"}}}),
    "status.planStatus.deploy"
)]
#[case::entry_removed(json!({"planStatus": {"deploy": null}}), "status.planStatus.deploy")]
#[case::entry_added(json!({"planStatus": {"backup": {"status": "COMPLETE"}}}), "status.planStatus.backup")]
#[case::all_removed(json!({"planStatus": null}), "status.planStatus.deploy")]
#[case::message(json!({"planStatus": {"deploy": {"message": "x"}}}), "status.planStatus.deploy")]
#[case::our_condition_removed(json!({"conditions": []}), "status.conditions[Ready]")]
#[case::last_applied(json!({"lastApplied": {"hash": "x"}}), "status.lastApplied")]
#[case::last_applied_removed(json!({"lastApplied": null}), "status.lastApplied")]
#[case::progress(json!({"progress": {"uid": "x"}}), "status.progress")]
#[case::requests(json!({"requests": {"run": "x"}}), "status.requests")]
#[case::generation(json!({"observedGeneration": 9}), "status.observedGeneration")]
#[case::our_condition_added(
    json!({"conditions": [{"type": "Stalled", "status": "True"}, running("deploy")["status"]["conditions"][0]]}),
    "status.conditions[Stalled]"
)]
fn what_is_ours_is_refused(#[case] status: Value, #[case] field: &str) {
    let said = write(json!({"status": status}), super::ALICE);
    said.assert_refused("status-owner", "written by Interlock only");
    assert_eq!(said.response["status"]["details"]["causes"][0]["field"], field);
    assert_eq!(said.code(), 422);
}

#[test]
fn the_whole_status_cannot_be_dropped() {
    assert!(!write(json!({"status": null}), super::ALICE).allowed());
}

#[test]
fn conditions_of_others_are_theirs() {
    let ours = running("deploy")["status"]["conditions"][0].clone();
    let theirs = json!({"type": "Audited", "status": "True", "reason": "Done", "message": ""});
    let said = write(json!({"status": {"conditions": [theirs, ours]}}), super::ALICE);
    said.assert_allowed();
}

#[test]
fn bookkeeping_writes_it() {
    let said =
        write(json!({"status": {"planStatus": {"deploy": {"status": "COMPLETE"}}}}), meta::CONTROLLER_USER);
    said.assert_allowed();
}
