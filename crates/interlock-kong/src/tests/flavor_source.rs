//! ConfigMaps and Secrets that flavors come from, through the webhook's own path.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use interlock_core::admission::{AdmissionAnswer, CacheWait, Config, Freeze, WebhookEndpoint, answer};
use interlock_core::api::interlock::{RuleSetting, Rules};
use interlock_core::api::meta;
use interlock_core::api::stamp::SpecHash;
use interlock_core::kinds::static_lister::StaticLister;
use interlock_core::testing::assert_shape;
use rstest::rstest;
use serde_json::{Value, json};

use crate::data_plane::rollout::side::Colour;

fn gateway(name: &str, image: &str, from: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": name, "namespace": "kong", "labels": {"interlock.dev/guard": "kong-router-flavor"},
            "annotations": {meta::GUARDED_SOURCES: "configmaps/router,secrets/router"},
        },
        "spec": {"replicas": 3, "template": {"spec": {"containers": [{
            "name": "proxy", "image": image, "env": [{"name": "KONG_ROUTER_FLAVOR", "valueFrom": from}],
        }]}}},
    })
}

fn from_map() -> Value {
    json!({"configMapKeyRef": {"name": "router", "key": "flavor"}})
}

fn source(kind: &str, flavor: &str) -> Value {
    let value = if kind == "Secret" { STANDARD.encode(flavor) } else { flavor.to_owned() };
    json!({
        "apiVersion": "v1", "kind": kind,
        "metadata": {"name": "router", "namespace": "kong", "uid": "u", "resourceVersion": "7"},
        "data": {"flavor": value},
    })
}

/// A namespace `kong` with its objects.
struct World {
    objects: Vec<Value>,
    action: &'static str,
    terminating: bool,
}

impl World {
    fn of(objects: &[Value]) -> Self {
        Self { objects: objects.to_vec(), action: "Deny", terminating: false }
    }

    fn ask(&self, door: WebhookEndpoint, object: &Value, old: &Value) -> Value {
        let mut view = StaticLister::of(crate::all());
        let ends = if self.terminating { json!("2026-01-01T00:00:00Z") } else { Value::Null };
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kong", "deletionTimestamp": ends}});
        for object in self.objects.iter().chain([&namespace, old]) {
            view.add(object, "").unwrap();
        }
        let settings: Vec<RuleSetting> =
            serde_json::from_value(json!([{"group": "flavors", "action": self.action}])).unwrap();
        view.set_rules(Rules::read(&settings).0);
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u", "kind": {"group": "", "version": "v1", "kind": old["kind"]},
                "name": "router", "namespace": "kong",
                "operation": if object.is_null() { "DELETE" } else { "UPDATE" },
                "userInfo": {"username": "alice"}, "object": object, "oldObject": old,
            },
        });
        let config = Config { controller_user: String::new(), freeze: Freeze::Strict, docs: None };
        match answer(
            &interlock_core::kinds::guarded(crate::all()),
            door,
            review.to_string().as_bytes(),
            &view,
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
}

fn message(said: &Value) -> &str {
    said["status"]["message"].as_str().unwrap_or_default()
}

#[rstest]
#[case::a_step_that_deadlocks(
    "kong:3.6",
    "traditional_compatible",
    "expressions",
    "ConfigMap kong/router: key \"flavor\" is the router flavor of Deployment kong/edge (live: traditional_compatible); [RF02] "
)]
#[case::two_steps(
    "kong:3.9",
    "traditional",
    "expressions",
    "ConfigMap kong/router: key \"flavor\" is the router flavor of Deployment kong/edge (live: traditional); [RF03] "
)]
#[case::no_flavor(
    "kong:3.9",
    "traditional",
    "atc",
    "ConfigMap kong/router: key \"flavor\" is the router flavor of Deployment kong/edge (live: traditional); [RF01] "
)]
#[case::the_same("kong:3.9", "expressions", " expressions\n", "")]
#[case::a_step_that_works("kong:3.9", "traditional_compatible", "expressions", "")]
fn an_edit_is_judged_as_a_change_in_place(
    #[case] image: &str,
    #[case] from: &str,
    #[case] to: &str,
    #[case] refused: &str,
) {
    let world = World::of(&[gateway("edge", image, &from_map())]);
    let said = world.ask(WebhookEndpoint::Validate, &source("ConfigMap", to), &source("ConfigMap", from));
    assert_eq!(said["allowed"], refused.is_empty(), "{said}");
    assert!(message(&said).starts_with(refused), "{said}");
    assert_eq!(message(&said).contains("[RF18]"), !refused.is_empty());
}

/// A DataPlane on 3.9 that runs with one source of its flavor and has staged another.
fn staged(live: &Value, stored: &Value) -> Value {
    let spec = |env: &Value| {
        json!({"deployment": {
            "rollout": {"strategy": {"blueGreen": {}}},
            "podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9", "env": [env]}]}},
        }})
    };
    let stamp = json!({"v": 1, "hash": SpecHash::of(&spec(live).to_string()), "spec": spec(live)});
    json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
        "metadata": {"name": "edge", "namespace": "kong", "annotations": {meta::LAST_APPLIED_SPEC: stamp.to_string()}},
        "spec": spec(stored),
    })
}

/// The last-applied annotation says what is live; the staged spec is validated as a further step.
#[rstest]
#[case::of_the_live_pods(
    true,
    "expressions",
    "is the router flavor of DataPlane kong/edge (live: traditional); [RF03] "
)]
#[case::of_the_staged_ones(
    false,
    "expressions",
    "ConfigMap kong/router: key \"flavor\" is the next router flavor of DataPlane kong/edge (live: traditional_compatible); [RF06] "
)]
#[case::back_to_the_live_one(false, "traditional_compatible", "")]
fn an_edit_is_compared_with_what_runs(#[case] live: bool, #[case] to: &str, #[case] refused: &str) {
    let value = json!({"name": "KONG_ROUTER_FLAVOR", "value": "traditional_compatible"});
    let from = json!({"name": "KONG_ROUTER_FLAVOR", "valueFrom": from_map()});
    let plane = if live { staged(&from, &value) } else { staged(&value, &from) };
    let said = World::of(&[plane]).ask(
        WebhookEndpoint::Validate,
        &source("ConfigMap", to),
        &source("ConfigMap", "traditional"),
    );
    assert_eq!(said["allowed"], refused.is_empty(), "{said}");
    assert!(message(&said).contains(refused), "{said}");
}

/// A DataPlane whose live pods have the flavor as a literal, as Interlock made them, or take it from the source.
fn carried_out(selector: &str, staged: bool) -> Value {
    let from = json!({"name": "KONG_ROUTER_FLAVOR", "valueFrom": from_map()});
    let live = json!({"deployment": {
        "podTemplateSpec": {"spec": {"containers": [{"name": "proxy", "image": "kong:3.9", "env": [from]}]}},
    }});
    let stamp = json!({
        "v": 1, "hash": SpecHash::of(&live.to_string()), "spec": live, "uid": "uid-1", "selector": selector,
        "flavor": "traditional",
    });
    let mut spec = live;
    if staged {
        spec["deployment"]["rollout"] = json!({"strategy": {"blueGreen": {}}});
    }
    json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
        "metadata": {
            "name": "edge", "namespace": "kong", "uid": "uid-1",
            "annotations": {meta::LAST_APPLIED_SPEC: stamp.to_string()},
        },
        "spec": spec,
        "status": {"selector": selector},
    })
}

#[rstest]
#[case::a_step(true, true, ("traditional", "traditional_compatible"), true, "is the next router flavor of DataPlane kong/edge: traditional -> traditional_compatible")]
#[case::two_steps(true, true, ("traditional", "expressions"), false, "is the next router flavor of DataPlane kong/edge (live: traditional); [RF03] ")]
#[case::another_step(true, true, ("traditional_compatible", "expressions"), false, "is the next router flavor of DataPlane kong/edge (live: traditional); [RF06] ")]
#[case::back(true, true, ("traditional_compatible", "traditional"), true, "is the next router flavor of DataPlane kong/edge")]
#[case::in_place(true, false, ("traditional", "expressions"), false, "is the next router flavor of DataPlane kong/edge (live: traditional); [RF03] ")]
#[case::of_another_operator(false, true, ("traditional", "expressions"), false, "is the router flavor of DataPlane kong/edge (live: traditional); [RF03] ")]
fn live_pods_with_a_literal_are_not_reached(
    #[case] ours: bool,
    #[case] staged: bool,
    #[case] edit: (&str, &str),
    #[case] allowed: bool,
    #[case] expected: &str,
) {
    let selector = if ours { Colour::Blue.selector("uid-1") } else { "another-1".to_owned() };
    let (old, new) = (source("ConfigMap", edit.0), source("ConfigMap", edit.1));
    let said = World::of(&[carried_out(&selector, staged)]).ask(WebhookEndpoint::Validate, &new, &old);
    assert_eq!(said["allowed"], allowed, "{said}");
    assert!(said.to_string().contains(expected), "{said}");
}

#[test]
fn every_gateway_that_is_reached_is_named() {
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let world = World::of(&names.map(|name| gateway(name, "kong:3.9", &from_map())));
    let said = world.ask(
        WebhookEndpoint::Validate,
        &source("ConfigMap", "traditional"),
        &source("ConfigMap", "expressions"),
    );
    let text = message(&said);
    assert!(text.contains("of Deployment kong/a (live: expressions)"), "{text}");
    let others = "Deployment kong/b, Deployment kong/c, Deployment kong/d, Deployment kong/e and 2 more";
    assert!(text.contains(others), "{text}");
}

#[test]
fn the_data_of_a_secret_is_read_from_the_review_and_shown_to_nobody() {
    let from = json!({"secretKeyRef": {"name": "router", "key": "flavor"}});
    let world = World::of(&[gateway("edge", "kong:3.9", &from)]);
    let said =
        world.ask(WebhookEndpoint::Validate, &source("Secret", "hunter2"), &source("Secret", "expressions"));
    assert!(message(&said).contains("KONG_ROUTER_FLAVOR=***"), "{said}");
    assert!(!said.to_string().contains("hunter2"), "{said}");
}

#[rstest]
#[case::denied(WebhookEndpoint::Validate, "Deny", false, false, "")]
#[case::warned(WebhookEndpoint::Validate, "Warn", false, true, "(admitted: group flavors warns here)")]
#[case::off(WebhookEndpoint::Validate, "Off", false, true, "")]
#[case::mutated(WebhookEndpoint::Mutate, "Deny", false, true, "")]
#[case::with_its_namespace(WebhookEndpoint::Validate, "Deny", true, true, "")]
fn a_deletion_is_refused_where_pods_would_not_start(
    #[case] door: WebhookEndpoint,
    #[case] action: &'static str,
    #[case] terminating: bool,
    #[case] allowed: bool,
    #[case] warning: &str,
) {
    let world = World { action, terminating, ..World::of(&[gateway("edge", "kong:3.9", &from_map())]) };
    let said = world.ask(door, &Value::Null, &source("ConfigMap", "expressions"));
    assert_eq!(said["allowed"], allowed, "{said}");
    assert!(said["warnings"].to_string().contains(warning), "{said}");
    assert_eq!(said["warnings"].is_null(), warning.is_empty(), "{said}");
}

#[test]
fn what_feeds_no_gateway_may_change() {
    let elsewhere = json!({"configMapKeyRef": {"name": "other", "key": "flavor"}});
    let world = World::of(&[gateway("edge", "kong:3.9", &elsewhere)]);
    let said =
        world.ask(WebhookEndpoint::Validate, &source("ConfigMap", "x"), &source("ConfigMap", "expressions"));
    assert_eq!((&said["allowed"], said["warnings"].is_null()), (&json!(true), true), "{said}");
}

/// Without the label, later changes would not be validated: it stays while a gateway refers to the
/// source, even if deleting the source would change no flavor.
#[rstest]
#[case::configmap("ConfigMap", from_map(), "Deny", false)]
#[case::secret("Secret", json!({"secretKeyRef": {"name": "router", "key": "flavor"}}), "Deny", false)]
#[case::optional("ConfigMap", json!({"configMapKeyRef": {"name": "router", "key": "none", "optional": true}}), "Deny", false)]
#[case::of_no_gateway("ConfigMap", json!({"configMapKeyRef": {"name": "other", "key": "flavor"}}), "Deny", true)]
#[case::warned("ConfigMap", from_map(), "Warn", true)]
#[case::off("ConfigMap", from_map(), "Off", true)]
fn the_label_of_a_source_stays(
    #[case] kind: &str,
    #[case] from: Value,
    #[case] action: &'static str,
    #[case] allowed: bool,
    #[values("in-use", "mine")] value: &str,
) {
    let world = World { action, ..World::of(&[gateway("edge", "kong:3.9", &from)]) };
    let mut old = source(kind, "expressions");
    old["metadata"]["labels"] = json!({meta::FLAVOR_SOURCE: value, "team": "edge"});
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"team": "edge"});
    let said = world.ask(WebhookEndpoint::Validate, &new, &old);
    assert_eq!(said["allowed"], allowed, "{said}");
    let text = format!(
        "label interlock.dev/flavor-source of {kind} kong/router stays: the router flavor of Deployment kong/edge"
    );
    assert_eq!(message(&said).contains(&text), !allowed, "{said}");
    assert_eq!(said["warnings"].to_string().contains(&text), action == "Warn", "{said}");

    // Other labels may change.
    let mut other = old.clone();
    other["metadata"]["labels"] = json!({meta::FLAVOR_SOURCE: "mine"});
    assert_eq!(world.ask(WebhookEndpoint::Validate, &other, &old)["allowed"], true);
}

/// A gateway whose author may not update the source has no say in its changes, but where its owner labels it himself.
#[rstest]
#[case::ours("in-use", true)]
#[case::of_its_owner("mine", false)]
fn a_gateway_that_does_not_list_a_source(#[case] value: &str, #[case] allowed: bool) {
    let mut edge = gateway("edge", "kong:3.6", &from_map());
    edge["metadata"]["annotations"] = json!({meta::GUARDED_SOURCES: "configmaps/other"});
    let labelled = |flavor: &str| {
        let mut source = source("ConfigMap", flavor);
        source["metadata"]["labels"] = json!({meta::FLAVOR_SOURCE: value});
        source
    };
    let world = World::of(&[edge]);
    let said =
        world.ask(WebhookEndpoint::Validate, &labelled("expressions"), &labelled("traditional_compatible"));
    assert_eq!(said["allowed"], allowed, "{said}");
}

/// Removing the label together with a change of the data is denied for both reasons.
#[test]
fn a_label_is_lost_beside_a_change() {
    let world = World::of(&[gateway("edge", "kong:3.6", &from_map())]);
    let mut old = source("ConfigMap", "traditional_compatible");
    old["metadata"]["labels"] = json!({meta::FLAVOR_SOURCE: "in-use"});
    let said = world.ask(WebhookEndpoint::Validate, &source("ConfigMap", "expressions"), &old);
    assert_eq!(said["allowed"], false, "{said}");
    assert!(message(&said).contains("[RF02]"), "{said}");
    assert!(message(&said).contains("metadata.labels[interlock.dev/flavor-source]"), "{said}");
}
