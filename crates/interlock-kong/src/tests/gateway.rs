//! Gateways: the rules about router flavors through the webhook's own path.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use interlock_core::admission::lister::{CacheState, Lister};
use interlock_core::admission::{AdmissionAnswer, CacheWait, Config, Freeze, WebhookEndpoint, answer};
use interlock_core::api::interlock::{RuleSetting, Rules};
use interlock_core::kinds::static_lister::StaticLister;
use interlock_core::testing::{Cached, assert_shape};
use rstest::rstest;
use serde_json::{Value, json};

fn gateway(flavor: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "edge", "namespace": "kong",
            "labels": {"interlock.dev/guard": "kong-router-flavor"},
            "annotations": {"interlock.dev/config-producer": "kic"},
        },
        "spec": {"replicas": 3, "template": {"spec": {"containers": [{
            "name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_ROUTER_FLAVOR", "value": flavor}],
        }]}}},
    })
}

fn ask(door: WebhookEndpoint, objects: &[Value], action: Option<&str>, object: &Value, old: &Value) -> Value {
    let mut view = StaticLister::of(crate::all());
    for object in objects {
        view.add(object, "kong").unwrap();
    }
    if let Some(action) = action {
        view.add(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kong"}}), "")
            .unwrap();
        let settings: Vec<RuleSetting> =
            serde_json::from_value(json!([{"group": "flavors", "action": action}])).unwrap();
        view.set_rules(Rules::read(&settings).0);
    }
    through(door, &view, object, old)
}

fn through(door: WebhookEndpoint, view: &dyn Lister, object: &Value, old: &Value) -> Value {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
            "name": "edge", "namespace": "kong",
            "operation": if old.is_null() { "CREATE" } else { "UPDATE" },
            "userInfo": {"username": "alice"}, "object": object, "oldObject": old,
        },
    });
    let config = Config { controller_user: String::new(), freeze: Freeze::Strict, docs: None };
    let body = review.to_string();
    match answer(
        &interlock_core::kinds::guarded(crate::all()),
        door,
        body.as_bytes(),
        view,
        &config,
        CacheWait::Exhausted,
        None,
    )
    .unwrap()
    {
        AdmissionAnswer::Done(reply) => {
            let response = serde_json::from_slice::<Value>(&reply.body).unwrap()["response"].take();
            if response["allowed"] == json!(false) {
                assert_shape(&response);
            }
            response
        }
        AdmissionAnswer::Wait(key) => panic!("waits for {key}"),
    }
}

#[test]
fn a_refusal_names_the_change_the_rule_and_the_plan() {
    let said = ask(WebhookEndpoint::Validate, &[], None, &gateway("traditional"), &gateway("expressions"));
    assert_eq!(said["status"]["code"], 422);
    assert_eq!(
        said["status"]["message"],
        "router flavor change expressions -> traditional skips a step; change to traditional_compatible first, \
         roll it out, then change to traditional (this isolates regex-engine failures from route-format failures) \
         [RF03]\n  spec.template: router flavor expressions -> traditional\nNext: keep the flavor that `kubectl get \
         deployment/edge -n kong -o yaml` shows, or take the steps that `interlock flavor plan deployment/edge -n kong --to \
         traditional --outage` prints\nSee `interlock explain RF03`"
    );
    assert_eq!(said["status"]["details"]["causes"][0]["field"], "spec.template");
}

#[rstest]
#[case::same(WebhookEndpoint::Validate, None, "expressions", true, "")]
#[case::mutated(WebhookEndpoint::Mutate, None, "traditional", true, "")]
#[case::warned(
    WebhookEndpoint::Validate,
    Some("Warn"),
    "traditional",
    true,
    "(admitted: group flavors warns here)"
)]
#[case::off(WebhookEndpoint::Validate, Some("Off"), "traditional", true, "")]
#[case::denied(WebhookEndpoint::Validate, Some("Deny"), "traditional", false, "is deprecated")]
fn doors_and_settings(
    #[case] door: WebhookEndpoint,
    #[case] action: Option<&str>,
    #[case] to: &str,
    #[case] allowed: bool,
    #[case] warning: &str,
) {
    let said = ask(door, &[], action, &gateway(to), &gateway("expressions"));
    assert_eq!(said["allowed"], allowed, "{said}");
    assert_eq!(said["warnings"].is_null(), warning.is_empty(), "{said}");
    assert!(said["warnings"].to_string().contains(warning), "{said}");
}

#[test]
fn what_is_around_a_gateway_counts() {
    let old = gateway("traditional_compatible");
    let mut other = gateway("traditional_compatible");
    other["metadata"]["name"] = json!("other");
    let said = ask(WebhookEndpoint::Validate, &[old.clone(), other], None, &gateway("expressions"), &old);
    let message = said["status"]["message"].as_str().unwrap();
    assert!(message.starts_with("Deployment kong/edge with expressions would share"), "{message}");
    assert!(message.contains("[RF21]"), "{message}");
}

/// A rollout was under way when the process started, and the previous template is unknown.
#[rstest]
#[case::another_flavor(
    "traditional_compatible",
    "cannot determine what the pods of Deployment kong/edge run with, so judged by what is stored: a rollout is under way, and its ReplicaSets were not looked at yet [RF10]"
)]
#[case::another_field("expressions", "")]
fn a_rollout_that_cannot_be_told_of_is_said(#[case] to: &str, #[case] warning: &str) {
    let mut old = gateway("expressions");
    old["metadata"]["generation"] = json!(3);
    let said = ask(WebhookEndpoint::Validate, std::slice::from_ref(&old), None, &gateway(to), &old);
    assert_eq!(said["warnings"].is_null(), warning.is_empty(), "{said}");
    assert!(said["warnings"].to_string().contains(warning), "{said}");
}

#[test]
fn what_cannot_be_read_is_named() {
    let mut wrong = gateway("expressions");
    wrong["spec"]["template"]["spec"]["containers"] = json!("x");
    let said = ask(WebhookEndpoint::Validate, &[], None, &wrong, &Value::Null);
    let message = said["status"]["message"].as_str().unwrap();
    assert!(
        message.starts_with(
            "Deployment kong/edge cannot be read [request-unknown]\n  spec.template.spec.containers: must be a list, and is \
             a string\n"
        ),
        "{message}"
    );
}

/// A cluster without KUDO's kinds, where Instances are admitted without validation.
#[test]
fn gateways_are_judged_without_the_kinds_of_kudo() {
    let snapshot = StaticLister::of(crate::all());
    let missing = "the definition of Instances is missing".to_owned();
    let view = Cached(&snapshot, CacheState::Unavailable(missing));
    let said = through(WebhookEndpoint::Validate, &view, &gateway("traditional"), &gateway("expressions"));
    assert_eq!(said["allowed"], false, "{said}");
}

/// A Deployment whose flavor comes from ConfigMaps, and its annotation that lists those that are guarded.
fn sourced(sources: &[&str], guarded: Option<&str>) -> Value {
    let from = |name: &&str| json!({"name": "KONG_ROUTER_FLAVOR", "valueFrom": {"configMapKeyRef": {"name": name, "key": "f"}}});
    let env: Vec<Value> = sources.iter().map(from).collect();
    let mut object = gateway("expressions");
    object["spec"]["template"]["spec"]["containers"][0]["env"] = json!(env);
    object["metadata"]["annotations"] = guarded.map_or(Value::Null, |text| json!({GUARDED: text}));
    object
}

const GUARDED: &str = "interlock.dev/guarded-flavor-sources";

/// What an earlier author named stays as it was: whoever edits something else vouches for nothing.
#[rstest]
#[case::new(sourced(&["a"], None), Value::Null, Some("configmaps/a"))]
#[case::another(sourced(&["a", "b"], Some("configmaps/a")), sourced(&["a"], Some("configmaps/a")), Some("configmaps/a,configmaps/b"))]
#[case::of_another_author(sourced(&["a"], None), sourced(&["a"], None), None)]
#[case::the_new_one(sourced(&["a", "b"], None), sourced(&["a"], None), Some("configmaps/b"))]
#[case::asked_for(sourced(&["a"], Some("configmaps/a")), sourced(&["a"], None), None)]
#[case::none(sourced(&[], None), Value::Null, None)]
fn sources_that_the_author_may_update(
    #[case] new: Value,
    #[case] old: Value,
    #[case] expected: Option<&str>,
) {
    let said = ask(WebhookEndpoint::Sources, &[], None, &new, &old);
    assert_eq!(said["allowed"], true, "{said}");
    let text = said["patch"].as_str().map(|text| {
        let patch: json_patch::Patch = serde_json::from_slice(&STANDARD.decode(text).unwrap()).unwrap();
        let mut object = new.clone();
        json_patch::patch(&mut object, &patch.0).unwrap();
        object["metadata"]["annotations"][GUARDED].as_str().unwrap().to_owned()
    });
    assert_eq!(text.as_deref(), expected);
}
