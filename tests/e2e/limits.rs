//! Time limits of steps and cleanups, as the annotations of Instances set them.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::support::ground::{self, Ground};
use crate::support::{Interlock, instances, wait_until};

const CAP: Duration = Duration::from_secs(60);

/// `held-0.1.0`, whose plan deploy waits at a Service without an address where GATED is true, and
/// `lingering-0.1.0`, whose cleanup never ends.
const PACKAGE: &str = include_str!("verbs/operatorversion.yaml");

impl Ground<'_> {
    fn create_limited(&self, name: &str, version: &str, key: &str, text: &str) {
        let mut object = ground::instance(name, version, &json!({}));
        if version == "held-0.1.0" {
            object["spec"]["parameters"]["GATED"] = json!("true");
        }
        object["metadata"]["annotations"] = json!({ key: text });
        self.user.post(&self.path(""), &object).ok();
    }
}

fn steps(found: &Value) -> &Value {
    &found["status"]["planStatus"]["deploy"]["phases"][0]["steps"]
}

/// Nothing happens to what the step waits for: it is looked at again because its time is over.
#[test]
fn a_step_with_a_deadline_ends_its_run() {
    let ground = Ground::new(Interlock::shared().0, "deadline", PACKAGE);
    ground.create_limited("demo", "held-0.1.0", meta::STEP_DEADLINE, "deploy.main.gate=1s");
    let found = ground.await_plan("demo", "deploy", "FATAL_ERROR");
    let gate = &steps(&found)[1];
    assert_eq!((&steps(&found)[0]["status"], &gate["status"]), (&json!("COMPLETE"), &json!("FATAL_ERROR")));
    let message = gate["message"].as_str().expect("a message");
    assert!(message.contains("step deploy.main.gate has a deadline of 1s and was not done"), "{message}");
    assert!(message.contains("does not have load balancer ingress IP address"), "{message}");
    assert!(instances::await_event(&ground.ns, "StepDeadlineExceeded").contains(message));

    let unlimited = json!({"metadata": {"annotations": {meta::STEP_DEADLINE: null}}});
    ground.user.merge_patch(&ground.path("demo"), &unlimited).ok();
    ground.open("demo");
    let again = json!({"spec": {"planExecution": {"planName": "deploy"}}});
    ground.user.merge_patch(&ground.path("demo"), &again).ok();
    ground.await_plan("demo", "deploy", "COMPLETE");
}

#[test]
fn a_limit_that_cannot_be_read_is_refused() {
    let ground = Ground::new(Interlock::shared().0, "unreadable", PACKAGE);
    ground.create("demo", "held-0.1.0", &json!({}));
    let text =
        ground.user.kubectl(&["annotate", "instance", "demo", "interlock.dev/step-deadline=soon"]).refused();
    assert!(text.contains("\"soon\" is no time; write one such as 90s, 10m or 1h30m"), "{text}");
    ground.user.kubectl(&["annotate", "instance", "demo", "interlock.dev/step-deadline=10m"]).ok();
    let several = "interlock.dev/step-deadline=deploy.main.gate=90s,10m";
    ground.user.kubectl(&["annotate", "instance", "demo", "--overwrite", several]).ok();
    // An annotation alone is no change of a package that is judged: it is with the package.
    let version = json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "OperatorVersion",
        "metadata": {"name": "hasty-0.1.0", "annotations": {meta::CLEANUP_PATIENCE: "never"}},
        "spec": {"version": "0.1.0"},
    });
    let path = ground.ns.path(meta::KUDO_API_VERSION, "operatorversions", "");
    let text = ground.user.post(&path, &version).refused(422).to_string();
    assert!(text.contains("is no time; write one such as 90s"), "{text}");
}

/// At rest a limit is for whoever may edit the Instance, and an unchanged manifest is always applied.
#[test]
fn a_limit_is_set_at_rest_and_stays_while_a_plan_runs() {
    let ground = Ground::new(Interlock::shared().0, "at-rest", PACKAGE);
    ground.create("demo", "held-0.1.0", &json!({}));
    ground.await_plan("demo", "deploy", "COMPLETE");
    let rules = json!([{"apiGroups": ["kudo.dev"], "resources": ["instances"], "verbs": ["get", "patch"]}]);
    let bob = ground.ns.user_with("bob", &rules);
    let limit = |text: Value| json!({"metadata": {"annotations": {meta::STEP_DEADLINE: text}}});
    wait_until("bob sets a limit", CAP, || {
        match bob.merge_patch(&ground.path("demo"), &limit(json!("2h"))) {
            answer if answer.code == 200 => Ok(()),
            answer => Err(answer.to_string()),
        }
    });
    let mut manifest = ground::instance("demo", "held-0.1.0", &json!({"GATED": "true"}));
    manifest["metadata"]["annotations"] = json!({meta::STEP_DEADLINE: "2h"});
    let apply =
        |flags: &[&str]| bob.kubectl_in(&[&["apply", "-f", "-"], flags].concat(), &manifest.to_string()).ok();
    apply(&[]);
    ground.await_step("demo", "deploy", 1, "IN_PROGRESS");
    apply(&[]);
    // Unlike the other it is always sent.
    apply(&["--server-side", "--force-conflicts"]);
    for changed in [json!("0s"), json!("3h"), Value::Null] {
        let said = bob.merge_patch(&ground.path("demo"), &limit(changed));
        assert!(said.message().contains("[verb-rights]; see `interlock explain verb-rights`"), "{said}");
        said.refused(422);
    }
    ground.user.merge_patch(&ground.path("demo"), &limit(json!("0s"))).ok();
    ground.await_plan("demo", "deploy", "FATAL_ERROR");
    bob.merge_patch(&ground.path("demo"), &limit(Value::Null)).ok();
}

/// A cleanup that nobody but a person could let go on: the Instance goes, with a Warning Event.
#[test]
fn a_cleanup_that_is_never_done_is_given_up() {
    let ground = Ground::new(Interlock::shared().0, "given-up", PACKAGE);
    ground.create_limited("demo", "lingering-0.1.0", meta::CLEANUP_PATIENCE, "1s");
    ground.await_plan("demo", "deploy", "COMPLETE");
    ground.user.kubectl(&["delete", "instance", "demo", "--timeout=90s"]).ok();
    let said = instances::await_event(&ground.ns, "CleanupSkipped");
    assert!(said.contains("cleanup failed 3 times"), "{said}");
    assert!(said.contains("longer than 1s after the deletion"), "{said}");
    assert!(said.contains("is a Dummy that is never done"), "{said}");
    assert!(said.contains("step main.never"), "{said}");
}
