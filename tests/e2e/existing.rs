//! Objects that others made: a package does not take them, and nothing of ours deletes them.

use serde_json::{Value, json};

use crate::support::ground::Ground;
use crate::support::instances::await_event;
use crate::support::interlock::interlock;
use crate::support::{Interlock, Output};

/// `settings-0.1.0`: plan deploy makes a ConfigMap of the name in NAME, plan cleanup deletes it.
pub const PACKAGE: &str = include_str!("existing/operatorversion.yaml");

/// Deletes the Instance, and waits until the garbage collector has removed what it owns.
#[track_caller]
pub fn delete_with_dependents(ground: &Ground<'_>, name: &str) {
    let arguments = ["delete", "instance", name, "--cascade=foreground", "--timeout=60s"];
    ground.user.kubectl(&arguments).ok();
}

fn config_map(ground: &Ground<'_>) -> String {
    ground.ns.path("v1", "configmaps", "settings")
}

/// The ConfigMap `settings`, made by a user.
#[track_caller]
fn make_settings(ground: &Ground<'_>) -> Value {
    let settings = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"mine": "yes"},
    });
    ground.user.post(&ground.ns.path("v1", "configmaps", ""), &settings).ok()
}

/// What the failed step of plan deploy says.
#[track_caller]
fn await_failure(ground: &Ground<'_>, name: &str) -> String {
    let found = ground.await_plan(name, "deploy", "FATAL_ERROR");
    let step = &found["status"]["planStatus"]["deploy"]["phases"][0]["steps"][0];
    step["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_object_that_a_user_made_is_not_taken_and_outlives_the_instance() {
    let ground = Ground::new(Interlock::shared().0, "existing", PACKAGE);
    let made = make_settings(&ground);
    ground.create("demo", "settings-0.1.0", &json!({}));
    let said = await_failure(&ground, "demo");
    let ns = ground.ns.name();
    for text in [
        format!("ConfigMap {ns}/settings exists, and no Instance made it"),
        format!("`interlock plan adopt demo -n {ns} --reason WHY` takes it over"),
        "annotate it interlock.dev/adopt: demo".to_owned(),
        format!("set adoption: Allow for namespace {ns}"),
    ] {
        assert!(said.contains(&text), "want {text:?} in: {said}");
    }
    delete_with_dependents(&ground, "demo");
    let kept = await_event(&ground.ns, "ObjectKept");
    assert!(kept.contains("ConfigMap") && kept.contains("no Instance made it"), "{kept}");
    assert_eq!(ground.user.read(&config_map(&ground)).ok(), made, "it is as its user made it");
}

#[test]
fn an_object_that_its_user_hands_over_goes_with_the_instance() {
    let ground = Ground::new(Interlock::shared().0, "existing", PACKAGE);
    make_settings(&ground);
    ground.create("demo", "settings-0.1.0", &json!({}));
    await_failure(&ground, "demo");
    ground.user.kubectl(&["annotate", "configmap", "settings", "interlock.dev/adopt=demo"]).ok();
    let arguments =
        ["plan", "-n", ground.ns.name(), "retry", "demo", "--reason", "it was handed over", "--wait"];
    let retried: Output = interlock(&ground.user, &arguments, "");
    retried.ok();
    let demo = ground.await_plan("demo", "deploy", "COMPLETE");
    let settings = ground.user.read(&config_map(&ground)).ok();
    assert_eq!(settings["metadata"]["ownerReferences"][0]["uid"], demo["metadata"]["uid"]);
    assert_eq!(settings["data"], json!({"mine": "yes", "from": "demo"}));
    delete_with_dependents(&ground, "demo");
    assert_eq!(ground.user.read(&config_map(&ground)).code, 404);
}

/// Whoever has the verb lets the plan take what held it; the record names the object, and nothing else is taken.
#[test]
fn what_held_a_plan_is_adopted_on_request() {
    let ground = Ground::new(Interlock::shared().0, "existing", PACKAGE);
    let made = make_settings(&ground);
    ground.create("demo", "settings-0.1.0", &json!({}));
    await_failure(&ground, "demo");
    let held = ground.get("demo");
    let expected = json!([{"kind": "ConfigMap", "name": "settings", "uid": made["metadata"]["uid"]}]);
    assert_eq!(held["status"]["requests"]["heldBy"], expected, "{held:#}");
    let adopt =
        ["plan", "-n", ground.ns.name(), "adopt", "demo", "--reason", "the settings are ours", "--wait"];
    let said = interlock(&ground.user, &adopt, "").ok();
    assert!(said.contains("is to be retried, and takes over ConfigMap settings"), "{said}");
    let demo = ground.await_plan("demo", "deploy", "COMPLETE");
    let settings = ground.user.read(&config_map(&ground)).ok();
    assert_eq!(settings["metadata"]["ownerReferences"][0]["uid"], demo["metadata"]["uid"]);
    assert_eq!(settings["data"], json!({"mine": "yes", "from": "demo"}));
    let told = await_event(&ground.ns, "ObjectsAdopted");
    assert!(told.contains("takes over ConfigMap settings by alice: the settings are ours"), "{told}");
    let out = interlock(&ground.user, &adopt, "");
    assert!(out.code == 1 && out.stderr.contains("no plan is held by objects"), "{out}");
    delete_with_dependents(&ground, "demo");
    assert_eq!(ground.user.read(&config_map(&ground)).code, 404);
}

#[test]
fn what_another_instance_made_is_not_taken() {
    let ground = Ground::new(Interlock::shared().0, "existing", PACKAGE);
    ground.create("first", "settings-0.1.0", &json!({}));
    ground.await_plan("first", "deploy", "COMPLETE");
    let made = ground.user.read(&config_map(&ground)).ok();
    ground.create("second", "settings-0.1.0", &json!({}));
    let said = await_failure(&ground, "second");
    assert!(said.contains("exists, and is of Instance first"), "{said}");
    delete_with_dependents(&ground, "second");
    assert_eq!(ground.user.read(&config_map(&ground)).ok(), made, "it is as the first made it");
}

/// A name becomes a part of the path of requests: one that leads elsewhere is asked for nowhere.
#[test]
fn a_name_that_leads_to_another_object_fails_the_step() {
    let ground = Ground::new(Interlock::shared().0, "existing", PACKAGE);
    for (instance, name) in
        [("other", "other/secrets/x"), ("above", "../secrets/x"), ("query", "x%3FdryRun=All")]
    {
        ground.create(instance, "settings-0.1.0", &json!({"NAME": name}));
        let said = await_failure(&ground, instance);
        assert!(said.contains(&format!("metadata.name {name:?} of the ConfigMap contains")), "{said}");
        assert!(said.contains("write a name of at most 253 characters without / and %"), "{said}");
    }
}
