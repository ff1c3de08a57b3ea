//! A live Deployment that the API server takes, and whose pods it refuses.

use rstest::rstest;
use serde_json::json;

use super::*;

const SECURITY: &str = "pod-security.kubernetes.io/enforce";

/// Something of a namespace by which no pod of a DataPlane can be made.
#[derive(Clone, Copy)]
enum Limit {
    Range,
    Security,
}

impl Limit {
    /// Sets it, and waits until pods are refused by it.
    fn set(self, ns: &Namespace<'_>) {
        match self {
            Self::Range => {
                let range = json!({
                    "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "range"},
                    "spec": {"limits": [{"type": "Pod", "max": {"memory": "1Mi"}}]},
                });
                ns.admin().post(&ns.path("v1", "limitranges", ""), &range).ok();
            }
            Self::Security => label(ns, &json!("restricted")),
        }
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"memory": "1Gi"}}}]},
        });
        let path = format!("{}?dryRun=All", ns.path("v1", "pods", ""));
        wait_until("pods are refused", CAP, || {
            let answer = ns.admin().post(&path, &pod);
            if answer.code == 403 { Ok(()) } else { Err(answer.to_string()) }
        });
    }

    fn lift(self, ns: &Namespace<'_>) {
        match self {
            Self::Range => drop(ns.admin().delete(&ns.path("v1", "limitranges", "range")).ok()),
            Self::Security => label(ns, &Value::Null),
        }
    }
}

fn label(ns: &Namespace<'_>, level: &Value) {
    let labels = json!({"metadata": {"labels": {SECURITY: level}}});
    ns.admin().merge_patch(&format!("/api/v1/namespaces/{}", ns.name()), &labels).ok();
}

#[rstest]
#[case::limit_range(Limit::Range, "maximum memory usage per Pod is 1Mi")]
#[case::pod_security(Limit::Security, "violates PodSecurity \"restricted:latest\"")]
fn pods_that_are_refused_are_told_of(#[case] limit: Limit, #[case] said: &str) {
    let world = World::shared();
    if !world.cluster.has_workloads() {
        return;
    }
    let ns = world.cluster.namespace("no-pods");
    limit.set(&ns);
    let plane = Plane::create(&ns, "edge", &spec());
    plane.await_condition("Stalled", "True", "PodsRefused", said);
    plane.await_condition(
        "Ready",
        "False",
        "WaitingToBecomeReady",
        &format!("{} is not ready yet; its pods are refused: ", plane.deployment()),
    );
    plane.await_child("services", &plane.ingress());
    plane.await_child("services", "dataplane-admin-edge");
    plane.await_one_event("PodsRefused", said);

    limit.lift(&ns);
    plane.await_well();
    plane.await_one_event("PodsRefused", said);
}
