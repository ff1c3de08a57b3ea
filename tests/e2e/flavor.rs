//! Router flavors: what kubectl prints of changes to DataPlanes (with Kong's own CRD) and to
//! labelled Deployments, and that `interlock check` says the same.

mod overrides;
mod own_definition;
mod staged;

use std::path::Path;
use std::sync::Once;

use serde_json::{Value, json};

use crate::support::interlock::{await_definitions, interlock};
use crate::support::{Client, Cluster, Interlock, shared};

const TC: &str = "traditional_compatible";

/// One change: what it is called, the flavors before and after, and the image.
struct Case {
    name: &'static str,
    before: Value,
    after: Value,
}

fn env(image: &str, flavor: &str) -> Value {
    json!({"name": "proxy", "image": image, "env": [{"name": "KONG_ROUTER_FLAVOR", "value": flavor}]})
}

fn change(name: &'static str, image: &str, from: &str, to: &str) -> Case {
    Case { name, before: env(image, from), after: env(image, to) }
}

fn cases() -> Vec<Case> {
    let with = |more: Value| {
        let mut container = env("kong:3.9", TC);
        for (key, value) in more.as_object().into_iter().flatten() {
            container[key] = value.clone();
        }
        container
    };
    let variable = |name: &str, value: &str| json!({"name": name, "value": value});
    let from_map = json!({"name": "KONG_ROUTER_FLAVOR", "valueFrom": {"configMapKeyRef": {"name": "router", "key": "flavor"}}});
    let flavor = |value: &str| variable("KONG_ROUTER_FLAVOR", value);
    vec![
        change("RF01", "kong:3.9", TC, "expression"),
        change("RF02", "kong:3.6", TC, "expressions"),
        change("RF02-back", "kong:3.9", "expressions", TC),
        change("RF03", "kong:3.9", "traditional", "expressions"),
        change("RF03-back", "kong:3.9", "expressions", "traditional"),
        change("RF04", "kong:3.2", TC, "expressions"),
        Case { name: "RF08", before: env("kong:3.9", "expressions"), after: env("kong:3.6", "expressions") },
        change("RF09", "kong:3.9", "traditional", TC),
        Case { name: "RF10", before: env("kong:3.9", TC), after: with(json!({"env": [from_map]})) },
        Case {
            name: "RF11",
            before: json!({"name": "proxy", "image": "kong:3.9"}),
            after: env("kong:3.9", TC),
        },
        Case {
            name: "RF12",
            before: json!({"name": "proxy", "image": "kong:2.8"}),
            after: json!({"name": "proxy", "image": "kong:3.9"}),
        },
        change("RF13", "kong:3.9", TC, "traditional"),
        Case {
            name: "RF15",
            before: env("kong:3.9", TC),
            after: with(json!({"env": [flavor(TC), variable("KONG_ROUTER_FLAVOR_FILE", "/run/flavor")]})),
        },
        change("RF17", "kong:3.9", TC, "expressions"),
    ]
}

fn deployment(name: &str, container: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"interlock.dev/guard": "kong-router-flavor"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    })
}

fn data_plane(name: &str, container: &Value, staged: bool) -> Value {
    let mut plane = json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
        "metadata": {"name": name},
        "spec": {"deployment": {"replicas": 3, "podTemplateSpec": {"spec": {"containers": [container]}}}},
    });
    if staged {
        plane["spec"]["deployment"]["rollout"] =
            json!({"strategy": {"blueGreen": {"promotion": {"strategy": "BreakBeforePromotion"}}}});
    }
    plane
}

/// Applies both, and tells what the second one met.
fn told(user: &Client, namespace: &str, before: &Value, after: &Value) -> String {
    user.apply(&before.to_string());
    meets(user, namespace, after)
}

/// Applies a change of an object, and tells what it met; `interlock check` has to say the same of
/// the object that is stored.
fn meets(user: &Client, namespace: &str, after: &Value) -> String {
    let name = |at: &str| after.pointer(at).and_then(Value::as_str).unwrap_or_default();
    let before = user.get(name("/kind"), name("/metadata/name")).expect("a stored object");
    let out = user.kubectl_in(&["apply", "-f", "-"], &after.to_string());
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, object: &Value| {
        let mut object = object.clone();
        object["metadata"]["namespace"] = json!(namespace);
        let path = folder.path().join(name);
        std::fs::write(&path, object.to_string()).unwrap();
        path.display().to_string()
    };
    let (old, new) = (file("old.json", &before), file("new.json", after));
    let checked = interlock(user, &["check", "-f", &new, "--old", &old, "-o", "json"], "");
    assert_eq!(checked.code == 0, out.code == 0, "{checked}\n{out}");
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    let texts = checked["warnings"].as_array().unwrap().iter().chain(checked.get("message"));
    for text in texts.filter_map(Value::as_str) {
        assert!(out.stderr.contains(text), "{text}\n--- is not in\n{out}");
    }
    // Definitions of other tests come while this runs, and are said to be listed for a moment.
    let whole = format!("{}{}", out.stdout, out.stderr);
    let kept = whole.lines().filter(|line| !line.contains("not judged by what is not seen here"));
    kept.map(|line| format!("{line}\n")).collect()
}

#[track_caller]
pub fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kubectl").join(name);
    if std::env::var_os("INTERLOCK_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    similar_asserts::assert_eq!(expected, text, "{name}; INTERLOCK_BLESS=1 writes what is printed now");
}

/// Defines DataPlanes on the shared cluster, once: with Kong's own CRD, or where that is not at hand
/// with ours.
fn define_data_planes(cluster: &Cluster) {
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
    let mut text = String::new();
    for case in cases() {
        let name = case.name.to_lowercase();
        let (before, after) = (deployment(&name, &case.before), deployment(&name, &case.after));
        text += &format!("# {}\n{}\n", case.name, told(&user, ns.name(), &before, &after));
    }
    golden("flavor-deployments.txt", &text.replace(ns.name(), "NAMESPACE"));
}

#[test]
fn data_planes() {
    let (cluster, _) = Interlock::shared();
    define_data_planes(cluster);
    let ns = cluster.namespace("flavor");
    let user = ns.user("alice");
    let mut text = String::new();
    for staged in [false, true] {
        for case in cases() {
            let name = format!("{}{}", case.name.to_lowercase(), if staged { "-staged" } else { "" });
            let (before, after) =
                (data_plane(&name, &case.before, staged), data_plane(&name, &case.after, staged));
            text += &format!("# {name}\n{}\n", told(&user, ns.name(), &before, &after));
        }
    }
    golden("flavor-dataplanes.txt", &text.replace(ns.name(), "NAMESPACE"));
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
