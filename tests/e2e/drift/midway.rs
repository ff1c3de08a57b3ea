//! Edits that come in the middle: of a run, with a trigger, or with another version.

use rstest::rstest;
use serde_json::json;

use super::{PACKAGE, STAMP, Subject, basis, history, idle, instance, stamp, status_of, uid_of};
use crate::support::instances::condition;

impl Subject<'_> {
    /// An Instance whose deploy is held at a step by a quota; the uid of the run.
    fn held(base: &str) -> (Self, String) {
        let subject = Self::new(base);
        subject.ns.forbid("secrets");
        subject.user.apply(&instance("demo", &json!({ "FORBIDDEN": "true" })).to_string());
        let found = subject.await_that("deploy is held", |found| {
            condition(found, "Stalled")["status"] == "True" && status_of(found, "deploy") == "IN_PROGRESS"
        });
        assert_eq!(subject.greeting(), "hello");
        let run = uid_of(&found, "deploy").to_owned();
        (subject, run)
    }
}

/// The spec that a run started with is lost, and the one that is there would be accepted.
#[test]
fn a_run_that_lost_its_spec_starts_anew_on_the_one_that_is_there() {
    let (subject, first) = Subject::held("lost-spec");
    subject.patch(&json!({
        "metadata": { "annotations": { STAMP: null } }, "spec": { "parameters": { "GREETING": "other" } },
    }));
    subject.await_that("the plan runs anew", |found| {
        status_of(found, "deploy") == "IN_PROGRESS" && uid_of(found, "deploy") != first
    });
    subject.ns.allow("secrets");
    // The edit owes the plan that it triggers as well.
    let found = subject.await_that("both have completed", |found| {
        idle(found) && ["deploy", "update"].iter().all(|plan| status_of(found, plan) == "COMPLETE")
    });
    assert_ne!(uid_of(&found, "deploy"), first);
    assert_eq!(subject.greeting(), "other");
    assert_eq!(stamp(&found)["spec"]["parameters"]["GREETING"], "other");
    assert_eq!(basis(&found)["hash"], stamp(&found)["hash"]);
    assert!(basis(&found)["owed"].is_null(), "{found:#}");
}

/// The spec that a run started with is lost, and the one that is there would be refused.
#[test]
fn a_run_that_lost_its_spec_ends_where_the_one_that_is_there_is_refused() {
    let (subject, first) = Subject::held("lost-refused");
    subject.patch(&json!({
        "metadata": { "annotations": { STAMP: null } },
        "spec": { "parameters": { "GREETING": "other", "CODE": "beta" } },
    }));
    let found = subject.await_plan("deploy", "FATAL_ERROR");
    assert_eq!(uid_of(&found, "deploy"), first, "it ended, and no other was begun");
    let message = found["status"]["planStatus"]["deploy"]["message"].as_str().expect("a message");
    assert!(message.contains("the spec it started with is lost"), "{message}");
    assert!(message.contains("parameter 'CODE' is immutable"), "{message}");
    let found = subject.await_that("the spec is judged", |found| {
        let drift = condition(found, "SpecDrift");
        drift["status"] == "True" && drift["message"].as_str().is_some_and(|m| m.contains("immutable"))
    });
    assert_eq!(found["spec"]["parameters"]["CODE"], "beta", "not reverted");
    assert_eq!(subject.greeting(), "hello", "not carried out");
    subject.ns.allow("secrets");
    subject.patch(&json!({ "spec": { "parameters": { "CODE": "alpha" } } }));
    subject.await_that("the mended spec is carried out", |found| {
        idle(found) && condition(found, "SpecDrift").is_null() && basis(found)["owed"].is_null()
    });
    assert_eq!(subject.greeting(), "other");
}

/// A trigger that comes with an edit: the plan runs on what was accepted, and the edit is judged
/// after it.
#[test]
fn a_trigger_on_a_drifted_spec_runs_on_the_stamp() {
    let subject = Subject::created("trigger");
    let before = stamp(&subject.get());
    subject.patch(&json!({ "spec": {
        "parameters": { "EXTRA": "true", "GREETING": "drifted" }, "planExecution": { "planName": "audit" },
    } }));
    let found = subject.await_that("both have completed", |found| {
        idle(found) && ["audit", "update"].iter().all(|plan| status_of(found, plan) == "COMPLETE")
    });
    let runs = history(&found);
    let plans: Vec<&str> = runs.iter().map(|run| run["plan"].as_str().unwrap()).collect();
    assert_eq!(plans, ["deploy", "audit", "update"]);
    assert_eq!(runs[1]["hash"], before["hash"], "audit ran on the stamp: {runs:#?}");
    assert_eq!(runs[2]["hash"], stamp(&found)["hash"], "{runs:#?}");
    assert_ne!(before["hash"], stamp(&found)["hash"]);
    assert_eq!(subject.greeting(), "drifted");
    let extra = subject.user.get("configmap", "demo-extra").expect("the ConfigMap of the edit");
    assert_eq!(extra["data"]["plan"], "update");
}

/// Another version is carried out before parameters, by the first of these plans that it has.
#[rstest]
#[case::upgrade("upgrade", &[])]
#[case::update("update", &["upgrade"])]
#[case::deploy("deploy", &["upgrade", "update"])]
fn another_version_and_parameters_run_the_upgrade_first(#[case] plan: &str, #[case] without: &[&str]) {
    let subject = Subject::created(&format!("by-{plan}"));
    let newer = PACKAGE.replace("web-0.1.0", "web-0.2.0").replace("version: 0.1.0", "version: 0.2.0");
    let newer = without.iter().fold(newer, |text, plan| text.replace(&format!("    {plan}: *deploy\n"), ""));
    subject.user.apply(&newer);
    subject.patch(&json!({ "spec": {
        "operatorVersion": { "name": "web-0.2.0" }, "parameters": { "BACKUP": "1", "AUDIT": "1" },
    } }));
    let found = subject.await_that("all have completed", |found| {
        let last = uid_of(found, "deploy");
        let runs = history(found);
        idle(found)
            && runs.len() == 4
            && ["audit", "backup", plan].iter().all(|plan| status_of(found, plan) == "COMPLETE")
            && runs.iter().any(|run| run["uid"] == last)
    });
    let runs = history(&found);
    let plans: Vec<&str> = runs.iter().map(|run| run["plan"].as_str().unwrap()).collect();
    assert_eq!(plans, ["deploy", plan, "audit", "backup"]);
    assert_eq!(stamp(&found)["spec"]["operatorVersion"]["name"], "web-0.2.0");
    assert!(basis(&found)["owed"].is_null(), "{found:#}");
}

/// As in admission: an upgrade sets what is new with it, which triggers nothing by itself.
#[test]
fn parameters_that_are_new_with_a_version_run_no_plan_of_their_own() {
    let subject = Subject::created("new-with-it");
    let new =
        "  parameters:\n  - {name: NEW, default: none, trigger: backup}\n  - {name: PLAIN, default: none}\n";
    let newer = PACKAGE.replace("web-0.1.0", "web-0.2.0").replace("version: 0.1.0", "version: 0.2.0");
    subject.user.apply(&newer.replacen("  parameters:\n", new, 1));
    subject.patch(&json!({ "spec": {
        "operatorVersion": { "name": "web-0.2.0" }, "parameters": { "NEW": "1", "PLAIN": "1" },
    } }));
    let found = subject.await_that("the upgrade has completed", |found| {
        status_of(found, "upgrade") == "COMPLETE" && idle(found) && history(found).len() > 1
    });
    assert!(basis(&found)["owed"].is_null(), "{found:#}");
    let plans: Vec<_> = history(&found).iter().map(|run| run["plan"].clone()).collect();
    assert_eq!(plans, ["deploy", "upgrade"]);
}
