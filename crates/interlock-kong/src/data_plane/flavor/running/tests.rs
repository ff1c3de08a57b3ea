use std::collections::BTreeSet;

use rstest::rstest;
use serde_json::{Value, json};

use super::pod::{AdminEndpoint, declared, endpoint, is_alive, is_of};
use super::report::StatusReport;
use super::*;
use crate::data_plane::flavor::sources::Nothing;

/// `name set flavor`; a flavor in brackets is from the environment, `?` is none.
fn pods(lines: &[&str]) -> Vec<Pod> {
    let pod = |line: &&str| {
        let mut words = line.split(' ');
        let (name, set, flavor) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
        let reported = match flavor.strip_prefix('(').and_then(|f| f.strip_suffix(')')) {
            Some(declared) => RouterState::Declares(Flavor::named(declared).unwrap(), "no port".into()),
            None if flavor == "?" => RouterState::Nothing("no answer".into()),
            None => RouterState::Reports(flavor.into()),
        };
        let labels =
            BTreeMap::from([("app".to_owned(), "edge".to_owned()), ("set".to_owned(), set.to_owned())]);
        Pod { name: name.to_owned(), labels, reported }
    };
    lines.iter().map(pod).collect()
}

fn service(name: &str, selector: Value) -> Selector {
    Selector { service: name.to_owned(), labels: pod::texts(&selector) }
}

#[rstest]
#[case::none(&[], None, "Unknown NoPods: no pod runs")]
#[case::same(&["a x expressions", "b x expressions"], None, "True Consistent: 2 of 2 pods report expressions")]
#[case::by_environment(&["a x (expressions)", "b x expressions"], None, "True Consistent: 2 pods run expressions: 1 report it, the others have it in their environment")]
#[case::as_wanted(&["a x expressions"], Some(Flavor::Expressions), "True Consistent: 1 of 1 pods report expressions")]
#[case::unexpected(&["a x expressions"], Some(Flavor::Traditional), "False Unexpected: all pods run expressions, the gateway says traditional: they started with something else")]
#[case::untold(&["a x expressions", "b x ?"], None, "Unknown Untold: the router flavor of b cannot be told: no answer")]
#[case::mixed(
    &["a x expressions", "b x traditional", "c x expressions"],
    None,
    "False Mixed: pods behind Service edge run different router flavors (expressions: a, c; traditional: b)"
)]
#[case::mixed_by_environment(&["a x expressions", "b x (traditional)"], None, "False Mixed: pods behind Service edge run different router flavors (expressions: a; traditional: b)")]
#[case::mixed_beside_untold(&["a x expressions", "b x traditional", "c x ?"], None, "False Mixed: pods behind Service edge run different router flavors (expressions: a; traditional: b)")]
#[case::many(
    &["a x expressions", "b x expressions", "c x expressions", "d x expressions", "e x expressions", "f x traditional"],
    None,
    "False Mixed: pods behind Service edge run different router flavors (expressions: a, b, c and 2 more; traditional: f)"
)]
#[case::not_behind_it(&["a x expressions", "b y traditional"], None, "True Staged: no Service has pods of two flavors (expressions: a; traditional: b)")]
fn conditions(#[case] lines: &[&str], #[case] wanted: Option<Flavor>, #[case] reported: &str) {
    let services = [service("all", json!({})), service("edge", json!({"set": "x"}))];
    let found = consistency(&pods(lines), &services, wanted);
    let condition = found.condition();
    assert_eq!(
        format!("{} {}: {}", condition.status.as_str(), condition.reason, condition.message),
        reported
    );
    assert_eq!(found.warning().is_some(), condition.reason == "Mixed");
}

#[rstest]
#[case::kong(json!({"version": "3.9.1", "configuration": {"router_flavor": "expressions", "database": "off"}}), Ok(("expressions", Some("3.9.1"))))]
#[case::before_3_0(json!({"version": "2.8.4", "configuration": {"database": "off"}}), Err("it reports no router flavor"))]
#[case::other(json!({"message": "no Route matched"}), Err("its answer is not that of Kong's Admin API"))]
#[case::no_object(json!([]), Err("its answer is not that of Kong's Admin API"))]
#[case::text(json!({"configuration": {"router_flavor": "a\nb"}}), Err("it reports a router flavor that is none"))]
#[case::long(json!({"configuration": {"router_flavor": "x".repeat(65)}}), Err("it reports a router flavor that is none"))]
#[case::version_is_text(json!({"version": "<b>", "configuration": {"router_flavor": "traditional"}}), Ok(("traditional", None)))]
fn reports(#[case] body: Value, #[case] read: Result<(&str, Option<&str>), &str>) {
    let found = StatusReport::read(body.to_string().as_bytes());
    let found = found.as_ref().map(|r| (r.flavor.as_str(), r.version.as_deref())).map_err(String::as_str);
    assert_eq!(found, read);
}

fn pod(spec: Value, status: Value) -> Value {
    json!({"metadata": {"namespace": "kong", "name": "a"}, "spec": spec, "status": status})
}

fn proxy(port: Value) -> Value {
    json!({"containers": [
        {"name": "sidecar", "ports": [{"name": "admin", "containerPort": 1}]},
        {"name": "proxy", "image": "kong:3.9", "ports": [{"name": "http", "containerPort": 8000}, port]},
    ]})
}

fn on_the_host(mut spec: Value) -> Value {
    spec["hostNetwork"] = json!(true);
    spec
}

#[rstest]
#[case::admin(proxy(json!({"name": "admin", "containerPort": 8001})), json!({"podIP": "10.1.2.3"}), Ok(8001))]
#[case::tls(proxy(json!({"name": "admin-ssl", "containerPort": 8444})), json!({"podIP": "10.1.2.3"}), Err("container \"proxy\" has no port named \"admin\""))]
#[case::no_address(proxy(json!({"name": "admin", "containerPort": 8001})), json!({}), Err("it has no address yet"))]
#[case::no_port(proxy(json!({"name": "admin", "containerPort": 70_000})), json!({"podIP": "10.1.2.3"}), Err("container \"proxy\" has no port named \"admin\""))]
#[case::host(on_the_host(proxy(json!({"name": "admin", "containerPort": 8001}))), json!({"podIP": "10.1.2.3"}), Err("it has the address of its node"))]
fn who_is_asked(#[case] spec: Value, #[case] status: Value, #[case] asked: Result<u16, &str>) {
    let found = endpoint(&pod(spec, status));
    let asked =
        asked.map(|port| AdminEndpoint { address: "10.1.2.3".to_owned(), port }).map_err(str::to_owned);
    assert_eq!(found, asked);
}

#[rstest]
#[case::default(json!([]), Ok(Flavor::TraditionalCompatible))]
#[case::value(json!([{"name": "KONG_ROUTER_FLAVOR", "value": "expressions"}]), Ok(Flavor::Expressions))]
#[case::source(
    json!([{"name": "KONG_ROUTER_FLAVOR", "valueFrom": {"configMapKeyRef": {"name": "router", "key": "flavor"}}}]),
    Err("it comes from ConfigMap kong/router key \"flavor\", which cannot be read here")
)]
#[case::invalid(json!([{"name": "KONG_ROUTER_FLAVOR", "value": "x"}]), Err("its environment gives \"x\", which is no flavor"))]
fn environments(#[case] env: Value, #[case] says: Result<Flavor, &str>) {
    let pod = pod(json!({"containers": [{"name": "proxy", "image": "kong:3.9", "env": env}]}), json!({}));
    assert_eq!(declared(&pod, &Nothing), says.map_err(str::to_owned));
}

#[rstest]
#[case::controller(json!([{"uid": "set-1", "controller": true}]), true)]
#[case::owner(json!([{"uid": "set-1"}]), false)]
#[case::other(json!([{"uid": "set-2", "controller": true}]), false)]
#[case::none(Value::Null, false)]
fn whose_pods(#[case] owners: Value, #[case] ours: bool) {
    let pod = json!({"metadata": {"ownerReferences": owners}});
    assert_eq!(is_of(&pod, &BTreeSet::from(["set-1".to_owned()])), ours);
}

#[rstest]
#[case::runs(json!({}), json!({"phase": "Running"}), true)]
#[case::waits(json!({}), json!({"phase": "Pending"}), true)]
#[case::evicted(json!({}), json!({"phase": "Failed"}), false)]
#[case::goes(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), json!({"phase": "Running"}), false)]
fn who_is_alive(#[case] metadata: Value, #[case] status: Value, #[case] alive: bool) {
    assert_eq!(is_alive(&json!({"metadata": metadata, "status": status})), alive);
}
