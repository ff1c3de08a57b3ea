//! What objects of other namespaces do to a change of a gateway.

use std::sync::Arc;

use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use rstest::rstest;
use serde_json::{Value, json};

use super::world::{Case, data_plane, lines, plane, proxy};
use crate::data_plane::flavor::gateway_ref::{GatewayKind, GatewayRef};
use crate::data_plane::flavor::inventory::{GatewayContext, GatewayInventory};
use crate::data_plane::flavor::pattern;
use crate::data_plane::flavor::pattern::Pattern;
use crate::data_plane::flavor::validate::judge;

const LOOK_AROUND: &str = "/~/a(?!b)";

/// An Ingress with one path; its class as annotation and field.
fn ingress(namespace: &str, class: Option<&str>, path: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"namespace": namespace, "name": "web"},
        "spec": {"ingressClassName": class, "rules": [{"http": {"paths": [
            {"path": path, "pathType": "ImplementationSpecific"},
        ]}}]},
    })
}

/// An Ingress with that many patterns that compile.
fn crowd(namespace: &str, class: &str, count: usize) -> Value {
    let mut object = ingress(namespace, Some(class), "/~/a");
    object["spec"]["rules"][0]["http"]["paths"] = (0..count)
        .map(|i| json!({"path": format!("/~/p{i}/\\d+"), "pathType": "ImplementationSpecific"}))
        .collect();
    object
}

fn http_route(namespace: &str, parents: Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"namespace": namespace, "name": "web"},
        "spec": {"parentRefs": parents, "rules": [{"matches": [
            {"path": {"type": "RegularExpression", "value": "/a(?!b)"}},
        ]}]},
    })
}

fn gateway(namespace: &str, class: &str, from: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"namespace": namespace, "name": "gw"},
        "spec": {"gatewayClassName": class, "listeners": [
            {"name": "http", "allowedRoutes": {"namespaces": {"from": from}}},
        ]},
    })
}

fn gateway_class(name: &str, controller: &str) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass",
        "metadata": {"name": name}, "spec": {"controllerName": controller},
    })
}

/// The ingress controller `NAMESPACE/kic`.
fn controller(namespace: &str, args: Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": "kic", "labels": {meta::GUARD: meta::GUARD_FLAVOR}},
        "spec": {"template": {"spec": {"containers": [{"name": "ingress-controller", "args": args}]}}},
    })
}

/// DataPlane `kong/edge`; its producer as named by its annotation.
fn edge(producer: Option<&str>) -> Value {
    let mut edge = data_plane(proxy("kong:3.9", Some("traditional")), true);
    edge["metadata"]["annotations"] = json!({meta::CONFIG_PRODUCER: producer});
    edge
}

fn context(edge: &Value, objects: &[Value]) -> GatewayContext {
    let mut known = GatewayInventory::default();
    known.take(edge, "");
    objects.iter().for_each(|object| known.take(object, ""));
    known.context_of(&GatewayRef { kind: GatewayKind::DataPlane, name: NamespacedName::new("kong", "edge") })
}

/// What is said of `kong/edge` going from `traditional` to `traditional_compatible`.
fn said(edge: &Value, objects: &[Value]) -> Vec<String> {
    let staged = |flavor| plane("kong:3.9", Some(flavor), true);
    let case = Case {
        routes: (*context(edge, objects).routes).clone(),
        ..Case::change(&staged("traditional"), &staged("traditional_compatible"))
    };
    lines(&case.judge())
}

fn is_refused(edge: &Value, objects: &[Value]) -> bool {
    said(edge, objects).iter().any(|line| line.starts_with("denied [RF09]"))
}

#[rstest]
#[case::another_class_elsewhere(None, ingress("shop", Some("nginx"), LOOK_AROUND), false)]
#[case::kong_elsewhere(None, ingress("shop", Some("kong"), LOOK_AROUND), true)]
#[case::no_class_elsewhere(None, ingress("shop", None, LOOK_AROUND), true)]
#[case::another_class_beside_an_unknown_producer(None, ingress("kong", Some("nginx"), LOOK_AROUND), true)]
#[case::another_class_beside(Some(json!([])), ingress("kong", Some("nginx"), LOOK_AROUND), false)]
#[case::its_class_elsewhere(Some(json!(["--ingress-class=inner"])), ingress("shop", Some("inner"), LOOK_AROUND), true)]
#[case::the_default_class_of_others(Some(json!(["--ingress-class=inner"])), ingress("kong", Some("kong"), LOOK_AROUND), false)]
#[case::a_class_by_reference(Some(json!(["--ingress-class=$(CLASS)"])), ingress("kong", Some("nginx"), LOOK_AROUND), true)]
#[case::not_watched(Some(json!(["--watch-namespace=kong,docs"])), ingress("shop", Some("kong"), LOOK_AROUND), false)]
#[case::watched(Some(json!(["--watch-namespace=kong,docs"])), ingress("docs", Some("kong"), LOOK_AROUND), true)]
#[case::watched_by_another_flag(
    Some(json!(["--watch-namespace=kong", "--watch-namespace=docs"])), ingress("docs", Some("kong"), LOOK_AROUND), true
)]
fn an_ingress_counts_where_the_gateway_can_serve_it(
    #[case] args: Option<Value>,
    #[case] ingress: Value,
    #[case] refused: bool,
) {
    let producer = args.as_ref().map(|_| "kic");
    let objects: Vec<Value> =
        args.map(|args| controller("kong", args)).into_iter().chain([ingress.clone()]).collect();
    assert_eq!(is_refused(&edge(producer), &objects), refused);
    let mut annotated = ingress;
    annotated["metadata"]["annotations"] =
        json!({"kubernetes.io/ingress.class": annotated["spec"]["ingressClassName"].take()});
    let objects = [&objects[..objects.len() - 1], &[annotated]].concat();
    assert_eq!(is_refused(&edge(producer), &objects), refused, "by annotation");
}

const KIC: &str = "konghq.com/kic-gateway-controller";

#[rstest]
#[case::of_another_implementation("kong", gateway("kong", "c", "All"), "istio.io/gateway-controller", false)]
#[case::of_another_operator_gateway(
    "kong",
    gateway("kong", "c", "All"),
    "konghq.com/gateway-operator",
    false
)]
#[case::beside("kong", gateway("kong", "c", "Same"), KIC, true)]
#[case::admitted_from_elsewhere("shop", gateway("kong", "c", "All"), KIC, true)]
#[case::perhaps_admitted("shop", gateway("kong", "c", "Selector"), KIC, true)]
#[case::not_admitted_from_elsewhere("shop", gateway("kong", "c", "Same"), KIC, false)]
#[case::of_a_gateway_elsewhere("shop", gateway("shop", "c", "Same"), KIC, true)]
#[case::of_no_known_class_elsewhere("shop", gateway("shop", "lost", "Same"), KIC, false)]
#[case::of_no_known_class_beside("kong", gateway("kong", "lost", "Same"), KIC, true)]
fn a_route_counts_where_the_gateway_can_serve_it(
    #[case] namespace: &str,
    #[case] parent: Value,
    #[case] implementation: &str,
    #[case] refused: bool,
) {
    let parents = json!([{"name": "gw", "namespace": parent["metadata"]["namespace"]}]);
    let objects = [gateway_class("c", implementation), parent, http_route(namespace, parents)];
    assert_eq!(is_refused(&edge(None), &objects), refused);
}

#[rstest]
#[case::of_nothing_elsewhere("shop", json!([]), false)]
#[case::of_nothing_beside("kong", json!([]), true)]
#[case::of_a_mesh("shop", json!([{"group": "", "kind": "Service", "name": "gw"}]), false)]
#[case::of_an_absent_gateway("shop", json!([{"name": "lost"}]), false)]
fn a_route_without_a_known_gateway_counts_beside_only(
    #[case] namespace: &str,
    #[case] parents: Value,
    #[case] refused: bool,
) {
    assert_eq!(is_refused(&edge(None), &[http_route(namespace, parents)]), refused);
}

/// A DataPlane that the operator made for a Gateway serves the routes of that one only.
#[rstest]
#[case::its_own("kong", true)]
#[case::another("shop", false)]
fn a_data_plane_of_a_gateway_serves_its_routes(#[case] parent: &str, #[case] refused: bool) {
    let mut edge = edge(None);
    edge["metadata"]["ownerReferences"] = json!([
        {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "name": "gw", "uid": "u", "controller": true},
    ]);
    let objects = [
        gateway_class("c", "konghq.com/gateway-operator"),
        gateway(parent, "c", "All"),
        http_route("docs", json!([{"name": "gw", "namespace": parent}])),
    ];
    assert_eq!(is_refused(&edge, &objects), refused);
}

/// A foreign controller cannot say which routes count by naming the admin Service of a gateway.
#[test]
fn a_controller_elsewhere_does_not_choose_the_class() {
    let mut foreign = controller("aaa", json!(["--kong-admin-svc=kong/admin", "--ingress-class=nginx"]));
    foreign["metadata"]["name"] = json!("evil");
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "kong", "name": "admin"},
        "spec": {"selector": {"app": "edge"}},
    });
    let mut edge = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": "kong", "name": "edge", "labels": {meta::GUARD: meta::GUARD_FLAVOR}},
        "spec": {"template": {
            "metadata": {"labels": {"app": "edge"}},
            "spec": {"containers": [proxy("kong:3.9", Some("traditional"))]},
        }},
    });
    let mut known = GatewayInventory::default();
    let refused = |known: &GatewayInventory| {
        let name = NamespacedName::new("kong", "edge");
        let context = known.context_of(&GatewayRef { kind: GatewayKind::Deployment, name });
        context.routes.rejected_patterns("kong").0.is_some()
    };
    for object in [&edge, &foreign, &service, &ingress("kong", Some("kong"), LOOK_AROUND)] {
        known.take(object, "");
    }
    assert!(refused(&known));
    edge["metadata"]["annotations"] = json!({meta::CONFIG_PRODUCER: "aaa/evil"});
    known.take(&edge, "");
    assert!(!refused(&known), "its own author may name it");
}

/// Names that sort first do not use up what the gateway's own routes need, nor each other's.
#[rstest]
#[case::its_own(
    "kong",
    "denied [RF09] router flavor change traditional -> traditional_compatible: 1 path does not compile as a Rust regular expression: Ingress kong/web rules[0].http.paths[0] (path /a(?!b): look-around)"
)]
#[case::of_a_third(
    "shop",
    "denied [RF09] router flavor change traditional -> traditional_compatible: 1 path does not compile as a Rust regular expression: 1 in other namespaces"
)]
fn a_crowd_of_patterns_hides_no_other(#[case] namespace: &str, #[case] first: &str) {
    let objects = [crowd("aaa", "kong", 1200), ingress(namespace, Some("kong"), LOOK_AROUND)];
    let said = said(&edge(None), &objects);
    assert_eq!(said[0], first);
    let left_out = "warned [RF09] 176 regular expressions of routes are too large or too many to be compiled here: 176 in other namespaces";
    assert!(said.contains(&left_out.to_owned()), "{said:?}");
}

#[test]
fn patterns_that_were_not_compiled_are_named() {
    let said = said(&edge(None), &[crowd("kong", "kong", 1025)]);
    let left_out = "warned [RF09] 1 regular expression of routes is too large or too many to be compiled here: Ingress kong/web rules[0].http.paths[1024] (10 bytes)";
    assert!(said.contains(&left_out.to_owned()), "{said:?}");
}

/// An edit of a route compiles only what is new in it.
#[test]
fn a_pattern_is_compiled_when_its_route_arrives_and_never_again() {
    let mut known = GatewayInventory::default();
    let mut object = crowd("shop", "kong", 1200);
    known.take(&object, "");
    let patterns = known.take_patterns();
    let count = |all: &[Vec<Arc<Pattern>>]| all.iter().map(Vec::len).sum::<usize>();
    assert_eq!(count(&patterns), 1024, "no more than its namespace may have compiled");
    patterns.iter().for_each(|patterns| pattern::compile(patterns));
    object["spec"]["rules"][0]["http"]["paths"][0]["path"] = json!("/~/new");
    known.take(&object, "");
    let mut again: Vec<_> = known.take_patterns().concat();
    again.retain(|pattern| !pattern.is_compiled());
    assert_eq!(again.iter().map(|pattern| pattern.text()).collect::<Vec<_>>(), ["/new"]);
    assert_eq!(count(&known.take_patterns()), 0, "taken once");
}

/// Without a producer the class of a gateway is unknown.
#[test]
fn ingresses_that_were_passed_over_are_counted() {
    let said = said(&edge(None), &[ingress("shop", Some("nginx"), LOOK_AROUND)]);
    let counted = "not judged by what is not seen here: 1 Ingress of other namespaces with a class other than kong (name the producer of this gateway in interlock.dev/config-producer)";
    assert!(said.iter().any(|line| line.ends_with(counted)), "{said:?}");
}

/// A Deployment that runs `expressions` and claims the producer `kong/kic`.
fn claimant(namespace: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "namespace": namespace, "name": "other", "labels": {meta::GUARD: meta::GUARD_FLAVOR},
            "annotations": {meta::CONFIG_PRODUCER: "kong/kic"},
        },
        "spec": {"template": {
            "metadata": {"labels": {"app": "other"}},
            "spec": {"containers": [proxy("kong:3.9", Some("expressions"))]},
        }},
    })
}

#[rstest]
#[case::elsewhere("shop", json!([]), false)]
#[case::beside("kong", json!([]), true)]
#[case::watched_by_the_producer("shop", json!(["--watch-namespace=kong,shop"]), true)]
#[case::reached_by_the_producer("shop", json!(["--kong-admin-svc=shop/admin"]), true)]
fn a_claim_on_a_producer_counts_where_the_producer_confirms_it(
    #[case] namespace: &str,
    #[case] args: Value,
    #[case] counts: bool,
) {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "shop", "name": "admin"},
        "spec": {"selector": {"app": "other"}},
    });
    let group = context(&edge(Some("kic")), &[controller("kong", args), service, claimant(namespace)]).group;
    assert_eq!(!group.unwrap().others.is_empty(), counts);
}

/// The author of such a claim learns it.
#[test]
fn a_claim_that_counts_for_its_author_only_is_said() {
    let objects = [controller("kong", json!([])), edge(Some("kic"))];
    let mut known = GatewayInventory::default();
    let other = claimant("shop");
    objects.iter().chain([&other]).for_each(|object| known.take(object, ""));
    let subject = GatewayRef { kind: GatewayKind::Deployment, name: NamespacedName::new("shop", "other") };
    let context = known.context_of(&subject);
    let (new, old) = (plane("kong:3.9", Some("expressions"), false), plane("kong:3.9", None, false));
    let case = Case::change(&old, &new);
    let findings = judge(&crate::data_plane::flavor::change::FlavorChange {
        subject: &subject,
        live: None,
        stored: None,
        new: &new.spec,
        stopped: false,
        routes: &case.routes,
        configuration: case.configuration,
        group: context.group.as_ref(),
        allowance: None,
    });
    let said = "warned [RF21] Deployment shop/other names kong/kic as its configuration producer, which does not name it: the gateways in kong do not wait for it";
    assert!(lines(&findings).contains(&said.to_owned()), "{findings:?}");
}
