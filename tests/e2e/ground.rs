//! The testbed itself: what suites rely on.

use std::time::Duration;

use serde_json::json;

use crate::support::{Cluster, Output, wait_until};

const CAP: Duration = Duration::from_secs(60);

/// Deployments become ready, never with an image that cannot be pulled; Jobs end as their
/// command says; claims are bound.
#[test]
fn workloads_progress_and_fail_as_their_pods_say() {
    let cluster = Cluster::shared();
    if !cluster.has_workloads() {
        return;
    }
    let ns = cluster.namespace("workloads");
    let user = ns.user("alice");
    user.apply(include_str!("workloads.yaml"));
    let expected = [
        ("deployment", "good", "{.status.readyReplicas}", "2"),
        ("deployment", "bad", "{.status.unavailableReplicas}", "1"),
        ("job", "succeeds", "{.status.succeeded}", "1"),
        ("job", "fails", "{.status.conditions[?(@.type==\"Failed\")].status}", "True"),
        ("job", "says-three", "{.status.conditions[?(@.type==\"Failed\")].status}", "True"),
        ("job", "runs-on", "{.status.ready}", "1"),
        ("statefulset", "claims", "{.status.readyReplicas}", "1"),
        ("pvc", "data-claims-0", "{.status.phase}", "Bound"),
    ];
    for (kind, name, path, value) in expected {
        wait_until(&format!("{kind} {name} has {path} = {value}"), CAP, || {
            let out = user.kubectl(&["get", kind, name, "-o", &format!("jsonpath={path}")]);
            if out.stdout == value { Ok(()) } else { Err(out.to_string()) }
        });
    }
}

/// Pods run commands, take files and have logs.
#[test]
fn exec_cp_and_logs_work_on_fake_pods() {
    let cluster = Cluster::shared();
    if !cluster.has_workloads() {
        return;
    }
    let ns = cluster.namespace("exec");
    let user = ns.user("alice");
    let run = ["run", "shell", "--image=any", "--annotations=testbed.interlock.dev/ready-after=100ms"];
    user.kubectl(&run).ok();
    user.kubectl(&["wait", "--for=condition=Ready", "--timeout=120s", "pod/shell"]).ok();
    let file = format!("{}.txt", ns.name());
    user.kubectl(&["exec", "shell", "--", "sh", "-c", &format!("echo hello > {file}")]).ok();
    assert_eq!(user.kubectl(&["exec", "shell", "--", "cat", &file]).ok(), "hello\n");
    let target = cluster.dir().join(&file);
    user.kubectl(&["cp", &format!("shell:{file}"), &target.to_string_lossy()]).ok();
    assert_eq!(std::fs::read_to_string(target).unwrap(), "hello\n");
    assert!(user.kubectl(&["logs", "shell"]).ok().contains("hello"));
}

/// Users have their own rights and nobody else's.
#[test]
fn users_are_real_and_held_to_their_rights() {
    let cluster = Cluster::shared();
    let (ns, other) = (cluster.namespace("rights"), cluster.namespace("rights"));
    let whoami = |out: Output| out.ok().trim().to_owned();
    let alice = ns.user("alice");
    let name = ["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"];
    assert_eq!(whoami(alice.kubectl(&name)), "alice");
    let process = cluster.user("interlock", &[]);
    assert_eq!(whoami(process.kubectl(&name)), "system:serviceaccount:interlock-system:interlock");

    let configmap = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}});
    alice.post(&ns.path("v1", "configmaps", ""), &configmap).ok();
    let refused = alice.post(&other.path("v1", "configmaps", ""), &configmap);
    assert!(refused.message().contains("User \"alice\" cannot create"), "{refused}");
    refused.refused(403);
    ns.stranger("mallory").read(&ns.path("v1", "configmaps", "c")).refused(403);
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    let reader = ns.user_with("reader", &rules);
    reader.read(&ns.path("v1", "configmaps", "c")).ok();
    reader.delete(&ns.path("v1", "configmaps", "c")).refused(403);
}

/// A component that a test stops comes back on its port, and what it knew is still there.
#[test]
fn the_api_server_can_be_stopped_killed_and_started() {
    let cluster = Cluster::own(&["--audit"]);
    let Some(testbed) = cluster.testbed() else { return };
    let ns = cluster.namespace("restart");
    for end in ["kill", "stop"] {
        testbed.command(&format!("{end} kube-apiserver"));
        assert_eq!(cluster.admin().read("/readyz").code, 0, "it still answers after {end}");
        testbed.command("start kube-apiserver");
        cluster.admin().read(&format!("/api/v1/namespaces/{}", ns.name())).ok();
    }
    let audit = std::fs::read_to_string(testbed.ready.audit.as_ref().unwrap()).unwrap();
    assert!(audit.contains("\"level\":\"Metadata\""), "the audit log holds: {audit:.300}");
}
