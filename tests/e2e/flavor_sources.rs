//! ConfigMaps and Secrets that the router flavor of a gateway comes from: which are sent to the
//! webhook, what kubectl prints of a change that would change a flavor, and the one override.

use std::time::Duration;

use regex::Regex;
use serde_json::{Value, json};

use crate::flavor::{Met, goldens, says};
use crate::support::instances::await_event;
use crate::support::{Client, Interlock, wait_until};

const CAP: Duration = Duration::from_secs(60);
const TC: &str = "traditional_compatible";
const LABEL: &str = "interlock.dev/flavor-source";
const GUARDED: &str = "interlock.dev/guarded-flavor-sources";
const OVERRIDE: &str = "interlock.dev/allow-router-flavor-change";

pub fn gateway(name: &str, image: &str, from: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"interlock.dev/guard": "kong-router-flavor"}},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{
                "name": "proxy", "image": image,
                "env": [{"name": "KONG_ROUTER_FLAVOR", "valueFrom": from}],
            }]}},
        },
    })
}

pub fn source(kind: &str, name: &str, flavor: &str, other: &str) -> Value {
    let field = if kind == "Secret" { "stringData" } else { "data" };
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, field: {"flavor": flavor, "other": other}})
}

/// Waits until the controller has labelled a source, or has taken its label away.
pub fn await_label(user: &Client, resource: &str, name: &str, wanted: Option<&str>) {
    wait_until(&format!("the label of {resource}/{name} is {wanted:?}"), CAP, || {
        let found = user.get(resource, name).ok_or("it is not there")?;
        let label = found["metadata"]["labels"][LABEL].as_str();
        if label == wanted { Ok(()) } else { Err(format!("{label:?}")) }
    });
}

/// Waits until a change is refused; what is told of it then.
fn await_refused(user: &Client, object: &Value) -> String {
    wait_until("a change of the source is refused", CAP, || {
        let out = user.kubectl_in(&["apply", "--dry-run=server", "-f", "-"], &object.to_string());
        if out.code == 0 { Err(out.to_string()) } else { Ok(out.stderr) }
    })
}

/// The label of a source stays, whoever wrote it: one of the controller's by the policy, one of the
/// user's own by the webhook. `why` is a part of what is printed.
fn label_stays(user: &Client, resource: &str, name: &str, why: &str) {
    let out = user.kubectl(&["label", resource, name, &format!("{LABEL}-")]);
    assert!(out.code != 0 && out.stderr.contains(why) && out.stderr.contains("[RF18]"), "{out}");
    // Beside other changes of metadata.
    let patch = json!({"metadata": {"labels": {LABEL: null, "team": "edge"}}}).to_string();
    let out = user.kubectl(&["patch", resource, name, "--type=merge", "-p", &patch]);
    assert!(out.code != 0 && out.stderr.contains("[RF18]"), "{out}");
}

/// Of a label that the controller wrote, the value stays as well.
fn label_of_ours_stays(user: &Client, resource: &str, name: &str) {
    label_stays(user, resource, name, "shows Interlock what a router flavor comes from");
    let out = user.kubectl(&["label", "--overwrite", resource, name, &format!("{LABEL}=mine")]);
    assert!(out.code != 0 && out.stderr.contains("; leave it;") && out.stderr.contains("[RF18]"), "{out}");
}

/// Decisions about a kind that the process has counted.
fn decided(process: &Interlock, kind: &str) -> usize {
    let (_, metrics) = process.ops("/metrics").expect("metrics");
    let ours = format!("kind=\"{kind}\"");
    let lines = metrics.lines().filter(|line| line.starts_with("interlock_admission_decisions_total{"));
    lines
        .filter(|line| line.contains(&ours))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok())
        .sum()
}

/// An object whose manifest has the label.
/// A gateway that lists a source, which `interlock check` then knows as well.
fn listing(source: &str, mut gateway: Value) -> Value {
    gateway["metadata"]["annotations"] = json!({GUARDED: source});
    gateway
}

fn labelled(mut object: Value) -> Value {
    object["metadata"]["labels"] = json!({LABEL: "yes"});
    object
}

/// One function, as it counts what the process is sent of ConfigMaps.
#[test]
fn a_source_of_a_flavor_is_guarded_and_no_other_object_is() {
    let (cluster, process) = Interlock::shared();
    let ns = cluster.namespace("sources");
    let user = ns.user("alice");
    let settled = |text: &str| {
        let text = text.replace(ns.name(), "NAMESPACE");
        Regex::new("@[0-9a-f]{12}").unwrap().replace_all(&text, "@CHANGE").into_owned()
    };
    let map = |flavor: &str, other: &str| source("ConfigMap", "router", flavor, other);
    let apply = |object: &Value| user.kubectl_in(&["apply", "-f", "-"], &object.to_string());
    let mut met: Vec<(String, Met)> = Vec::new();

    user.apply(&map(TC, "a").to_string());
    user.apply(&source("ConfigMap", "unrelated", TC, "a").to_string());
    let from = json!({"configMapKeyRef": {"name": "router", "key": "flavor"}});
    let edge = listing("configmaps/router", gateway("edge", "kong:3.6", &from));
    user.apply(&edge.to_string());
    await_label(&user, "configmap", "router", Some("in-use"));
    let refused = await_refused(&user, &map("expressions", "a"));
    label_of_ours_stays(&user, "configmap", "router");
    let tell = |title: &str, (kind, name): (&str, &str), new: Option<&Value>, gateway: &Value, told: &str| {
        let old = user.get(kind, name).expect("the source as it is");
        let (_, check) = says(&user, ns.name(), Some(&old), new, std::slice::from_ref(gateway), told);
        (title.to_owned(), Met { kubectl: settled(told), check: settled(&check) })
    };
    let router = ("configmap", "router");
    met.push(tell("a key that decides", router, Some(&map("expressions", "a")), &edge, &refused));

    let out = apply(&map(TC, "b"));
    assert_eq!((out.code, out.stderr.as_str()), (0, ""), "another key is nobody's business");
    let before = decided(process, "ConfigMap");
    for other in ["b", "c"] {
        user.apply(&source("ConfigMap", "unrelated", "expressions", other).to_string());
    }
    user.kubectl(&["label", "configmap", "router", "team=edge"]).ok();
    assert_eq!(decided(process, "ConfigMap"), before, "what is unrelated is not sent at all");

    // Without the name of the change an override allows nothing, and is told it.
    let with = |flavor: &str, text: &str| {
        let mut object = map(flavor, "b");
        object["metadata"]["annotations"] = json!({OVERRIDE: text});
        object
    };
    let overridden = |from: &str, to: &str| {
        let out = apply(&with(to, &format!("{from}->{to}")));
        assert_ne!(out.code, 0, "{out}");
        let exact = Regex::new(&format!("{from}->{to}@[0-9a-f]{{12}}")).unwrap();
        let exact =
            exact.find(&out.stderr).unwrap_or_else(|| panic!("names no change: {out}")).as_str().to_owned();
        (out.stderr, exact)
    };
    let (refused, exact) = overridden(TC, "expressions");
    let bare = with("expressions", &format!("{TC}->expressions"));
    met.push(tell("an override without its change", router, Some(&bare), &edge, &refused));
    let change = with("expressions", &exact);
    let old = user.get("configmap", "router").expect("the source as it is");
    let out = apply(&change);
    assert_eq!(out.code, 0, "{out}");
    let gateways = std::slice::from_ref(&edge);
    let (allowed, check) = says(&user, ns.name(), Some(&old), Some(&change), gateways, &out.stderr);
    assert!(allowed, "{check}");
    let told = format!("{}{}", out.stdout, out.stderr);
    met.push(("the exact override".to_owned(), Met { kubectl: settled(&told), check: settled(&check) }));
    let (_, back) = overridden("expressions", TC);
    apply(&with(TC, &back)).ok();
    let out = apply(&with("expressions", &exact));
    assert_ne!(out.code, 0, "{out}");
    met.push(tell("the same override again", router, Some(&change), &edge, &out.stderr));

    let out = user.kubectl(&["delete", "configmap", "router"]);
    assert_ne!(out.code, 0, "{out}");
    met.push(tell("deleting it", router, None, &edge, &out.stderr));

    // A Secret: nobody here reads it, the review has what decides; the label is of its manifest.
    user.apply(&labelled(source("Secret", "router", "expressions", "a")).to_string());
    let from = json!({"secretKeyRef": {"name": "router", "key": "flavor"}});
    let secret = gateway("secret", "kong:3.9", &from);
    user.apply(&secret.to_string());
    let wrong = labelled(source("Secret", "router", "no-flavor-but-a-secret", "a"));
    let refused = await_refused(&user, &wrong);
    assert!(!refused.contains("no-flavor-but-a-secret"), "{refused}");
    label_stays(&user, "secret", "router", "may come from there");
    met.push(tell("a Secret", ("secret", "router"), Some(&wrong), &secret, &refused));
    goldens("flavor-sources.txt", ns.name(), &met);

    // With the last gateway goes the guard.
    user.kubectl(&["delete", "deployment", "edge", "secret"]).ok();
    await_label(&user, "configmap", "router", None);
    user.apply(&map("expressions", "b").to_string());
    user.kubectl(&["delete", "configmap", "router"]).ok();
}

/// What a change leads to is judged there too, after it, where nobody who may update the source has asked for a guard.
#[test]
fn a_source_that_nobody_guards_is_read_after_a_change() {
    let (cluster, _) = Interlock::shared();
    let ns = cluster.namespace("unguarded");
    let rights =
        json!([{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "create", "patch"]}]);
    let (alice, bob) = (ns.user("alice"), ns.user_with("bob", &rights));
    let from = json!({"configMapKeyRef": {"name": "router", "key": "flavor"}});
    let mut literal = gateway("edge", "kong:3.9", &from);
    literal["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "KONG_ROUTER_FLAVOR", "value": "traditional"}]);
    bob.apply(&literal.to_string());
    alice.apply(&source("ConfigMap", "router", "expressions", "a").to_string());
    let sourced = gateway("edge", "kong:3.9", &from);
    let out = bob.kubectl_in(&["apply", "-f", "-"], &sourced.to_string());
    assert!(out.code == 0 && out.stderr.contains("[RF10]"), "{out}");
    wait_until("the change is judged", CAP, || {
        let list = ns.admin().read(&ns.path("events.k8s.io/v1", "events", "")).ok();
        let notes = list["items"].as_array().into_iter().flatten().filter_map(|it| it["note"].as_str());
        let notes: Vec<String> = notes.map(str::to_owned).collect();
        let expected =
            "router flavor traditional -> expressions was admitted, as its source could not be read then";
        notes.iter().any(|it| it.starts_with(expected)).then_some(()).ok_or_else(|| format!("{notes:#?}"))
    });
    let found = ns.admin().read(&ns.path("v1", "configmaps", "router")).ok();
    assert_eq!(found["metadata"]["labels"][LABEL], Value::Null, "it is read, and not guarded");
}

/// Whoever may write gateways keeps nobody from what belongs to the cluster.
#[test]
fn a_source_of_the_cluster_is_read_and_not_guarded() {
    let (cluster, _) = Interlock::shared();
    let ns = cluster.namespace("published");
    let user = ns.user("alice");
    let from = json!({"configMapKeyRef": {"name": "kube-root-ca.crt", "key": "flavor", "optional": true}});
    user.apply(&gateway("edge", "kong:3.6", &from).to_string());
    let said = await_event(&ns, "RouterFlavorOverlooked");
    assert!(said.contains("kube-root-ca.crt") && said.contains("belongs to the cluster"), "{said}");
    let found = ns.admin().read(&ns.path("v1", "configmaps", "kube-root-ca.crt"));
    assert_eq!(found.body["metadata"]["labels"][LABEL], Value::Null, "{found}");
}

/// Whoever may write gateways only keeps nobody from a ConfigMap that he may not write himself.
#[test]
fn a_source_is_guarded_for_whoever_may_update_it() {
    let (cluster, _) = Interlock::shared();
    let ns = cluster.namespace("deputy");
    let (alice, admin) = (ns.user("alice"), ns.admin());
    let rights = json!([{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "create", "patch"]}]);
    let bob = ns.user_with("bob", &rights);
    for name in ["router", "named"] {
        alice.apply(&source("ConfigMap", name, TC, "a").to_string());
    }
    let from = |name: &str| json!({"configMapKeyRef": {"name": name, "key": "flavor"}});
    let guarded = |name: &str| {
        let found = admin.read(&ns.path("apps/v1", "deployments", name)).ok();
        found["metadata"]["annotations"][GUARDED].clone()
    };

    bob.apply(&gateway("edge", "kong:3.6", &from("router")).to_string());
    assert_eq!(guarded("edge"), Value::Null);
    let said = await_event(&ns, "RouterFlavorOverlooked");
    assert!(
        said.contains("router") && said.contains("nobody who may update it has asked for that"),
        "{said}"
    );
    let label =
        |name: &str| admin.read(&ns.path("v1", "configmaps", name)).ok()["metadata"]["labels"][LABEL].clone();
    assert_eq!(label("router"), Value::Null);
    alice.apply(&source("ConfigMap", "router", "expressions", "a").to_string());

    // He does not get it by writing the annotation himself, be it beforehand.
    let forged = listing("configmaps/router", gateway("forged", "kong:3.6", &from("router")));
    let refused = bob.kubectl_in(&["create", "-f", "-"], &forged.to_string()).refused();
    assert!(refused.contains("that the author may update") && refused.contains("[RF18]"), "{refused}");
    let edge = ["annotate", "deployment", "edge", "interlock.dev/guarded-flavor-sources=configmaps/router"];
    bob.kubectl(&edge).refused();

    // An edit of something else by one who may does not vouch for it; the annotation does.
    alice.kubectl(&["patch", "deployment", "edge", "--type=merge", "-p", r#"{"spec":{"replicas":2}}"#]).ok();
    assert_eq!(guarded("edge"), Value::Null);
    alice.kubectl(&edge).ok();
    await_label(&alice, "configmap", "router", Some("in-use"));

    // What one who may names is listed by itself.
    alice.apply(&gateway("mine", "kong:3.6", &from("named")).to_string());
    assert_eq!(guarded("mine"), "configmaps/named");
    await_label(&alice, "configmap", "named", Some("in-use"));

    // More than the authorizer may be asked about in one expression.
    let mut three = gateway("three", "kong:3.6", &from("named"));
    let maps: Value = ["a", "b", "c"]
        .iter()
        .map(|name| json!({"configMapRef": {"name": name, "optional": true}}))
        .collect();
    three["spec"]["template"]["spec"]["containers"][0]["envFrom"] = maps;
    alice.apply(&three.to_string());
    assert_eq!(guarded("three"), "configmaps/a,configmaps/b,configmaps/c,configmaps/named");
    alice.kubectl(&["delete", "deployment", "three"]).ok();
    let named = json!([
        {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "create", "patch"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["named"], "verbs": ["update"]},
    ]);
    let carol = ns.user_with("carol", &named);
    let own = listing("configmaps/named", gateway("own", "kong:3.6", &from("named")));
    carol.apply(&own.to_string());
    carol
        .kubectl(&[
            "annotate",
            "deployment",
            "own",
            "--overwrite",
            &format!("{GUARDED}=configmaps/named,configmaps/router"),
        ])
        .refused();

    // Neither what he names judges the edits of others, nor does it keep the label.
    bob.apply(&gateway("bobs", "kong:3.6", &from("named")).to_string());
    alice.kubectl(&["delete", "deployment", "mine", "own"]).ok();
    await_label(&alice, "configmap", "named", None);
    alice.apply(&source("ConfigMap", "named", "expressions", "a").to_string());
    alice.kubectl(&["annotate", "deployment", "edge", &format!("{GUARDED}-")]).ok();
    await_label(&alice, "configmap", "router", None);

    // The status is no way round.
    let status = json!({"metadata": {"annotations": {GUARDED: "configmaps/router"}}});
    let rights = json!([{"apiGroups": ["apps"], "resources": ["deployments/status"], "verbs": ["patch"]}]);
    let dave = ns.user_with("dave", &rights);
    let said = dave.merge_patch(&format!("{}/status", ns.path("apps/v1", "deployments", "edge")), &status);
    assert_eq!(said.code, 422, "{said}");
}
