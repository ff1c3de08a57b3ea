//! Plans of Instances on a real control plane: creation, update, direct triggers, failure,
//! deletion, and what the children look like.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::ground::Ground;
use crate::support::instances::condition;
use crate::support::{Client, Interlock, wait_until};

const CAP: Duration = Duration::from_secs(60);

/// An OperatorVersion with every kind of task that this version runs.
const PACKAGE: &str = include_str!("plans/operatorversion.yaml");

fn instance(parameters: &Value) -> String {
    json!({
        "apiVersion": "kudo.dev/v1beta1",
        "kind": "Instance",
        "metadata": { "name": "demo" },
        "spec": { "operatorVersion": { "name": "web-0.1.0" }, "parameters": parameters },
    })
    .to_string()
}

fn status_of<'a>(object: &'a Value, plan: &str) -> &'a str {
    object["status"]["planStatus"][plan]["status"].as_str().unwrap_or("")
}

/// Waits until a plan has ended with that status and nothing is scheduled.
#[track_caller]
fn await_plan(user: &Client, plan: &str, status: &str) -> Value {
    wait_until(&format!("plan {plan} is {status} and nothing is scheduled"), CAP, || {
        let found = user.get("instances.kudo.dev", "demo").ok_or("no Instance")?;
        let idle = found["spec"]["planExecution"]["planName"].as_str().unwrap_or("").is_empty();
        if idle && status_of(&found, plan) == status { Ok(found) } else { Err(format!("{found:#}")) }
    })
}

#[test]
fn a_package_is_deployed_updated_triggered_and_cleaned_up() {
    let (cluster, _) = Interlock::shared();
    let ns = cluster.namespace("plans");
    let user = ns.user("alice");
    user.apply(PACKAGE);
    user.apply(&instance(&json!({})));
    let found = await_plan(&user, "deploy", "COMPLETE");
    assert_eq!(found["metadata"]["finalizers"], json!(["kudo.dev.instance.cleanup"]));
    assert_eq!(condition(&found, "Ready")["reason"], "ResourcesReady");

    let config = user.get("configmap", "demo-config").expect("the ConfigMap");
    assert_eq!(config["data"]["greeting"], "hello");
    let meta = &config["metadata"];
    assert_eq!(meta["labels"]["heritage"], "kudo");
    assert_eq!(meta["labels"]["kudo.dev/instance"], "demo");
    assert_eq!(meta["labels"]["kudo.dev/operator"], "web");
    assert_eq!(meta["annotations"]["kudo.dev/plan"], "deploy");
    assert_eq!(meta["annotations"]["kudo.dev/phase"], "config");
    assert_eq!(
        meta["annotations"]["kudo.dev/last-plan-execution-uid"],
        found["status"]["planStatus"]["deploy"]["uid"]
    );
    assert_eq!(meta["ownerReferences"][0]["uid"], found["metadata"]["uid"]);
    assert_eq!(meta["ownerReferences"][0]["controller"], true);
    assert!(user.get("configmap", "demo-extra").is_none(), "the toggle is off");

    let deploy_uid = found["status"]["planStatus"]["deploy"]["uid"].clone();
    user.apply(&instance(&json!({ "GREETING": "hi", "EXTRA": "true" })));
    let found = await_plan(&user, "update", "COMPLETE");
    assert_eq!(user.get("configmap", "demo-config").unwrap()["data"]["greeting"], "hi");
    assert!(user.get("configmap", "demo-extra").is_some(), "the toggle is on");
    assert_eq!(found["status"]["planStatus"]["deploy"]["uid"], deploy_uid);
    let history: Value = serde_json::from_str(
        found["metadata"]["annotations"]["plan.interlock.dev/history"].as_str().expect("a history"),
    )
    .unwrap();
    assert_eq!(history[0]["plan"], "update");
    assert_eq!(history[1]["plan"], "deploy");

    user.kubectl(&[
        "patch",
        "instance",
        "demo",
        "--type=merge",
        "-p",
        r#"{"spec":{"planExecution":{"planName":"backup"}}}"#,
    ])
    .ok();
    await_plan(&user, "backup", "COMPLETE");
    assert!(user.get("job", "demo-backup").is_none(), "the Job was deleted by its own plan");

    user.kubectl(&["delete", "instance", "demo", "--timeout=60s"]).ok();
    let text = "Execution of plan cleanup finished with status COMPLETE";
    wait_until("the Event of the cleanup is there", CAP, || {
        let events = user.kubectl(&["get", "events", "-o", "jsonpath={.items[*].message}"]).ok();
        if events.contains(text) { Ok(()) } else { Err(events) }
    });
}

/// KUDO runs the plan of the trigger alone, and what the other parameter changes is never carried out.
#[test]
fn a_parameter_without_a_trigger_is_carried_out_beside_one_with() {
    let (cluster, _) = Interlock::shared();
    let ns = cluster.namespace("beside");
    let user = ns.user("alice");
    user.apply(&PACKAGE.replace("  - name: EXTRA\n", "  - name: EXTRA\n    trigger: backup\n"));
    user.apply(&instance(&json!({})));
    await_plan(&user, "deploy", "COMPLETE");
    let both = instance(&json!({ "GREETING": "both", "EXTRA": "true" }));
    let said = user.kubectl_in(&["apply", "-f", "-"], &both);
    let warned = "no trigger names a plan for GREETING: plan 'update' carries them out after plan 'backup'";
    assert!(said.stderr.contains(warned), "{said}");
    let found = await_plan(&user, "update", "COMPLETE");
    let history = found["metadata"]["annotations"]["plan.interlock.dev/history"].as_str().expect("a history");
    let history: Vec<Value> = serde_json::from_str(history).unwrap();
    let plans: Vec<&str> = history.iter().filter_map(|run| run["plan"].as_str()).collect();
    assert_eq!(plans, ["update", "backup", "deploy"]);
    assert_eq!(user.get("configmap", "demo-config").unwrap()["data"]["greeting"], "both");
    assert_eq!(condition(&found, "Ready")["status"], "True", "{found:#}");
}

#[test]
fn a_plan_that_fails_is_reported_and_a_correction_deploys() {
    let (cluster, _) = Interlock::shared();
    let ns = cluster.namespace("fails");
    let user = ns.user("alice");
    user.apply(PACKAGE);
    user.apply(&instance(&json!({ "GREETING": "{ not: [yaml" })));
    let found = await_plan(&user, "deploy", "FATAL_ERROR");
    assert_eq!(condition(&found, "SpecDrift")["reason"], "PlanOwed", "{found:#}");
    for (type_, status) in [("Ready", "False"), ("Stalled", "True"), ("Reconciling", "")] {
        assert_eq!(
            condition(&found, type_)["status"].as_str().unwrap_or_default(),
            status,
            "{type_}: {found:#}"
        );
    }
    user.apply(&instance(&json!({ "GREETING": "mended" })));
    let found = await_plan(&user, "deploy", "COMPLETE");
    assert_eq!(condition(&found, "Ready")["status"], "True", "{found:#}");
    assert_eq!(condition(&found, "SpecDrift"), &Value::Null);
    assert_eq!(condition(&found, "Stalled"), &Value::Null);
}

#[test]
fn a_right_that_is_missing_stalls_the_step_with_the_servers_text() {
    let (cluster, _) = Interlock::shared();
    let ns = cluster.namespace("stalls");
    let user = ns.user("alice");
    user.apply(PACKAGE);
    ns.forbid("secrets");
    user.apply(&instance(&json!({ "FORBIDDEN": "true" })));
    let found = wait_until("Stalled names what is missing", CAP, || {
        let found = user.get("instances.kudo.dev", "demo").ok_or("no Instance")?;
        if condition(&found, "Stalled")["status"] == "True" { Ok(found) } else { Err(format!("{found:#}")) }
    });
    let text = condition(&found, "Stalled")["message"].as_str().unwrap();
    assert!(text.starts_with("task deploy."), "{text}");
    assert!(text.contains("exceeded quota"), "{text}");
    ns.allow("secrets");
    let found = await_plan(&user, "deploy", "COMPLETE");
    assert_eq!(condition(&found, "Stalled"), &Value::Null);
}

/// What is not labelled as ours is not watched: the run looks again by itself.
#[test]
fn a_run_sees_that_an_object_of_others_is_gone() {
    let ground = Ground::new(Interlock::shared().0, "sweep", include_str!("plans/sweep.yaml"));
    let foreign = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "foreign", "finalizers": ["example.dev/held"]},
    });
    let made = ground.user.post(&ground.ns.path("v1", "configmaps", ""), &foreign).ok();
    let path = ground.ns.path("v1", "configmaps", "foreign");
    ground.user.delete(&path).ok();
    ground.create("demo", "sweep-0.1.0", &json!({}));
    ground.await_that("demo", "it waits for the object to be gone", |found| {
        let said = condition(found, "Reconciling")["message"].as_str().unwrap_or_default();
        status_of(found, "deploy") == "IN_PROGRESS" && said.contains("/foreign is being deleted")
    });
    ground.user.merge_patch(&path, &json!({"metadata": {"finalizers": null}})).ok();
    ground.await_plan("demo", "deploy", "COMPLETE");
    assert_ne!(ground.user.read(&path).ok()["metadata"]["uid"], made["metadata"]["uid"]);
}
