//! What `kubectl wait` and kstatus make of an Instance in each state of its plans: what is healthy is Current, what
//! goes on InProgress, and what needs a person Failed.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::support::audit::await_rest;
use crate::support::ground::Ground;
use crate::support::instances::{await_event, condition, run_of};
use crate::support::peers::kstatus;
use crate::support::{Cluster, Interlock, wait_until};

const CAP: Duration = Duration::from_secs(60);
const HELD: &str = include_str!("verbs/operatorversion.yaml");
const WEB: &str = include_str!("plans/operatorversion.yaml");

impl Ground<'_> {
    /// Waits until kstatus reads this, and the status describes the generation that is there.
    #[track_caller]
    fn await_kstatus(&self, name: &str, wanted: &str) -> Value {
        self.await_that(name, &format!("kstatus reads {wanted}"), |found| kstatus(found) == wanted)
    }
}

fn types(object: &Value) -> Vec<&str> {
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().map(|condition| condition["type"].as_str().unwrap_or_default()).collect()
}

/// `observedGeneration` of the status and of each condition is the generation.
#[track_caller]
fn assert_observed(object: &Value) {
    let generation = &object["metadata"]["generation"];
    assert_eq!(&object["status"]["observedGeneration"], generation, "{object:#}");
    for found in object["status"]["conditions"].as_array().expect("conditions") {
        assert_eq!(&found["observedGeneration"], generation, "{object:#}");
    }
}

#[test]
fn a_healthy_instance_is_waited_for_and_says_nothing_else() {
    let ground = Ground::new(Interlock::shared().0, "healthy", HELD);
    ground.create("demo", "held-0.1.0", &json!({}));
    ground.user.kubectl(&["wait", "--for=condition=Ready", "instance/demo", "--timeout=60s"]).ok();
    let found = ground.await_kstatus("demo", "Current");
    assert_eq!(types(&found), ["Ready"]);
    assert_observed(&found);
    assert!(found["status"]["lastApplied"]["hash"].is_string(), "{found:#}");
    assert_eq!(found["status"]["progress"], Value::Null);

    // A plan that runs, and its end.
    ground.edit("demo", &json!({"GATED": "true"}));
    let found = ground.await_step("demo", "deploy", 1, "IN_PROGRESS");
    assert_eq!(kstatus(&found), "InProgress", "{found:#}");
    let found = ground.await_that("demo", "it says what it waits for", |found| {
        condition(found, "Reconciling")["message"].as_str().is_some_and(|text| text.contains("demo-gate"))
    });
    assert_eq!((kstatus(&found).as_str(), condition(&found, "Stalled")), ("InProgress", &Value::Null));
    assert_eq!(found["status"]["progress"]["plan"], "deploy");
    let told = await_event(&ground.ns, "PlanStarted");
    assert_eq!(told, "Execution of plan deploy started");
    ground.open("demo");
    ground.user.kubectl(&["wait", "--for=condition=Ready", "instance/demo", "--timeout=60s"]).ok();
    let found = ground.await_kstatus("demo", "Current");
    assert_eq!(types(&found), ["Ready"]);
    assert_observed(&found);
}

#[test]
fn a_plan_that_failed_looks_failed_until_one_completes() {
    let ground = Ground::new(Interlock::shared().0, "failed", WEB);
    ground.create("demo", "web-0.1.0", &json!({"GREETING": "{ not: [yaml"}));
    let found = ground.await_kstatus("demo", "Failed");
    ground.user.kubectl(&["wait", "--for=condition=Stalled", "instance/demo", "--timeout=60s"]).ok();
    assert_eq!(condition(&found, "Ready")["status"], "False");
    let events = || ground.user.read(&ground.ns.path("events.k8s.io/v1", "events", "")).ok();
    wait_until("a Warning tells of the end", CAP, || {
        let all = events()["items"].as_array().cloned().unwrap_or_default();
        let of = |reason: &str| all.iter().find(|event| event["reason"] == reason).cloned();
        let ended = of("PlanFinished").ok_or_else(|| format!("{all:#?}"))?;
        if ended["type"] == "Warning" { Ok(()) } else { Err(ended.to_string()) }
    });
    let at_rest = ground.await_plan("demo", "deploy", "FATAL_ERROR");
    let at_rest = ground.await_that("demo", "its generation is observed", |found| {
        found["status"]["observedGeneration"] == at_rest["metadata"]["generation"]
    });
    assert_eq!(kstatus(&at_rest), "Failed", "{at_rest:#}");
    assert_observed(&at_rest);
    ground.edit("demo", &json!({"GREETING": "mended"}));
    assert_eq!(types(&ground.await_kstatus("demo", "Current")), ["Ready"]);
}

#[test]
fn an_aborted_plan_and_a_refused_request_look_failed() {
    let ground = Ground::new(Interlock::shared().0, "aborted", HELD);
    ground.create("demo", "held-0.1.0", &json!({"GATED": "true"}));
    let run = run_of(&ground.await_step("demo", "deploy", 1, "IN_PROGRESS"), "deploy");
    let request = json!({"metadata": {"annotations": {
        meta::REQUEST: format!("abort/{run}/nonce-01"), meta::REASON: "enough",
    }}});
    ground.user.merge_patch(&ground.path("demo"), &request).ok();
    let found = ground.await_kstatus("demo", "Failed");
    assert_eq!(condition(&found, "Stalled")["reason"], "PlanInFatalError", "{found:#}");
    assert_eq!(condition(&found, "SpecDrift")["reason"], "PlanOwed", "{found:#}");

    // A quota that is used up is answered 403: only a person can help.
    let ground = Ground::new(Interlock::shared().0, "refusal", WEB);
    ground.ns.forbid("secrets");
    ground.create("demo", "web-0.1.0", &json!({"FORBIDDEN": "true"}));
    let found = ground.await_kstatus("demo", "Failed");
    assert_eq!(condition(&found, "Stalled")["reason"], "QuotaExceeded", "{found:#}");
    assert_eq!(condition(&found, "Reconciling"), &Value::Null);
    ground.ns.allow("secrets");
    assert_eq!(types(&ground.await_kstatus("demo", "Current")), ["Ready"]);
}

/// KUDO's own definition, or that of another version: nothing is carried out, and every Instance says why.
#[test]
fn nothing_is_carried_out_while_the_definition_lacks_our_fields() {
    let cluster = Cluster::own(&["--audit"]);
    let _process = Interlock::install(&cluster, &[]);
    let ground = Ground::new(&cluster, "outdated", HELD);
    ground.create("before", "held-0.1.0", &json!({}));
    ground.await_kstatus("before", "Current");
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/instances.kudo.dev";
    let ours = cluster.admin().read(path).ok();
    let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let without = json!([{"op": "remove", "path": format!("{status}/lastApplied")}]);
    cluster.admin().json_patch(path, &without).ok();
    let found = ground.await_that("before", "it says that the definition is outdated", |found| {
        condition(found, "Ready")["message"]
            .as_str()
            .is_some_and(|text| text.contains("lacks status.lastApplied"))
    });
    assert_eq!(condition(&found, "Ready")["status"], "Unknown");
    ground.create("after", "held-0.1.0", &json!({}));
    ground.await_that("after", "it says that the definition is outdated", |found| {
        condition(found, "Stalled")["message"]
            .as_str()
            .is_some_and(|text| text.contains("interlock render crds"))
    });
    await_rest(&cluster, "the definition is outdated");
    let config = ground.ns.path("v1", "configmaps", "after-before");
    assert_eq!(ground.user.read(&config).code, 404, "nothing is carried out");

    let field = ours.pointer(&format!("{status}/lastApplied")).expect("our definition has the field");
    let with = json!([{"op": "add", "path": format!("{status}/lastApplied"), "value": field}]);
    cluster.admin().json_patch(path, &with).ok();
    for name in ["before", "after"] {
        assert_eq!(types(&ground.await_kstatus(name, "Current")), ["Ready"], "{name}");
    }
}
