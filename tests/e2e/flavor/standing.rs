//! What the rules rest on beside the review: what ran before a rollout, found again by a process
//! that was started in the middle of it; sources that are read later; and the policy that says who
//! may override.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use super::{TC, deployment, env};
use crate::support::{Client, Cluster, Interlock, Namespace, wait_until};

const CAP: Duration = Duration::from_secs(60);

/// A Deployment of Kong, whose pods never become ready where it says so.
fn gateway(flavor: &str, ready: bool) -> Value {
    deployment("edge", &env(if ready { "kong:3.9" } else { "kong:3.9-never-ready" }, flavor))
}

fn await_pods(user: &Client, wanted: &str, holds: impl Fn(&Value) -> bool) {
    wait_until(wanted, CAP, || {
        let edge = user.get("deployment", "edge").ok_or("it is not there")?;
        let seen = edge["status"]["observedGeneration"] == edge["metadata"]["generation"];
        if seen && holds(&edge["status"]) { Ok(()) } else { Err(edge["status"].to_string()) }
    });
}

/// What a change is told, once that is what is awaited.
fn await_told(user: &Client, change: &Value, what: &str, part: &str) -> String {
    wait_until(what, CAP, || {
        let out = user.kubectl_in(&["apply", "--dry-run=server", "-f", "-"], &change.to_string());
        if out.stderr.contains(part) { Ok(out.stderr) } else { Err(out.to_string()) }
    })
}

#[test]
fn beside_the_review() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    let ns = cluster.namespace("standing");
    let user = ns.user("alice");
    if cluster.has_workloads() {
        a_rollout_is_found_again(&cluster, &process, &user);
    }
    what_a_new_source_brings_is_judged_again(&ns, &user);
    overrides_need_their_policy(&user, &cluster.admin());
}

/// Three pods run one flavor, one of the next never becomes ready, and the process is killed: to the
/// one that follows, the stored template looks as if it ran.
fn a_rollout_is_found_again(cluster: &Cluster, process: &Interlock, user: &Client) {
    user.apply(&gateway("traditional", true).to_string());
    await_pods(user, "all pods run", |status| status["availableReplicas"] == 3 && status["replicas"] == 3);
    user.apply(&gateway(TC, false).to_string());
    await_pods(user, "the rollout stands still", |status| {
        status["unavailableReplicas"] == 1 && status["availableReplicas"] == 3
    });
    let next = gateway("expressions", false);
    let skips = "router flavor change traditional -> expressions skips a step";
    await_told(user, &next, "it was seen to begin", skips);
    process.kill();
    process.start();
    process.await_ready();
    await_told(user, &next, "its ReplicaSets told of it", skips);

    // Without the right to read them, that is said.
    let admin = cluster.admin();
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterroles/interlock-controller";
    let role = admin.read(path).ok();
    let rules = role["rules"].as_array().expect("rules").iter();
    let kept: Vec<&Value> = rules.filter(|rule| rule["resources"] != json!(["replicasets"])).collect();
    admin.merge_patch(path, &json!({"rules": kept})).ok();
    process.kill();
    process.start();
    process.await_ready();
    let told = await_told(user, &next, "it cannot tell", "its ReplicaSets cannot be read");
    assert!(told.contains("so judged by what is stored") && told.contains("[RF10]"), "{told}");
    user.kubectl(&["delete", "deployment", "edge"]).ok();
}

/// A ConfigMap that nobody could read when a gateway began to use it.
fn what_a_new_source_brings_is_judged_again(ns: &Namespace<'_>, user: &Client) {
    let data = json!({"flavor": "expressions"});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unread"}, "data": data});
    user.apply(&map.to_string());
    let paused = |env: Value| {
        let container = json!({"name": "proxy", "image": "kong:3.9", "env": [env]});
        let mut gateway = deployment("unread", &container);
        // Without pods, what is stored is all that there is to compare with.
        gateway["spec"]["paused"] = json!(true);
        gateway.to_string()
    };
    user.apply(&paused(json!({"name": "KONG_ROUTER_FLAVOR", "value": "traditional"})));
    let from = json!({"configMapKeyRef": {"name": "unread", "key": "flavor"}});
    let next = paused(json!({"name": "KONG_ROUTER_FLAVOR", "valueFrom": from}));
    let out = user.kubectl_in(&["replace", "-f", "-"], &next);
    assert!(out.code == 0 && out.stderr.contains("label it interlock.dev/flavor-source first"), "{out}");
    let events = ns.path("events.k8s.io/v1", "events", "");
    let note = wait_until("it is told what would have been refused", CAP, || {
        let list = ns.admin().read(&events).ok();
        let mut events = list["items"].as_array().into_iter().flatten();
        let event =
            events.find(|event| event["reason"] == "RouterFlavorOverlooked").ok_or("no such Event yet")?;
        Ok(event["note"].as_str().unwrap_or_default().to_owned())
    });
    assert!(note.contains("router flavor traditional -> expressions") && note.contains("[RF03]"), "{note}");
}

/// The exact override counts for nothing while nobody asks whose it is.
fn overrides_need_their_policy(user: &Client, admin: &Client) {
    let paused = |flavor: &str| {
        let mut gateway = deployment("paused", &env("kong:3.9", flavor));
        gateway["spec"]["paused"] = json!(true);
        gateway
    };
    let allowed = |text: &str| {
        let mut gateway = paused("traditional");
        gateway["metadata"]["annotations"] = json!({meta::ALLOW_FLAVOR: text});
        gateway
    };
    user.apply(&paused("expressions").to_string());
    let flavors = "expressions->traditional";
    let told = await_told(user, &allowed(flavors), "the change is named", "write \"");
    let exact = told.split("write \"").nth(1).and_then(|rest| rest.split('"').next()).expect("a text");
    let dry = |wanted: &str, part: &str| await_told(user, &allowed(exact), wanted, part);
    dry("the policy is seen", "is allowed by annotation");
    let binding =
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/interlock-flavor-overrides";
    let whole = admin.read(binding).ok();
    admin.delete(binding).ok();
    let told = dry("its binding is gone", "counts for nothing now");
    assert!(
        told.contains("ValidatingAdmissionPolicyBinding interlock-flavor-overrides does not exist"),
        "{told}"
    );
    assert!(told.contains("[RF03]"), "{told}");
    let again = json!({
        "apiVersion": whole["apiVersion"], "kind": whole["kind"], "spec": whole["spec"],
        "metadata": {"name": whole["metadata"]["name"], "labels": whole["metadata"]["labels"]},
    });
    admin.post(binding.rsplit_once('/').expect("a path").0, &again).ok();
    dry("it is back", "is allowed by annotation");
}
