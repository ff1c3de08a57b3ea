//! What is applied from Git comes in any order: Instances before their OperatorVersions.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::ground::instance;
use crate::support::instances::{await_run, condition, run_of};
use crate::support::interlock::interlock;
use crate::support::{Client, Interlock, Namespace, wait_until};

const CAP: Duration = Duration::from_secs(60);

/// `web-VERSION`: every plan makes a ConfigMap with the version and the parameter SIZE, an integer.
fn version(name: &str, version: &str) -> Value {
    let plan = json!({
        "strategy": "serial",
        "phases": [{"name": "main", "strategy": "serial", "steps": [{"name": "apply", "tasks": ["apply"]}]}],
    });
    let template = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  version: {version:?}\n  size: {{{{ .Params.SIZE | quote }}}}\n"
    );
    json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "OperatorVersion", "metadata": {"name": name},
        "spec": {
            "operator": {"kind": "Operator", "name": "web"}, "version": version,
            "parameters": [
                {"name": "SIZE", "value-type": "integer", "default": "1"},
                {"name": "ZONE", "immutable": true, "default": "a"},
            ],
            "tasks": [
                {"name": "apply", "kind": "Apply", "spec": {"resources": ["web.yaml"]}},
                {"name": "delete", "kind": "Delete", "spec": {"resources": ["web.yaml"]}},
            ],
            "templates": {"web.yaml": template},
            "plans": {"deploy": plan, "update": plan, "upgrade": plan, "backup": plan, "cleanup": {
                "strategy": "serial",
                "phases": [{"name": "main", "strategy": "serial", "steps": [{"name": "delete", "tasks": ["delete"]}]}],
            }},
        },
    })
}

struct Ground<'a> {
    ns: Namespace<'a>,
    user: Client,
}

impl Ground<'_> {
    fn new(base: &str) -> Self {
        let ns = Interlock::shared().0.namespace(base);
        let user = ns.user("alice");
        Self { ns, user }
    }

    fn path(&self, resource: &str, name: &str) -> String {
        self.ns.path(if resource == "configmaps" { "v1" } else { meta::KUDO_API_VERSION }, resource, name)
    }

    fn create_version(&self, name: &str, number: &str) {
        self.user.post(&self.path("operatorversions", ""), &version(name, number)).ok();
    }

    #[track_caller]
    fn create(&self, parameters: &Value) {
        self.user.post(&self.path("instances", ""), &instance("web", "web-1", parameters)).ok();
    }

    fn edit(&self, spec: &Value) -> Answer {
        self.user.merge_patch(&self.path("instances", "web"), &json!({ "spec": spec }))
    }

    #[track_caller]
    fn await_condition(&self, type_: &str, status: &str, reason: &str) -> Value {
        wait_until(&format!("{type_} is {status}/{reason}"), CAP, || {
            let found = self.user.read(&self.path("instances", "web")).ok();
            let is = condition(&found, type_);
            if is["status"] == status && is["reason"] == reason { Ok(found) } else { Err(found.to_string()) }
        })
    }

    #[track_caller]
    fn data(&self) -> (String, String) {
        let found = self.user.read(&self.path("configmaps", "web")).ok();
        let text = |name: &str| found["data"][name].as_str().unwrap_or_default().to_owned();
        (text("version"), text("size"))
    }
}

/// As Flux's library does it: a dry-run of all, then each, in the order of their kinds.
#[test]
fn an_instance_that_comes_first_is_carried_out_when_its_version_comes() {
    let ground = Ground::new("early");
    let list = json!({
        "apiVersion": "v1", "kind": "List",
        "items": [instance("web", "web-1", &json!({"SIZE": "3"})), version("web-1", "1.0.0")],
    });
    let apply = |arguments: &[&str], input: &Value| {
        ground
            .user
            .kubectl_in(&[&["apply", "--server-side", "-f", "-"], arguments].concat(), &input.to_string())
    };
    let said = apply(&["--dry-run=server"], &list);
    let warned = format!(
        "OperatorVersion {}/web-1 is not there: nothing is carried out until it is",
        ground.ns.name()
    );
    assert!(said.stderr.contains(&warned), "{}", said.stderr);
    said.ok();
    assert!(ground.user.get("instances.kudo.dev", "web").is_none(), "a dry-run");

    let said = apply(&[], &list["items"][0]);
    assert!(said.stderr.contains(&warned), "{}", said.stderr);
    said.ok();
    let found = ground.await_condition("Reconciling", "True", "OperatorVersionMissing");
    assert_eq!(condition(&found, "Ready")["reason"], "OperatorVersionMissing");
    assert_eq!(found["metadata"]["finalizers"], Value::Null);
    assert_eq!(found["spec"]["planExecution"], Value::Null);

    let said = apply(&[], &list);
    said.ok();
    let found = await_run(&ground.user, "web", "deploy", "");
    assert_eq!(ground.data(), ("1.0.0".to_owned(), "3".to_owned()));
    assert_eq!(found["spec"]["parameters"]["ZONE"], "a", "it got the default");
    ground.await_condition("Ready", "True", "ResourcesReady");
    let found = ground.user.get("instances.kudo.dev", "web").unwrap();
    for type_ in ["Reconciling", "Stalled", "SpecDrift"] {
        assert_eq!(condition(&found, type_), &Value::Null);
    }
}

/// What admission would have refused is said when the OperatorVersion is there, and mended by any edit.
#[test]
fn what_would_have_been_refused_is_said_then() {
    let ground = Ground::new("early-wrong");
    ground.create(&json!({"SIZE": "many"}));
    ground.await_condition("Reconciling", "True", "OperatorVersionMissing");
    // Nothing is locked.
    ground.edit(&json!({"operatorVersion": {"name": "web-1.0"}})).ok();
    ground.edit(&json!({"operatorVersion": {"name": "web-1"}})).ok();
    ground.create_version("web-1", "1.0.0");
    let found = ground.await_condition("Stalled", "True", "ParameterInvalid");
    let said = condition(&found, "Stalled")["message"].as_str().unwrap_or_default().to_owned();
    assert!(said.contains("SIZE") && said.contains("integer"), "{said}");
    let refused = ground.edit(&json!({"parameters": {"SIZE": "more"}}));
    assert!(refused.message().contains("[parameter-invalid]"), "{refused}");
    ground.edit(&json!({"parameters": {"SIZE": "2"}})).ok();
    await_run(&ground.user, "web", "deploy", "");
    assert_eq!(ground.data().1, "2");
    ground.await_condition("Ready", "True", "ResourcesReady");
}

/// Until the OperatorVersion of an upgrade is there, the one before is carried out and cannot be deleted.
#[test]
fn an_upgrade_that_comes_first_keeps_what_is_carried_out() {
    let ground = Ground::new("early-upgrade");
    ground.create_version("web-1", "1.0.0");
    ground.create(&json!({}));
    await_run(&ground.user, "web", "deploy", "");
    ground.await_condition("Ready", "True", "ResourcesReady");
    ground.edit(&json!({"operatorVersion": {"name": "web-2"}})).ok();
    let found = ground.await_condition("SpecDrift", "True", "OperatorVersionMissing");
    assert_eq!(condition(&found, "Ready")["status"], "False");
    assert_eq!(condition(&found, "Reconciling")["reason"], "OperatorVersionMissing");
    let refused = ground.user.delete(&ground.path("operatorversions", "web-1"));
    assert!(refused.message().contains("[version-in-use]"), "{refused}");

    let before = run_of(&found, "backup");
    ground.edit(&json!({"planExecution": {"planName": "backup"}})).ok();
    await_run(&ground.user, "web", "backup", &before);
    assert_eq!(ground.data().0, "1.0.0");
    ground.await_condition("SpecDrift", "True", "OperatorVersionMissing");

    ground.create_version("web-2", "2.0.0");
    await_run(&ground.user, "web", "upgrade", "");
    assert_eq!(ground.data().0, "2.0.0");
    let found = ground.await_condition("Ready", "True", "ResourcesReady");
    assert_eq!(condition(&found, "SpecDrift"), &Value::Null);
    ground.user.delete(&ground.path("operatorversions", "web-1")).ok();
}

/// Nothing of it was ever made.
#[test]
fn one_that_waits_is_deleted_at_once() {
    let ground = Ground::new("early-gone");
    ground.create(&json!({}));
    ground.await_condition("Reconciling", "True", "OperatorVersionMissing");
    // A plan that admission takes out again is not told as scheduled.
    let trigger = ["plan", "trigger", "web", "--plan", "backup", "-n", ground.ns.name()];
    let said = interlock(&ground.user, &trigger, "");
    assert_eq!(said.code, 1, "{said}");
    assert!(said.stderr.contains("it waits for OperatorVersion web-1: plan deploy runs first"), "{said}");
    ground.user.delete(&ground.path("instances", "web")).ok();
    assert!(ground.user.get("instances.kudo.dev", "web").is_none());
}

/// Whoever may not read a namespace learns nothing of its OperatorVersions.
#[test]
fn a_stranger_does_not_learn_what_is_there() {
    let (ground, other) = (Ground::new("early-here"), Ground::new("early-there"));
    other.create_version("web-1", "1.0.0");
    let stranger = ground.ns.user("carol");
    let ask = |name: &str| {
        let mut object = instance("web", name, &json!({}));
        object["spec"]["operatorVersion"]["namespace"] = json!(other.ns.name());
        let said = stranger.kubectl_in(&["create", "-f", "-"], &object.to_string());
        (said.code, said.stderr.replace(name, "NAME"))
    };
    let (there, absent) = (ask("web-1"), ask("web-9"));
    assert_eq!(there, absent);
    assert!(there.1.contains("[version-namespace]"), "{}", there.1);
}
