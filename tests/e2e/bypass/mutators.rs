//! Other mutating webhooks: the API server calls them in the order of their configurations' names.

use interlock_core::api::stamp::Envelope;
use serde_json::{Value, json};

use super::{CAP, Client, Ground, Layers, essence, instance, rule};
use crate::support::scripted::{Call, Reaction, Scripted};
use crate::support::wait_until;

/// Somebody's webhook that sets parameter SIZE of Instances in one namespace.
struct Mutator {
    hook: Scripted,
    admin: Client,
    name: String,
}

impl Mutator {
    /// Registered under this prefix: `a` is called before `interlock`, `z` after it.
    fn new(ground: &Ground<'_>, prefix: &str, again: bool) -> Self {
        let (hook, admin) = (Scripted::start(), ground.ns.admin());
        let name = format!("{prefix}-{}", ground.ns.name());
        let rule = json!({"apiGroups": ["kudo.dev"], "apiVersions": ["v1beta1"],
            "resources": ["instances"], "operations": ["CREATE", "UPDATE"]});
        hook.register(&admin, "Mutating", &name, ground.ns.name(), &rule);
        if again {
            let patch =
                json!([{"op": "replace", "path": "/webhooks/0/reinvocationPolicy", "value": "IfNeeded"}]);
            admin.json_patch(&configuration(&name), &patch).ok();
        }
        let mutator = Self { hook, admin, name };
        wait_until("the other webhook is called", CAP, || {
            let path = format!("{}?dryRun=All", ground.path(""));
            ground.user.post(&path, &instance("probe", &json!({}))).ok();
            if mutator.hook.take_calls().is_empty() { Err("not yet".to_owned()) } else { Ok(()) }
        });
        mutator
    }

    /// From now on SIZE of this Instance becomes what it says, by the number of the call.
    fn sets(&self, value: impl Fn(usize) -> String + Send + 'static) {
        let mut calls = 0;
        self.hook.script(move |call: &Call| {
            if call.at("/userInfo/username") != "alice" {
                return Reaction::allow();
            }
            calls += 1;
            let op = |path: &str, value: Value| json!([{"op": "add", "path": path, "value": value}]);
            Reaction::patch(&match call.at("/object/spec/parameters") {
                Value::Null => op("/spec/parameters", json!({"SIZE": value(calls)})),
                _ => op("/spec/parameters/SIZE", json!(value(calls))),
            })
        });
    }
}

impl Drop for Mutator {
    fn drop(&mut self) {
        self.admin.delete(&configuration(&self.name));
    }
}

fn configuration(name: &str) -> String {
    format!("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{name}")
}

/// The stamp is of the spec beside it.
#[track_caller]
fn assert_stamped(found: &Value, size: &str) {
    assert_eq!(found["spec"]["parameters"]["SIZE"], size, "{found:#}");
    let text = found["metadata"]["annotations"]["interlock.dev/last-applied-spec"].as_str().expect("a stamp");
    let envelope = Envelope::parse(text).expect("a stamp that can be read");
    let spec = envelope.kept.inline().expect("inline");
    assert_eq!(spec.hash(), envelope.hash);
    let value = spec.parameters.iter().find(|(name, _)| *name == "SIZE").map(|(_, value)| value.as_ref());
    assert_eq!(value, Some(size), "{found:#}");
}

/// What is accepted is what is carried out, whoever changed it last.
fn the_final_spec_is_the_one_that_is_stamped_and_runs(prefix: &str) {
    let ground = Layers::Both.ground("mutator");
    let mutator = Mutator::new(&ground, prefix, false);
    mutator.sets(|_| "first".to_owned());
    let made = ground.user.post(&ground.path(""), &instance("demo", &json!({"OTHER": "own"}))).ok();
    assert_stamped(&made, "first");
    ground.await_plan("demo", "deploy", "COMPLETE");

    mutator.sets(|_| "second".to_owned());
    let edit = json!({"spec": {"parameters": {"SIZE": "mine"}}});
    let edited = ground.user.merge_patch(&ground.path("demo"), &edit).ok();
    assert_stamped(&edited, "second");
    assert_eq!(edited["spec"]["planExecution"]["planName"], "update");
    ground.await_plan("demo", "update", "COMPLETE");

    // Something else of the user's, and a spec of the webhook's: an edit like any other.
    mutator.sets(|_| "third".to_owned());
    let note = json!({"metadata": {"annotations": {"example.com/a": "b"}}});
    let noted = ground.user.merge_patch(&ground.path("demo"), &note).ok();
    assert_stamped(&noted, "third");
    assert_eq!(noted["spec"]["planExecution"]["planName"], "update");
    ground.await_that("demo", "it runs", |found| {
        let idle = found["spec"]["planExecution"]["planName"].as_str().unwrap_or("").is_empty();
        idle && ground.data("demo-after").is_some_and(|data| data["size"] == super::sha256("third"))
    });
}

#[test]
fn what_a_mutator_before_us_changes_is_stamped_and_runs() {
    the_final_spec_is_the_one_that_is_stamped_and_runs("a");
}

#[test]
fn what_a_mutator_after_us_changes_is_stamped_and_runs() {
    the_final_spec_is_the_one_that_is_stamped_and_runs("z");
}

/// The API server asks a mutating webhook again only where it asked it before, and ours is not
/// asked about a label, so that labels can be changed while it is down: what then becomes of the
/// spec is nobody's to stamp.
#[test]
fn what_a_mutator_after_us_changes_beside_a_mere_label_is_refused() {
    let ground = Layers::Both.ground("mutator");
    ground.deployed("demo");
    let mutator = Mutator::new(&ground, "z", false);
    mutator.sets(|_| "changed".to_owned());
    let before = ground.get("demo");
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    assert_eq!(rule(&ground.user.merge_patch(&ground.path("demo"), &label)), "plan-uid");
    assert_eq!(ground.get("demo"), before);
}

/// On a locked Instance its change is refused like a user's, also beside a mere label.
fn a_locked_instance_is_kept_from(prefix: &str) {
    let ground = Layers::Both.ground("mutator");
    let before = ground.running("demo");
    let mutator = Mutator::new(&ground, prefix, false);
    mutator.sets(|_| "changed".to_owned());
    for patch in [
        json!({"metadata": {"labels": {"a": "b"}}}),
        json!({"metadata": {"annotations": {"a": "b"}}}),
        json!({"spec": {"parameters": {"OTHER": "own"}}}),
    ] {
        assert_eq!(rule(&ground.user.merge_patch(&ground.path("demo"), &patch)), "plan-running", "{patch}");
    }
    assert_eq!(essence(&ground.get("demo")), essence(&before));
}

#[test]
fn what_a_mutator_before_us_changes_of_a_locked_instance_is_refused() {
    a_locked_instance_is_kept_from("a");
}

#[test]
fn what_a_mutator_after_us_changes_of_a_locked_instance_is_refused() {
    a_locked_instance_is_kept_from("z");
}

/// Called again after our last pass, it changes the spec again: nobody stamped that.
#[test]
fn what_a_mutator_changes_after_our_last_pass_is_refused() {
    let ground = Layers::Both.ground("mutator");
    ground.deployed("demo");
    let mutator = Mutator::new(&ground, "z", true);
    mutator.sets(|call| format!("call {call}"));
    let before = ground.get("demo");
    let edit = json!({"spec": {"parameters": {"SIZE": "mine"}}});
    let answer = ground.user.merge_patch(&ground.path("demo"), &edit);
    let rule = rule(&answer);
    assert!(["plan-uid", "stamp-mismatch", "mutation-missing"].contains(&rule.as_str()), "{answer}");
    assert_eq!(ground.get("demo"), before);
}
