//! Instances that came past admission and leave no room for the record of their plans.

use super::*;

fn large(bytes: usize) -> Value {
    instance("demo", &json!({"GREETING": "x".repeat(bytes)}))
}

/// The plan ends with what to do, and the Instance can be mended.
#[test]
fn a_plan_that_cannot_be_recorded_ends() {
    let subject = Subject::new("no-room");
    subject.user.post(&subject.ns.path("kudo.dev/v1beta1", "instances", ""), &large(1_571_300)).ok();
    let found = subject.await_that("nothing is scheduled, and it says why or nothing fits", |found| {
        let events =
            subject.user.kubectl(&["get", "events", "-o", "jsonpath={.items[*].note}{.items[*].message}"]);
        let idle = found["spec"]["planExecution"]["planName"].as_str().unwrap_or_default().is_empty();
        let failed = found["status"]["planStatus"]["deploy"]["status"] == "FATAL_ERROR";
        (idle || failed) && events.ok().contains("larger together")
    });
    assert!(found["metadata"]["deletionTimestamp"].is_null());
    subject.patch(&json!({"spec": {"parameters": {"GREETING": "short"}}}));
    subject.await_plan("deploy", "COMPLETE");
}

/// Its record fits no more once a plan runs.
#[test]
fn a_plan_whose_record_does_not_fit_fails_for_good() {
    let subject = Subject::created("little-room");
    // The room that is left is too little for the start of another plan.
    let size = subject.get().to_string().len();
    subject.patch(&json!({"metadata": {"annotations": {"example.com/none": "x"}}}));
    let filler = "x".repeat(1_572_864 - size - 900);
    subject.patch(&json!({"spec": {"parameters": {"GREETING": filler}}}));
    let found = subject.await_that("its plan is over", |found| {
        let entries = found["status"]["planStatus"].as_object().into_iter().flatten();
        entries.into_iter().any(|(_, entry)| entry["status"] == "FATAL_ERROR")
    });
    let stalled = condition(&found, "Stalled");
    assert!(stalled["message"].as_str().unwrap_or_default().contains("larger together"), "{found:#}");
}

#[test]
fn a_deletion_ends() {
    let subject = Subject::created("room-gone");
    let size = subject.get().to_string().len();
    let mut object = subject.get();
    object["spec"]["parameters"]["GREETING"] = json!("x".repeat(1_572_864 - size - 200));
    subject.user.put(&subject.path(), &object);
    subject.user.delete(&subject.path());
    wait_until("the Instance is gone", CAP, || {
        let answer = subject.user.read(&subject.path());
        if answer.code == 404 { Ok(()) } else { Err(answer.body["status"].to_string()) }
    });
}
