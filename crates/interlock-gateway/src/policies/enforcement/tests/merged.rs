//! Gateways that Envoy Gateway merges into one proxy.

use rstest::rstest;
use serde_json::{Value, json};

use super::cluster::{Cluster, auth_policy, gateway, limits, policy, route, settings_of};

const LIMITADOR: &str = r#"{"namespace": "system", "configMap": "limits", "host": "limitador.system"}"#;

fn settings() -> Value {
    settings_of(json!({
        "limitadors": [serde_json::from_str::<Value>(LIMITADOR).unwrap()],
        "authServers": [{"host": "auth.system"}],
    }))
}

/// An EnvoyProxy.
fn proxy(namespace: &str, merges: bool) -> Value {
    json!({
        "apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "EnvoyProxy",
        "metadata": {"name": namespace, "namespace": namespace}, "spec": {"mergeGateways": merges},
    })
}

/// The GatewayClass names an EnvoyProxy of that namespace.
fn name_proxy(cluster: &mut Cluster, namespace: &str) {
    let reference = json!({
        "group": "gateway.envoyproxy.io", "kind": "EnvoyProxy", "namespace": namespace, "name": namespace,
    });
    cluster.edit("GatewayClass eg", |own| own["spec"]["parametersRef"] = reference);
}

/// A Gateway whose listener has a hostname of its own.
fn gateway_of(name: &str, created: &str) -> Value {
    let mut gateway = gateway(name);
    gateway["spec"]["listeners"][0]["hostname"] = format!("*.{name}.example").into();
    gateway["metadata"]["creationTimestamp"] = created.into();
    gateway
}

/// Two Gateways on one port, of which the second is older, with a route each and one of both.
fn merged(policies: Vec<Value>) -> Cluster {
    let mut cluster = Cluster::new();
    cluster.put(settings());
    cluster.put(proxy("envoy", true));
    name_proxy(&mut cluster, "envoy");
    cluster.put(gateway_of("gw-1", "2026-01-01T00:00:00Z"));
    cluster.put(gateway_of("gw-2", "2025-01-01T00:00:00Z"));
    cluster.put(route("route-1", &["gw-1"]));
    cluster.put(route("route-2", &["gw-2"]));
    cluster.put(route("both", &["gw-1", "gw-2"]));
    policies.into_iter().for_each(|policy| cluster.put(policy));
    cluster.settle();
    cluster
}

const LIMITS: &str = "EnvoyPatchPolicy interlock-limits-eg-0-class";
const GUARDS: &str = "EnvoyPatchPolicy interlock-auth-eg-0-class";

/// Authentication in a way of that name.
fn way(name: &str) -> Value {
    json!({"rules": {"authentication": {name: {"jwt": {"issuerUrl": "https://issuer.example"}}}}})
}

#[test]
fn the_limits_of_all_gateways_are_in_one_patch_and_counted_apart() {
    let mut cluster = merged(vec![
        policy("one", "Gateway/gw-1", limits(&["one"])),
        policy("two", "Gateway/gw-2", limits(&["two"])),
    ]);
    assert_eq!(cluster.patches().len(), 1);
    let patch = cluster.patches().remove(0);
    assert_eq!(patch["metadata"]["namespace"], "envoy");
    assert_eq!(patch["metadata"]["ownerReferences"][0]["kind"], "GatewayClass");
    assert_eq!(
        patch["spec"]["targetRef"],
        json!({"group": "gateway.networking.k8s.io", "kind": "GatewayClass", "name": "eg"})
    );
    // Both listeners are one, which the older Gateway names.
    assert_eq!(
        cluster.limited(LIMITS),
        [
            "shop/gw-2/http httproute/shop/both/rule/0/match/ /*_gw-2_example two /*_gw-1_example one",
            "shop/gw-2/http httproute/shop/route-1/rule/0/match/ one",
            "shop/gw-2/http httproute/shop/route-2/rule/0/match/ two",
        ]
    );
    assert_eq!(
        cluster.counted("ConfigMap limits"),
        [
            "shop/gw-1/httproute/shop/both one 5/60",
            "shop/gw-1/httproute/shop/route-1 one 5/60",
            "shop/gw-2/httproute/shop/both two 5/60",
            "shop/gw-2/httproute/shop/route-2 two 5/60",
        ]
    );
    assert_eq!(
        cluster.condition("one", "Enforced"),
        "True Enforced RateLimitPolicy has been successfully enforced"
    );
    assert_eq!(cluster.affected("gw-2"), "Object affected by RateLimitPolicy [shop/two]");

    cluster.written.clear();
    cluster.put(policy("one", "Gateway/gw-1", limits(&["other"])));
    cluster.settle();
    let written: Vec<&String> = cluster.written.iter().collect();
    assert_eq!(written, ["ConfigMap limits", LIMITS, "RateLimitPolicy one"]);

    // The Gateways are apart again.
    cluster.put(proxy("envoy", false));
    cluster.settle();
    let mut names: Vec<String> =
        cluster.patches().iter().map(|own| own["metadata"]["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["interlock-limits-gw-1-0", "interlock-limits-gw-2-0"]);
    // And merged, in another namespace.
    cluster.put(proxy("other", true));
    name_proxy(&mut cluster, "other");
    cluster.settle();
    let places: Vec<Value> =
        cluster.patches().iter().map(|own| own["metadata"]["namespace"].clone()).collect();
    assert_eq!(places, ["other"]);
}

#[test]
fn what_no_map_has_is_refused_where_one_of_the_gateways_is_guarded() {
    let cluster = merged(vec![auth_policy("one", "Gateway/gw-1", way("one"))]);
    assert_eq!(
        cluster.guarded(GUARDS),
        [
            "shop/gw-2/http - open",
            "shop/gw-2/http httproute/shop/both/rule/0/match/ /*_gw-1_example ask one /*_gw-2_example open",
            "shop/gw-2/http httproute/shop/route-1/rule/0/match/ ask one",
            "shop/gw-2/http httproute/shop/route-2/rule/0/match/ open",
            "shop/gw-2/http * refuse",
        ]
    );
    assert_eq!(
        cluster.condition_of("AuthPolicy one", "Enforced"),
        "True Enforced AuthPolicy has been successfully enforced"
    );
    // One effective policy decides on two Gateways, as an AuthConfig of each.
    let cluster = merged(vec![auth_policy("both", "HTTPRoute/both", way("both"))]);
    let configs = cluster.auth_configs();
    let mut owners: Vec<&str> =
        configs.iter().map(|own| own["metadata"]["ownerReferences"][0]["name"].as_str().unwrap()).collect();
    owners.sort_unstable();
    assert_eq!(owners, ["gw-1", "gw-2"]);
}

/// A Gateway that Envoy Gateway refuses names nothing, whatever its age.
#[test]
fn a_gateway_that_is_not_accepted_takes_nothing_from_the_others() {
    let mut cluster = merged(vec![policy("one", "Gateway/gw-1", limits(&["one"]))]);
    let before = cluster.limited(LIMITS);
    let refused = |listeners: Value| json!({"conditions": [{"type": "Accepted", "status": "False", "reason": "Invalid"}], "listeners": listeners});
    // What has listeners is carried all the same: its telemetry is wrong, say.
    let listeners =
        refused(json!([{"name": "http", "conditions": [{"type": "Programmed", "status": "True"}]}]));
    cluster.edit("Gateway gw-2", |own| own["status"] = listeners);
    cluster.settle();
    assert_eq!(cluster.limited(LIMITS), before);
    // The settings give it, the oldest, another Limitador: it decides nothing for the others.
    let mut named = settings();
    let limitadors = &mut named["spec"]["policies"]["limitadors"];
    limitadors[0]["gateways"] = json!([{"namespace": "shop", "name": "gw-1"}]);
    let other = json!({"namespace": "system", "configMap": "other", "host": "other.system", "gateways": [{"namespace": "shop", "name": "gw-2"}]});
    limitadors.as_array_mut().unwrap().push(other);
    cluster.edit("Gateway gw-2", |own| own["status"] = refused(json!([])));
    cluster.put(named);
    cluster.settle();
    assert_eq!(
        cluster.limited(LIMITS),
        [
            "shop/gw-1/http httproute/shop/both/rule/0/match/ one",
            "shop/gw-1/http httproute/shop/route-1/rule/0/match/ one",
        ]
    );
}

/// Gateways come, go, and change their class.
#[rstest]
#[case::comes(
    |c: &mut Cluster| {
        c.put(gateway_of("gw-0", "2024-01-01T00:00:00Z"));
        c.put(route("route-0", &["gw-0"]));
        c.put(policy("zero", "Gateway/gw-0", limits(&["zero"])));
    },
    &["shop/gw-0/http httproute/shop/both/rule/0/match/ /*_gw-1_example one", "shop/gw-0/http httproute/shop/route-0/rule/0/match/ zero",
      "shop/gw-0/http httproute/shop/route-1/rule/0/match/ one"],
)]
#[case::goes(
    |c: &mut Cluster| c.delete("Gateway gw-2"),
    &["shop/gw-1/http httproute/shop/both/rule/0/match/ one", "shop/gw-1/http httproute/shop/route-1/rule/0/match/ one"],
)]
#[case::is_of_another_class(
    |c: &mut Cluster| c.edit("Gateway gw-2", |own| own["spec"]["gatewayClassName"] = "other".into()),
    &["shop/gw-1/http httproute/shop/both/rule/0/match/ one", "shop/gw-1/http httproute/shop/route-1/rule/0/match/ one"],
)]
fn gateways_come_and_go(#[case] change: fn(&mut Cluster), #[case] expected: &[&str]) {
    let mut cluster = merged(vec![policy("one", "Gateway/gw-1", limits(&["one"]))]);
    change(&mut cluster);
    cluster.settle();
    assert_eq!(cluster.limited(LIMITS), expected);
}

/// One that is added without the Limitador and the auth server of the others takes nothing from them, and its policies say
/// why.
#[test]
fn a_gateway_with_another_server_is_left_out() {
    let mut cluster = merged(vec![
        policy("two", "Gateway/gw-2", limits(&["two"])),
        auth_policy("two", "Gateway/gw-2", way("two")),
    ]);
    let (before, guarded) = (cluster.limited(LIMITS), cluster.guarded(GUARDS));
    let mut named = settings();
    for field in ["limitadors", "authServers"] {
        named["spec"]["policies"][field][0]["gateways"] = json!([{"namespace": "shop", "name": "gw-2"}]);
    }
    cluster.put(named);
    cluster.settle();
    assert_eq!((cluster.limited(LIMITS), cluster.guarded(GUARDS)), (before, guarded));
    cluster.put(policy("one", "Gateway/gw-1", limits(&["one"])));
    cluster.put(auth_policy("one", "Gateway/gw-1", way("one")));
    cluster.settle();
    assert!(
        cluster.limited(LIMITS).iter().all(|own| !own.ends_with(" one")),
        "{:?}",
        cluster.limited(LIMITS)
    );
    let guarded = cluster.guarded(GUARDS);
    let refused = "shop/gw-2/http httproute/shop/route-1/rule/0/match/ refuse".to_owned();
    assert!(guarded.contains(&refused), "{guarded:?}");
    assert_eq!(
        cluster.condition("one", "Enforced"),
        "False Unsupported limit one is not carried out: Gateway/shop/gw-1 is merged with Gateways that another Limitador \
         counts for; name them in one entry of spec.policies.limitadors of Interlock default"
    );
    assert_eq!(
        cluster.condition_of("AuthPolicy one", "Enforced"),
        "False Unsupported rules is not carried out, and its routes let no request in: Gateway/shop/gw-1 is merged with \
         Gateways that another auth server decides for; name them in one entry of spec.policies.authServers of Interlock \
         default"
    );
}

/// A policy of a route of two Gateways is not carried out on one of them, and the other one's Limitador keeps nothing.
#[test]
fn what_is_left_out_is_said_of_its_own_gateway() {
    let mut cluster = merged(vec![policy("both", "HTTPRoute/both", limits(&["both"]))]);
    let mut named = settings();
    let limitadors = &mut named["spec"]["policies"]["limitadors"];
    limitadors[0]["gateways"] = json!([{"namespace": "shop", "name": "gw-2"}]);
    let other = json!({"namespace": "system", "configMap": "other", "host": "other.system", "gateways": [{"namespace": "shop", "name": "gw-1"}]});
    limitadors.as_array_mut().unwrap().push(other);
    cluster.put(proxy("envoy", false));
    cluster.put(named);
    cluster.settle();
    assert_eq!(cluster.counted("ConfigMap other").len(), 1);
    cluster.put(proxy("envoy", true));
    cluster.settle();
    assert_eq!((cluster.counted("ConfigMap other").len(), cluster.counted("ConfigMap limits").len()), (0, 1));
    let programmed: Vec<String> =
        cluster.ancestors("both").into_iter().filter(|own| own.contains(" Programmed ")).collect();
    assert_eq!(
        programmed,
        ["Gateway/gw-1 Programmed False Unsupported", "Gateway/gw-2 Programmed True Programmed"]
    );
    assert_eq!(cluster.affected("gw-1"), "");
}

/// Without the EnvoyProxy that the class names, or while the class is being deleted, Envoy Gateway merges nothing. While it
/// does not accept the class, both are kept.
#[rstest]
#[case::it_is_gone(
    |c: &mut Cluster| c.delete("EnvoyProxy envoy"),
    &["interlock-limits-gw-1-0"],
)]
#[case::the_class_goes(
    |c: &mut Cluster| c.edit("GatewayClass eg", |own| own["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into()),
    &["interlock-limits-gw-1-0"],
)]
#[case::the_class_is_refused(
    |c: &mut Cluster| c.edit("GatewayClass eg", |own| {
        own["status"] = json!({"conditions": [{"type": "Accepted", "status": "False", "reason": "InvalidParameters"}]});
    }),
    &["interlock-limits-eg-0-class", "interlock-limits-gw-1-0"],
)]
#[case::of_the_class_a_secret_is_missing(
    |c: &mut Cluster| c.edit("GatewayClass eg", |own| {
        own["status"] = json!({"conditions": [{"type": "Accepted", "status": "False", "reason": "Accepted"}]});
    }),
    &["interlock-limits-eg-0-class"],
)]
fn where_nothing_is_merged_each_gateway_has_its_own(
    #[case] change: fn(&mut Cluster),
    #[case] expected: &[&str],
) {
    let mut cluster = merged(vec![policy("one", "Gateway/gw-1", limits(&["one"]))]);
    change(&mut cluster);
    cluster.settle();
    let names = cluster.patches();
    let mut names: Vec<&str> = names.iter().map(|own| own["metadata"]["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, expected);
}

/// What is stored of all Gateways follows what is merged.
#[test]
fn limits_of_a_class_that_comes_to_be_merged_are_stored() {
    let mut cluster = merged(vec![policy("one", "Gateway/gw-1", limits(&["one"]))]);
    cluster.edit("GatewayClass eg", |own| own["spec"]["parametersRef"] = Value::Null);
    cluster.settle();
    name_proxy(&mut cluster, "envoy");
    cluster.settle();
    assert_eq!(cluster.counted("ConfigMap limits").len(), 2);
    cluster.delete("RateLimitPolicy one");
    cluster.put(auth_policy("one", "Gateway/gw-1", way("one")));
    cluster.settle();
    assert!(!cluster.auth_configs().is_empty());
    cluster.delete("AuthPolicy one");
    cluster.settle();
    assert!(cluster.auth_configs().is_empty(), "{:#?}", cluster.auth_configs());
}

/// A write that the API server refuses is said of all policies that it holds up.
#[test]
fn what_refuses_the_patch_of_the_class_is_said_of_policies() {
    let mut cluster = merged(vec![]);
    cluster.denied = Some("EnvoyPatchPolicy");
    cluster.put(policy("one", "Gateway/gw-1", limits(&["one"])));
    cluster.settle();
    let said = cluster.condition("one", "Enforced");
    assert!(
        said.contains("EnvoyPatchPolicy envoy/interlock-limits-eg-0-class, which cannot be written"),
        "{said}"
    );
}
