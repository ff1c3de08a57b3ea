//! Overrides: one user's write of one object against one rule, until it expires.

use interlock_core::admission::lister::{CacheState, KindListers, Lister, Overridden};
use interlock_core::admission::{AdmissionAnswer, CacheWait, WebhookEndpoint, answer};
use interlock_core::api::interlock::Actions;
use jiff::{SignedDuration, Timestamp};
use rstest::rstest;
use serde_json::{Value, json};

use super::{ALICE, World, idle, now, review, running};

/// One Override, and everything else as in a world.
struct Granted<'w> {
    world: &'w World,
    uid: &'w str,
    rule: &'w str,
    user: &'w str,
    expires: Timestamp,
}

impl Lister for Granted<'_> {
    fn actions(&self, namespace: &str) -> Actions {
        self.world.view.actions(namespace)
    }

    fn kinds(&self) -> &KindListers {
        self.world.view.kinds()
    }

    fn cache(&self, _: &str) -> CacheState {
        CacheState::Synced
    }

    fn overridden(&self, of: Overridden<'_>) -> Option<String> {
        let is = (self.uid, self.rule) == (of.uid, of.rule.id());
        let by = of.user.is_none_or(|user| user == self.user);
        (is && by && of.now < self.expires).then(|| "ticket-4711".to_owned())
    }
}

impl Granted<'_> {
    fn ask(&self, review: &Value, now: Option<Timestamp>) -> Value {
        let body = serde_json::to_vec(review).unwrap();
        let kinds = interlock_core::kinds::guarded(crate::all());
        let config = &self.world.config;
        let asked =
            answer(&kinds, WebhookEndpoint::Mutate, &body, self, config, CacheWait::Exhausted, now).unwrap();
        let AdmissionAnswer::Done(reply) = asked else { panic!("it waits") };
        serde_json::from_slice::<Value>(&reply.body).unwrap()["response"].clone()
    }
}

fn later(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

#[rstest]
#[case::that_write("c0ffee", "parameter-immutable", ALICE, 1, true)]
#[case::of_another_object("decaf", "parameter-immutable", ALICE, 1, false)]
#[case::against_another_rule("c0ffee", "parameter-invalid", ALICE, 1, false)]
#[case::by_another_user("c0ffee", "parameter-immutable", "mallory", 1, false)]
#[case::too_late("c0ffee", "parameter-immutable", ALICE, 0, false)]
fn it_admits_that_write_and_no_other(
    #[case] uid: &str,
    #[case] rule: &str,
    #[case] user: &str,
    #[case] seconds: i64,
    #[case] admitted: bool,
) {
    let world = World::strict();
    let granted = Granted { world: &world, uid, rule, user, expires: later(seconds) };
    let old = idle(json!({"ID": "7"}));
    let mut object = old.clone();
    object["spec"]["parameters"]["ID"] = json!("8");
    let review = review("UPDATE", "Instance", object, old);
    let response = granted.ask(&review, Some(now()));
    assert_eq!(response["allowed"], admitted, "{response}");
    if admitted {
        let warning = response["warnings"][0].as_str().unwrap();
        assert!(warning.contains("parameter 'ID' is immutable"), "{warning}");
        assert!(warning.ends_with(" [parameter-immutable] (admitted: Override ticket-4711)"), "{warning}");
        assert_eq!(response["auditAnnotations"]["admitted"], "parameter-immutable");
        assert!(response["patch"].is_string(), "its plan is scheduled: {response}");
    }
    assert_eq!(granted.ask(&review, None)["allowed"], false, "the time is not known");
}

/// Whatever an Override says, neither the lock nor the freeze gives way.
#[rstest]
#[case::freeze("plan-running", json!({"spec": {"parameters": {"NODES": "9"}}}))]
#[case::cancellation("plan-cancel", json!({"spec": {"planExecution": {"planName": ""}}}))]
#[case::another_plan("plan-override", json!({"spec": {"planExecution": {"planName": "backup", "uid": "u"}}}))]
fn the_integrity_of_the_lock_cannot_be_overridden(#[case] rule: &str, #[case] change: Value) {
    let world = World::strict();
    let granted = Granted { world: &world, uid: "c0ffee", rule, user: ALICE, expires: later(1) };
    let old = running("deploy");
    let mut object = old.clone();
    json_patch::merge(&mut object, &change);
    let response = granted.ask(&review("UPDATE", "Instance", object, old), Some(now()));
    assert_eq!(response["allowed"], false, "{response}");
    assert!(response.to_string().contains(&format!("[{rule}]")), "{response}");
}
