//! Router flavors: what kubectl prints of changes to DataPlanes (with Kong's own CRD) and to
//! labelled Deployments, and that `interlock check` says the same.

mod change;
mod overrides;
mod own_definition;
mod protected;
mod rollout;
mod said;
mod staged;
mod standing;

use std::sync::Once;

use serde_json::{Value, json};

pub use said::{Met, golden, goldens, held, meets, says};

use crate::support::interlock::{await_definitions, interlock};
use crate::support::{Client, Cluster, Interlock, shared};

const TC: &str = "traditional_compatible";

/// One change: what it is called, and the containers before and after; none before where the
/// object is new.
struct Case {
    name: &'static str,
    before: Option<Value>,
    after: Value,
}

impl Case {
    fn new(name: &'static str, before: Value, after: Value) -> Self {
        Self { name, before: Some(before), after }
    }
}

pub(crate) fn env(image: &str, flavor: &str) -> Value {
    with_env(image, json!([variable("KONG_ROUTER_FLAVOR", flavor)]))
}

pub(crate) fn with_env(image: &str, env: Value) -> Value {
    json!({"name": "proxy", "image": image, "env": env})
}

fn variable(name: &str, value: &str) -> Value {
    json!({"name": name, "value": value})
}

fn change(name: &'static str, image: &str, from: &str, to: &str) -> Case {
    Case::new(name, env(image, from), env(image, to))
}

fn upgrade(name: &'static str, from: &str, to: &str, flavor: &str) -> Case {
    Case::new(name, env(from, flavor), env(to, flavor))
}

fn cases() -> Vec<Case> {
    let said = |env: Value| with_env("kong:3.9", env);
    let unsaid = |image: &str| json!({"name": "proxy", "image": image});
    let flavor = |value: &str| variable("KONG_ROUTER_FLAVOR", value);
    let from = |source: Value| said(json!([{"name": "KONG_ROUTER_FLAVOR", "valueFrom": source}]));
    let from_map = from(json!({"configMapKeyRef": {"name": "router", "key": "flavor"}}));
    let from_pod = from(json!({"fieldRef": {"fieldPath": "metadata.name"}}));
    let sidecar = json!([
        env("kong:3.9", TC),
        {"name": "sidecar", "image": "busybox", "env": [flavor("expressions")]},
    ]);
    vec![
        change("RF01", "kong:3.9", TC, "expression"),
        change("RF02", "kong:3.6", TC, "expressions"),
        change("RF02-back", "kong:3.9", "expressions", TC),
        change("RF02-engine", "kong:3.0.0", "traditional", TC),
        change("RF02-unknown", "kong:latest", TC, "expressions"),
        change("RF03", "kong:3.9", "traditional", "expressions"),
        change("RF03-back", "kong:3.9", "expressions", "traditional"),
        change("RF04", "kong:3.2", TC, "expressions"),
        upgrade("RF08", "kong:3.9", "kong:3.6", "expressions"),
        change("RF09", "kong:3.9", "traditional", TC),
        Case::new("RF10", env("kong:3.9", TC), from_map),
        Case::new("RF10-field", env("kong:3.9", TC), from_pod),
        Case::new("RF11", unsaid("kong:3.9"), env("kong:3.9", TC)),
        Case::new("RF12", unsaid("kong:2.8"), unsaid("kong:3.9")),
        upgrade("RF12-headers", "kong:3.5", "kong:3.9", "expressions"),
        upgrade("RF12-paths", "kong:3.2", "kong:3.9", TC),
        change("RF13", "kong:3.9", TC, "traditional"),
        Case::new("RF14", env("kong:3.9", TC), sidecar),
        Case::new(
            "RF15",
            env("kong:3.9", TC),
            said(json!([flavor(TC), variable("KONG_ROUTER_FLAVOR_FILE", "/run/flavor")])),
        ),
        // On the way of an update kubectl merges lists of variables by their names.
        Case { name: "RF16", before: None, after: said(json!([flavor("traditional"), flavor(TC)])) },
        change("RF17", "kong:3.9", TC, "expressions"),
    ]
}

/// One container, or a list of them.
fn containers(given: &Value) -> Value {
    if given.is_array() { given.clone() } else { json!([given]) }
}

fn deployment(name: &str, container: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"interlock.dev/guard": "kong-router-flavor"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers(container)}},
        },
    })
}

pub(crate) fn data_plane(name: &str, container: &Value, staged: bool) -> Value {
    let mut plane = json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
        "metadata": {"name": name},
        "spec": {"deployment": {"replicas": 3, "podTemplateSpec": {"spec": {"containers": containers(container)}}}},
    });
    if staged {
        plane["spec"]["deployment"]["rollout"] =
            json!({"strategy": {"blueGreen": {"promotion": {"strategy": "BreakBeforePromotion"}}}});
    }
    plane
}

/// Applies what is there before, and tells what the change of it meets.
fn told(user: &Client, namespace: &str, before: Option<&Value>, after: &Value) -> Met {
    before.into_iter().for_each(|before| user.apply(&before.to_string()));
    meets(user, namespace, after)
}

/// Defines DataPlanes on the shared cluster, once: with Kong's own CRD, or where that is not at hand
/// with ours.
pub(crate) fn define_data_planes(cluster: &Cluster) {
    static DEFINED: Once = Once::new();
    DEFINED.call_once(|| {
        let admin = cluster.admin();
        match shared::find("crds/kong_dataplanes.yaml") {
            Some(crd) => {
                admin.kubectl(&["apply", "--server-side", "-f", &crd.to_string_lossy()]).ok();
            }
            None => {
                let ours = interlock(&admin, &["render", "kong-crds"], "").ok();
                admin.kubectl_in(&["apply", "--server-side", "-f", "-"], &ours).ok();
            }
        }
        await_definitions(&admin);
    });
}

#[test]
fn deployments() {
    let (cluster, _) = Interlock::shared();
    let ns = cluster.namespace("flavor");
    let user = ns.user("alice");
    let mut met = Vec::new();
    for case in cases() {
        let name = case.name.to_lowercase();
        let before = case.before.as_ref().map(|before| deployment(&name, before));
        let after = deployment(&name, &case.after);
        met.push((case.name.to_owned(), told(&user, ns.name(), before.as_ref(), &after)));
    }
    goldens("flavor-deployments.txt", ns.name(), &met);
}

#[test]
fn data_planes() {
    let (cluster, _) = Interlock::shared();
    define_data_planes(cluster);
    let ns = cluster.namespace("flavor");
    let user = ns.user("alice");
    let mut met = Vec::new();
    for staged in [false, true] {
        // Kong's schema knows lists of variables by name, and takes no name twice.
        for case in cases().into_iter().filter(|case| case.name != "RF16") {
            let name = format!("{}{}", case.name.to_lowercase(), if staged { "-staged" } else { "" });
            let before = case.before.as_ref().map(|before| data_plane(&name, before, staged));
            let after = data_plane(&name, &case.after, staged);
            met.push((name, told(&user, ns.name(), before.as_ref(), &after)));
        }
    }
    // What a refused creation names.
    user.kubectl(&["explain", "dataplanes.spec"]).ok();
    goldens("flavor-dataplanes.txt", ns.name(), &met);
}

/// A Deployment without the label is nobody's business here.
#[test]
fn other_deployments_are_not_judged() {
    let (cluster, _) = Interlock::shared();
    let ns = cluster.namespace("flavor");
    let user = ns.user("alice");
    let mut other = deployment("other", &env("kong:3.9", "traditional"));
    other["metadata"].as_object_mut().unwrap().remove("labels");
    user.apply(&other.to_string());
    other["spec"]["template"]["spec"]["containers"] = json!([env("kong:3.9", "expressions")]);
    assert_eq!(user.kubectl_in(&["apply", "-f", "-"], &other.to_string()).stderr, "");
}
