//! With every replica dead, and with the webhook configurations gone as well: what can still be
//! written, what is still refused, and by whom.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Client, Cluster, Interlock, Namespace, wait_until};

const CAP: Duration = Duration::from_secs(60);
const PACKAGE: &str = include_str!("drift/operatorversion.yaml");
const FINALIZER: &str = "kudo.dev.instance.cleanup";

/// An Instance whose plan cannot end: a quota keeps its Secret from being made.
fn locked(ns: &Namespace<'_>, user: &Client) {
    user.apply(PACKAGE);
    ns.forbid("secrets");
    let instance = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": { "name": "demo" },
        "spec": { "operatorVersion": { "name": "web-0.1.0" }, "parameters": { "FORBIDDEN": "true" } },
    });
    user.apply(&instance.to_string());
    wait_until("the plan runs and is stalled", CAP, || {
        let found = user.get("instances.kudo.dev", "demo").ok_or("no Instance")?;
        let stalled = found["status"]["conditions"]
            .as_array()
            .is_some_and(|all| all.iter().any(|c| c["type"] == "Stalled" && c["status"] == "True"));
        if stalled { Ok(()) } else { Err(format!("{found:#}")) }
    });
}

/// One object of each of many kinds, all of which a user of the namespace may write.
fn others() -> Vec<Value> {
    let object = |api_version: &str, kind: &str, rest: Value| {
        let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "other" } });
        let members = object.as_object_mut().expect("an object");
        members.extend(rest.as_object().expect("an object").clone());
        object
    };
    let pod = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "restartPolicy": "Never", "containers": [{ "name": "c", "image": "i" }] } });
    let always = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    let workload =
        json!({ "spec": { "replicas": 0, "selector": { "matchLabels": { "a": "b" } }, "template": always } });
    let selector = json!({ "spec": { "selector": { "matchLabels": { "a": "b" } } } });
    let rules = json!({ "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }] });
    vec![
        object("v1", "ConfigMap", json!({})),
        object("v1", "Service", json!({ "spec": { "ports": [{ "port": 80 }] } })),
        object("v1", "ServiceAccount", json!({})),
        object("v1", "Pod", json!({ "spec": always["spec"] })),
        object("v1", "PodTemplate", json!({ "template": always })),
        object("v1", "LimitRange", json!({ "spec": { "limits": [] } })),
        object("v1", "Endpoints", json!({})),
        object(
            "v1",
            "ReplicationController",
            json!({ "spec": { "replicas": 0, "selector": { "a": "b" }, "template": always } }),
        ),
        object(
            "v1",
            "PersistentVolumeClaim",
            json!({ "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } }),
        ),
        object("apps/v1", "Deployment", workload.clone()),
        object("apps/v1", "ReplicaSet", workload.clone()),
        object(
            "apps/v1",
            "StatefulSet",
            json!({ "spec": { "replicas": 0, "serviceName": "other", "selector": { "matchLabels": { "a": "b" } }, "template": always } }),
        ),
        object(
            "apps/v1",
            "DaemonSet",
            json!({ "spec": { "selector": { "matchLabels": { "a": "b" } }, "template": always } }),
        ),
        object("batch/v1", "Job", json!({ "spec": { "suspend": true, "template": pod } })),
        object(
            "batch/v1",
            "CronJob",
            json!({ "spec": { "schedule": "0 0 1 1 *", "jobTemplate": { "spec": { "template": pod } } } }),
        ),
        object("rbac.authorization.k8s.io/v1", "Role", rules),
        object("networking.k8s.io/v1", "NetworkPolicy", json!({ "spec": { "podSelector": {} } })),
        object(
            "networking.k8s.io/v1",
            "Ingress",
            json!({ "spec": { "defaultBackend": { "service": { "name": "other", "port": { "number": 80 } } } } }),
        ),
        object("policy/v1", "PodDisruptionBudget", selector),
        object(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({ "spec": { "maxReplicas": 2, "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "other" } } }),
        ),
        object("coordination.k8s.io/v1", "Lease", json!({})),
        object("discovery.k8s.io/v1", "EndpointSlice", json!({ "addressType": "IPv4", "endpoints": [] })),
        object("kudo.dev/v1beta1", "Operator", json!({ "spec": {} })),
    ]
}

#[test]
fn with_every_replica_dead_only_specs_of_ours_are_closed() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    let ns = cluster.namespace("outage");
    let user = ns.admin();
    locked(&ns, &user);
    let path = ns.path("kudo.dev/v1beta1", "instances", "demo");
    process.kill();

    // Labels, and finalizers of others, are nobody's business.
    user.merge_patch(&path, &json!({ "metadata": { "labels": { "a": "b" } } })).ok();
    let both = json!({ "metadata": { "finalizers": [FINALIZER, "example.com/mine"] } });
    user.merge_patch(&path, &both).ok();
    user.merge_patch(&path, &json!({ "metadata": { "finalizers": [FINALIZER] } })).ok();
    let answer = user.merge_patch(&path, &json!({ "metadata": { "finalizers": [] } }));
    assert!(answer.message().contains("finalizer kudo.dev.instance.cleanup stays"), "{}", answer.message());
    answer.refused(422);

    let edit = json!({ "spec": { "parameters": { "GREETING": "no" } } });
    let refused =
        user.kubectl(&["patch", "instance", "demo", "--type=merge", "-p", &edit.to_string()]).refused();
    assert!(refused.contains("failed calling webhook"), "{refused}");

    let kinds = others();
    assert!(kinds.len() > 20);
    for object in &kinds {
        user.apply(&object.to_string());
        let kind = object["kind"].as_str().expect("a kind");
        user.kubectl(&["label", kind, "other", "written=yes"]).ok();
    }
    for object in kinds.iter().rev() {
        user.kubectl(&["delete", object["kind"].as_str().expect("a kind"), "other", "--wait=false"]).ok();
    }

    // Without the configurations the policies stand alone.
    for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
        cluster.admin().kubectl(&["delete", kind, "interlock"]).ok();
    }
    let refused = wait_until("the policy answers", CAP, || {
        let answer = user.merge_patch(&path, &edit);
        if answer.message().contains("failed calling webhook") {
            Err(answer.message().to_owned())
        } else {
            Ok(answer)
        }
    });
    let text = refused.message().to_owned();
    assert!(
        text.contains("ValidatingAdmissionPolicy")
            && text.contains("the spec is frozen while plan deploy is"),
        "{text}"
    );
    refused.refused(422);
    let forged = json!({ "status": { "planStatus": { "deploy": { "status": "COMPLETE" } } } });
    let answer = user.merge_patch(&format!("{path}/status"), &forged);
    assert!(answer.message().contains("status.planStatus"), "{}", answer.message());
    assert!((400..500).contains(&answer.code), "{}", answer.code);
}

/// Deletion always ends: namespaces with running plans go, with the webhook up.
#[test]
fn namespaces_with_running_plans_go() {
    let (cluster, _) = Interlock::shared();
    let count = if std::env::var_os("INTERLOCK_SOAK").is_some() { 100 } else { 5 };
    let namespaces: Vec<_> = (0..count).map(|i| cluster.namespace(&format!("going-{i}"))).collect();
    for ns in &namespaces {
        locked(ns, &ns.admin());
    }
    let start = std::time::Instant::now();
    for ns in &namespaces {
        cluster.admin().kubectl(&["delete", "namespace", ns.name(), "--wait=false"]).ok();
    }
    for ns in &namespaces {
        wait_until(&format!("namespace {} is gone", ns.name()), CAP, || {
            match cluster.admin().get("namespace", ns.name()) {
                None => Ok(()),
                Some(found) => Err(format!("{found:#}")),
            }
        });
    }
    crate::support::announce(&format!(
        "{count} namespaces with running plans were gone after {:?}",
        start.elapsed()
    ));
}
