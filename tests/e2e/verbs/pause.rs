//! A run that begins anew, and one that is paused: what is written meanwhile, and how it ends.

use interlock_core::api::meta;
use serde_json::{Value, json};

use super::{CAP, Ground, PACKAGE, asking, condition, history, run_of, text};
use crate::support::interlock::interlock;
use crate::support::{Cluster, Interlock, wait_until};

impl Ground<'_> {
    /// `interlock plan VERB demo`, which waits until it is carried out.
    #[track_caller]
    fn plan(&self, verb: &str, reason: &str) -> String {
        let arguments = ["plan", verb, "demo", "-n", self.ns.name(), "--reason", reason, "--wait"];
        interlock(&self.user, &arguments, "").ok()
    }

    /// `demo`, whose plan deploy waits at the gate; its run.
    #[track_caller]
    fn held(&self) -> String {
        self.create("demo", "held-0.1.0", &json!({"GATED": "true"}));
        run_of(&self.await_step("demo", "deploy", 1, "IN_PROGRESS"), "deploy")
    }

    /// The same, paused, with nothing asked any more.
    #[track_caller]
    fn paused(&self) -> String {
        let run = self.held();
        self.ask("demo", &format!("pause/{run}/nonce-0001"), "the disks are moved");
        self.await_that("demo", "it is paused", is_paused);
        run
    }

    /// Another Instance is carried out from its creation to its end: whatever woke `demo` before has been seen.
    #[track_caller]
    fn await_another(&self, name: &str) {
        self.create(name, "held-0.1.0", &json!({}));
        self.await_settled(name, "deploy", "COMPLETE");
    }

    /// Whether the step after the gate has written.
    fn has_gone_on(&self) -> bool {
        self.user.read(&self.ns.path("v1", "configmaps", "demo-after")).code == 200
    }
}

fn is_paused(found: &Value) -> bool {
    let asks = !found["metadata"]["annotations"][meta::REQUEST].is_null();
    condition(found, "Reconciling")["reason"] == "Paused" && !asks
}

#[test]
fn a_paused_run_writes_nothing_until_it_goes_on() {
    let ground = Ground::new(Interlock::shared().0, "paused", PACKAGE);
    let run = ground.held();
    let said = ground.plan("pause", "the disks are moved");
    assert!(said.contains(&format!("plan deploy (run {run}) is paused; let it go on with")), "{said}");
    let paused = ground.get("demo");
    let reconciling = condition(&paused, "Reconciling");
    assert_eq!((&reconciling["status"], &reconciling["reason"]), (&json!("True"), &json!("Paused")));
    let message = text(&reconciling["message"]);
    assert!(message.starts_with("plan deploy is paused by alice since "), "{message}");
    assert!(message.ends_with(": the disks are moved"), "{message}");
    assert_eq!(condition(&paused, "Stalled"), &Value::Null);
    let status = interlock(&ground.user, &["plan", "status", "demo", "-n", ground.ns.name()], "").ok();
    assert!(status.contains("Reconciling True (Paused): plan deploy is paused by alice"), "{status}");

    ground.open("demo");
    ground.await_another("other");
    let found = ground.get("demo");
    assert_eq!(found["status"]["planStatus"], paused["status"]["planStatus"]);
    assert!(is_paused(&found) && !ground.has_gone_on(), "{found:#}");
    // The spec is frozen all the same.
    let edit = json!({"spec": {"parameters": {"SIZE": "large"}}});
    ground.user.merge_patch(&ground.path("demo"), &edit).refused(422);

    let said = ground.plan("resume", "the disks are there");
    assert!(said.contains(&format!("plan deploy (run {run}) goes on")), "{said}");
    let done = ground.await_settled("demo", "deploy", "COMPLETE");
    assert_eq!((run_of(&done, "deploy"), ground.writer("demo-after")), (run.clone(), run));
    assert_eq!(done["status"]["requests"], Value::Null, "{done:#}");
    let asked: Vec<Value> = history(&done)[0]["asked"].as_array().cloned().unwrap_or_default();
    let asked: Vec<(&str, &str)> = asked.iter().map(|a| (text(&a["verb"]), text(&a["who"]))).collect();
    assert_eq!(asked, [("pause", "alice"), ("resume", "alice")]);
    for (reason, said) in [("PlanPaused", "by alice: the disks are moved"), ("PlanResumed", "by alice")] {
        let events = ground.events(reason);
        assert!(events.iter().any(|note| note.contains(said)), "{reason}: {events:?}");
    }
}

#[test]
fn what_cannot_be_paused_or_resumed_is_refused_with_the_way_out() {
    let ground = Ground::new(Interlock::shared().0, "paused", PACKAGE);
    let run = ground.held();
    let refused = |request: &str, why: &str, next: &str| {
        let answer = ground.user.merge_patch(&ground.path("demo"), &asking(request, "why"));
        let said = answer.to_string();
        assert!(said.contains(why) && said.contains(next) && said.contains("[verb-request]"), "{said}");
        answer.refused(422);
    };
    refused(&format!("resume/{run}/nonce-0001"), "is not paused", "leave it, as the run goes on");
    ground.ask("demo", &format!("pause/{run}/nonce-0002"), "wait");
    ground.await_that("demo", "it is paused", is_paused);
    refused(&format!("pause/{run}/nonce-0002"), "was carried out already", "interlock plan history demo");
    refused(&format!("pause/{run}/nonce-0003"), "is paused already", "interlock plan resume demo");
    ground.open("demo");
    ground.plan("resume", "go on");
    ground.await_settled("demo", "deploy", "COMPLETE");
    for verb in ["pause", "resume", "restart"] {
        let request = format!("{verb}/{run}/nonce-0004");
        refused(&request, "has ended: it is COMPLETE", "interlock plan trigger demo");
    }
    let arguments = ["plan", "pause", "demo", "-n", ground.ns.name(), "--reason", "x"];
    let out = interlock(&ground.user, &arguments, "");
    assert!(out.code == 1 && out.stderr.contains("no plan runs"), "{out}");
}

#[test]
fn a_paused_run_can_be_aborted_and_its_instance_deleted() {
    let ground = Ground::new(Interlock::shared().0, "paused", PACKAGE);
    ground.paused();
    let said = ground.plan("abort", "it takes too long");
    assert!(said.contains("is FATAL_ERROR: aborted by alice: it takes too long"), "{said}");
    let ended = ground.await_settled("demo", "deploy", "FATAL_ERROR");
    assert_eq!(ended["status"]["requests"], Value::Null, "{ended:#}");

    ground
        .user
        .merge_patch(&ground.path("demo"), &json!({"spec": {"planExecution": {"planName": "deploy"}}}))
        .ok();
    let again = run_of(&ground.await_step("demo", "deploy", 1, "IN_PROGRESS"), "deploy");
    ground.ask("demo", &format!("pause/{again}/nonce-0002"), "wait");
    ground.await_that("demo", "it is paused", is_paused);
    ground.user.delete(&ground.path("demo")).ok();
    wait_until("the Instance is gone", CAP, || match ground.user.read(&ground.path("demo")) {
        answer if answer.code == 404 => Ok(()),
        answer => Err(answer.to_string()),
    });
}

/// A pause is in the status, and whoever leads next keeps it.
#[test]
fn a_pause_survives_the_process() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    process.await_requests_count(&cluster);
    let ground = Ground::new(&cluster, "paused", PACKAGE);
    let run = ground.paused();
    process.kill();
    ground.open("demo");
    process.start();
    process.await_ready();
    ground.await_another("other");
    let found = ground.get("demo");
    assert!(is_paused(&found) && !ground.has_gone_on(), "{found:#}");
    process.await_requests_count(&cluster);
    ground.plan("resume", "go on");
    let done = ground.await_settled("demo", "deploy", "COMPLETE");
    assert_eq!(run_of(&done, "deploy"), run);
}

/// The run begins anew under a new uid, on the spec that it was started with, and the Instance is locked throughout.
#[test]
fn a_run_begins_anew_from_its_first_step() {
    let ground = Ground::new(Interlock::shared().0, "restarted", PACKAGE);
    let run = ground.paused();
    assert_eq!(ground.writer("demo-before"), run);
    let said = ground.plan("restart", "the first step has to be done again");
    assert!(said.contains("plan deploy runs again (run "), "{said}");
    let held = ground.await_step("demo", "deploy", 1, "IN_PROGRESS");
    let again = run_of(&held, "deploy");
    assert_ne!(again, run);
    assert_eq!(ground.writer("demo-before"), again, "the first step is done again");
    assert_eq!(held["status"]["requests"], Value::Null, "it is not paused: {held:#}");
    let edit = json!({"spec": {"parameters": {"SIZE": "large"}}});
    ground.user.merge_patch(&ground.path("demo"), &edit).refused(422);
    ground.open("demo");
    let done = ground.await_settled("demo", "deploy", "COMPLETE");
    assert_eq!(run_of(&done, "deploy"), again);
    let runs = history(&done);
    assert_eq!((&runs[0]["uid"], &runs[0]["result"]), (&json!(again), &json!("COMPLETE")), "{runs:#?}");
    assert_eq!((&runs[1]["uid"], &runs[1]["result"]), (&json!(run), &json!("FATAL_ERROR")), "{runs:#?}");
    assert_eq!(text(&runs[1]["asked"][1]["verb"]), "restart", "{runs:#?}");
    let events = ground.events("PlanRestarted");
    assert!(events.iter().any(|note| note.contains("by alice: the first step")), "{events:?}");
    let replay = asking(&format!("restart/{run}/nonce-0009"), "again");
    let said = ground.user.merge_patch(&ground.path("demo"), &replay);
    assert!(said.message().contains("none of this Instance's"), "{said}");
    said.refused(422);
}
