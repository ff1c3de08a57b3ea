//! A way out of every plan: what people ask of a run, carried out on a real control plane.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::support::ground::Ground;
use crate::support::instances::{self, condition, run_of};
use crate::support::{Cluster, Interlock, wait_until};

mod commands;
mod crashes;
mod pause;

const CAP: Duration = Duration::from_secs(60);

/// `held-0.1.0`, whose plan deploy waits at a Service without an address where GATED is true and
/// whose plan not-allowed never ends, and `lingering-0.1.0`, whose cleanup never ends.
const PACKAGE: &str = include_str!("operatorversion.yaml");

/// What these tests do with a ground.
impl Ground<'_> {
    /// An Instance of the gated package, deployed.
    fn deployed_with(&self, name: &str, parameters: &Value) -> Value {
        self.create(name, "held-0.1.0", parameters);
        self.await_settled(name, "deploy", "COMPLETE")
    }

    /// Waits until a plan has ended so, nothing is scheduled and nothing asked.
    #[track_caller]
    fn await_settled(&self, name: &str, plan: &str, status: &str) -> Value {
        self.await_that(
            name,
            &format!("plan {plan} is {status} and nothing is scheduled or asked"),
            |found| is_idle(found) && found["status"]["planStatus"][plan]["status"] == status,
        )
    }

    fn ask(&self, name: &str, request: &str, reason: &str) {
        self.user.merge_patch(&self.path(name), &asking(request, reason)).ok();
    }

    /// The run that wrote a ConfigMap last.
    fn writer(&self, name: &str) -> String {
        let found = self.user.read(&self.ns.path("v1", "configmaps", name)).ok();
        found["metadata"]["annotations"][meta::PLAN_UID].as_str().unwrap_or_default().to_owned()
    }

    fn events(&self, reason: &str) -> Vec<String> {
        let list = self.user.read(&self.ns.path("events.k8s.io/v1", "events", "")).ok();
        let all = list["items"].as_array().cloned().unwrap_or_default();
        all.iter().filter(|e| e["reason"] == reason).map(|e| text(&e["note"]).to_owned()).collect()
    }
}

fn asking(request: &str, reason: &str) -> Value {
    json!({"metadata": {"annotations": {meta::REQUEST: request, meta::REASON: reason}}})
}

fn is_idle(found: &Value) -> bool {
    instances::idle(found) && asks_nothing(found)
}

fn asks_nothing(found: &Value) -> bool {
    found["metadata"]["annotations"][meta::REQUEST].is_null()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn history(found: &Value) -> Vec<Value> {
    let runs = text(&found["metadata"]["annotations"][meta::HISTORY]);
    serde_json::from_str(runs).expect("the history")
}

/// As zookeeper's package keeps its disks: a change that is not allowed triggers a plan that
/// never ends, and the Instance was held by it for ever.
#[test]
fn a_plan_that_never_ends_is_aborted_and_the_spec_goes_back() {
    let ground = Ground::new(Interlock::shared().0, "not-allowed", PACKAGE);
    ground.deployed_with("demo", &json!({"DISK": "fast"}));
    ground.edit("demo", &json!({"DISK": "slow"}));
    let held = ground.await_step("demo", "not-allowed", 0, "IN_PROGRESS");
    let run = run_of(&held, "not-allowed");
    let edit = json!({"spec": {"parameters": {"DISK": "fast"}}});
    ground.user.merge_patch(&ground.path("demo"), &edit).refused(422);

    ground.ask("demo", &format!("abort-revert/{run}/nonce-0001"), "that disk cannot be moved");
    // Back on the old disk, by the plan that such a change triggers: it is held once more.
    let back = ground.await_that("demo", "the spec went back", |found| {
        found["spec"]["parameters"]["DISK"] == "fast"
            && found["status"]["planStatus"]["not-allowed"]["status"] == "IN_PROGRESS"
    });
    let again = run_of(&back, "not-allowed");
    assert_ne!(again, run);
    ground.ask("demo", &format!("abort/{again}/nonce-0002"), "it is as it was");
    let free = ground.await_settled("demo", "not-allowed", "FATAL_ERROR");
    let entry = &free["status"]["planStatus"]["not-allowed"];
    assert_eq!(entry["message"], "aborted by alice: it is as it was", "{entry:#}");
    let runs = history(&free);
    assert_eq!((&runs[0]["uid"], &runs[1]["uid"]), (&json!(again), &json!(run)), "{runs:#?}");
    assert_eq!(
        runs[1]["asked"][0],
        json!({"verb": "abort-revert", "who": "alice",
        "reason": "that disk cannot be moved", "nonce": "nonce-0001"})
    );
    assert_eq!((&runs[1]["result"], &runs[0]["asked"][0]["verb"]), (&json!("FATAL_ERROR"), &json!("abort")));
    assert!(runs.iter().all(|run| !run["start"].is_null() && !run["end"].is_null()), "{runs:#?}");
    for (reason, said) in
        [("PlanAborted", "by alice: that disk cannot be moved"), ("PlanReverted", "went back")]
    {
        let events = ground.events(reason);
        assert!(events.iter().any(|note| note.contains(said)), "{reason}: {events:?}");
    }
    // What was aborted is owed and said, and nothing holds the Instance any more.
    assert_eq!(condition(&free, "SpecDrift")["reason"], "PlanOwed");
    ground.edit("demo", &json!({"SIZE": "large"}));
    ground.await_settled("demo", "deploy", "COMPLETE");
}

/// The step that had failed begins anew, and what was finished before is not done again.
#[test]
fn a_retry_goes_on_where_the_run_was_ended() {
    let ground = Ground::new(Interlock::shared().0, "retry", PACKAGE);
    ground.create("demo", "held-0.1.0", &json!({"GATED": "true"}));
    let held = ground.await_step("demo", "deploy", 1, "IN_PROGRESS");
    let run = run_of(&held, "deploy");
    ground.ask("demo", &format!("abort/{run}/nonce-0001"), "no address is left");
    let ended = ground.await_settled("demo", "deploy", "FATAL_ERROR");
    let steps = &ended["status"]["planStatus"]["deploy"]["phases"][0]["steps"];
    assert_eq!(
        (&steps[0]["status"], &steps[1]["status"], &steps[2]["status"]),
        (&json!("COMPLETE"), &json!("FATAL_ERROR"), &json!("PENDING")),
        "{steps:#}"
    );

    ground.open("demo");
    ground.ask("demo", &format!("retry/{run}/nonce-0002"), "there are addresses again");
    let done = ground.await_settled("demo", "deploy", "COMPLETE");
    let again = run_of(&done, "deploy");
    assert_ne!(again, run);
    assert_eq!((ground.writer("demo-before"), ground.writer("demo-after")), (run.clone(), again.clone()));
    let runs = history(&done);
    assert_eq!((&runs[0]["uid"], &runs[0]["result"]), (&json!(again), &json!("COMPLETE")), "{runs:#?}");
    assert_eq!(runs[0]["asked"][0]["verb"], "retry", "{runs:#?}");
    assert_eq!(runs.len(), 2, "{runs:#?}");
    assert_eq!(condition(&done, "Ready")["status"], "True");

    // A request that was carried out is none.
    let replay = asking(&format!("retry/{run}/nonce-0002"), "again");
    let said = ground.user.merge_patch(&ground.path("demo"), &replay);
    assert!(said.message().contains("carried out already"), "{said}");
    said.refused(422);
}

/// After another run the failed one is not the newest: its plan is run from its first step.
#[test]
fn a_retry_of_an_older_run_starts_at_the_first_step() {
    let ground = Ground::new(Interlock::shared().0, "older", PACKAGE);
    ground.deployed_with("demo", &json!({}));
    ground.edit("demo", &json!({"GATED": "true"}));
    let run = run_of(&ground.await_step("demo", "deploy", 1, "IN_PROGRESS"), "deploy");
    ground.ask("demo", &format!("abort/{run}/nonce-0001"), "not today");
    ground.await_settled("demo", "deploy", "FATAL_ERROR");
    ground.edit("demo", &json!({"DISK": "slow"}));
    let other = run_of(&ground.await_step("demo", "not-allowed", 0, "IN_PROGRESS"), "not-allowed");
    ground.ask("demo", &format!("abort/{other}/nonce-0002"), "not that either");
    ground.await_settled("demo", "not-allowed", "FATAL_ERROR");
    assert_eq!(ground.writer("demo-before"), run);

    ground.open("demo");
    ground.ask("demo", &format!("retry/{run}/nonce-0003"), "now it can");
    let done = ground.await_settled("demo", "deploy", "COMPLETE");
    assert_eq!(ground.writer("demo-before"), run_of(&done, "deploy"));
}

/// One status write ends what has not begun: no step of it is taken.
#[test]
fn a_plan_that_has_not_begun_is_aborted() {
    let (cluster, _) = Interlock::shared();
    let ground = Ground::new(cluster, "unbegun", PACKAGE);
    let before = run_of(&ground.deployed_with("demo", &json!({})), "deploy");
    let uid = "74738ff5-5367-5958-9aee-98fffdcd1876";
    let mut both = asking(&format!("abort/{uid}/nonce-0001"), "too soon");
    both["spec"] = json!({"planExecution": {"planName": "deploy", "uid": uid, "status": "NEVER_RUN"}});
    // In one write, so that the controller sees the request no later than the plan.
    cluster.user("interlock", &[]).merge_patch(&ground.path("demo"), &both).ok();
    let ended = ground.await_settled("demo", "deploy", "FATAL_ERROR");
    let entry = &ended["status"]["planStatus"]["deploy"];
    assert_eq!((text(&entry["uid"]), text(&entry["message"])), (uid, "aborted on request: too soon"));
    let steps = entry["phases"][0]["steps"].as_array().expect("steps");
    assert!(steps.iter().all(|step| step["status"] == "PENDING"), "{entry:#}");
    assert_eq!(ground.writer("demo-before"), before);
    assert_eq!(history(&ended)[0]["uid"], uid);
}

/// Deletion always ends: a cleanup that never ends is aborted, and the Instance goes.
#[test]
fn an_aborted_cleanup_lets_the_instance_go() {
    let ground = Ground::new(Interlock::shared().0, "lingering", PACKAGE);
    ground.create("demo", "lingering-0.1.0", &json!({}));
    ground.await_settled("demo", "deploy", "COMPLETE");
    ground.user.delete(&ground.path("demo")).ok();
    let held = ground.await_step("demo", "cleanup", 0, "IN_PROGRESS");
    ground.ask("demo", &format!("abort/{}/nonce-0001", run_of(&held, "cleanup")), "nothing is left to clean");
    wait_until("the Instance is gone", CAP, || match ground.user.read(&ground.path("demo")) {
        answer if answer.code == 404 => Ok(()),
        answer => Err(answer.to_string()),
    });
    let events = ground.events("CleanupSkipped");
    assert!(events.iter().any(|note| note.contains("aborted by alice: nothing is left")), "{events:?}");
}

/// Without the policy nothing is carried out, and that is said. What was asked then is dropped when it is
/// back, as nobody asked who may; what is asked after that counts, also for a process that starts later.
#[test]
fn what_was_asked_while_the_policy_was_not_intact_is_dropped() {
    let cluster = Cluster::own(&[]);
    let interlock = Interlock::install(&cluster, &[]);
    interlock.await_requests_count(&cluster);
    let ground = Ground::new(&cluster, "unguarded", PACKAGE);
    ground.create("demo", "held-0.1.0", &json!({"GATED": "true"}));
    let run = run_of(&ground.await_step("demo", "deploy", 1, "IN_PROGRESS"), "deploy");
    let admin = cluster.admin();
    let binding = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/interlock-verbs";
    let found = admin.read(binding).ok();
    admin.merge_patch(binding, &json!({"spec": {"validationActions": ["Audit"]}})).ok();
    let rules = json!([{"apiGroups": ["kudo.dev"], "resources": ["instances"], "verbs": ["get", "patch"]}]);
    let stranger = ground.ns.user_with("bob", &rules);
    wait_until("the policy stands aside", CAP, || {
        let dry = format!("{}?dryRun=All", ground.path("demo"));
        let answer = stranger.merge_patch(&dry, &asking(&format!("abort/{run}/nonce-0001"), "mine"));
        if answer.code == 200 { Ok(()) } else { Err(answer.to_string()) }
    });
    interlock.kill();
    interlock.start();
    interlock.await_ready();
    let stranger_asks = asking(&format!("abort/{run}/nonce-0002"), "it takes too long");
    stranger.merge_patch(&ground.path("demo"), &stranger_asks).ok();
    let waits = ground.await_that("demo", "the request waits", |found| {
        condition(found, "VerbsUnavailable")["status"] == "True"
    });
    assert!(
        text(&condition(&waits, "VerbsUnavailable")["message"]).contains("validationActions"),
        "{waits:#}"
    );
    assert_eq!(waits["status"]["planStatus"]["deploy"]["status"], "IN_PROGRESS");
    let actions = json!({"spec": {"validationActions": found["spec"]["validationActions"]}});
    admin.merge_patch(binding, &actions).ok();
    let dropped = ground.await_that("demo", "the request is dropped", |found| {
        found["metadata"]["annotations"][meta::REQUEST].is_null()
            && condition(found, "VerbsUnavailable")["status"] != "True"
    });
    assert_eq!(dropped["status"]["planStatus"]["deploy"]["status"], "IN_PROGRESS");
    wait_until("an Event says so", CAP, || {
        let events = ground.events("RequestDropped");
        let told =
            events.iter().any(|e| e.contains("nonce-0002") && e.contains("was absent, edited or not yet"));
        if told { Ok(()) } else { Err(format!("{events:?}")) }
    });
    let record = "/api/v1/namespaces/interlock-system/configmaps/interlock-verbs";
    let uid = found["metadata"]["uid"].as_str().expect("a uid");
    let generation = admin.read(binding).ok()["metadata"]["generation"].as_i64().expect("a generation");
    wait_until("that it is in force is recorded", CAP, || {
        let record = admin.read(record).ok();
        let told = text(&record["data"]["revision"]).contains(&format!("{uid}.{generation}"));
        if told { Ok(()) } else { Err(record.to_string()) }
    });
    interlock.kill();
    // While no process answers, the webhook is not called for this user alone.
    let late = asking(&format!("abort/{run}/nonce-0003"), "asked while no process runs");
    cluster.user("interlock", &[]).merge_patch(&ground.path("demo"), &late).ok();
    interlock.start();
    interlock.await_ready();
    ground.await_settled("demo", "deploy", "FATAL_ERROR");
}
