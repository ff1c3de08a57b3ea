//! The writes that a plan comes to, by a client that looks at nothing.

use std::time::Instant;

use futures::{StreamExt as _, stream};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Cluster, block_on};
use crate::{AT_ONCE, instance, path, send};

/// How many Instances a second are written, as Interlock writes them.
pub fn rate(cluster: &Cluster, count: usize) -> f64 {
    let namespace = cluster.namespace("bare");
    let (client, name) = (cluster.admin().kube(), namespace.name().to_owned());
    block_on(async move {
        let begun = Instant::now();
        let all = (0..count).map(|number| writes(&client, &name, number));
        stream::iter(all).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        count as f64 / begun.elapsed().as_secs_f64()
    })
}

/// The Instance, the start of the run, what it makes, its end, an Event, and the Instance as it is
/// left.
async fn writes(client: &kube::Client, namespace: &str, number: usize) {
    let path = path(namespace);
    let made = send(client, Method::POST, &path, &instance(number)).await;
    let name = made["metadata"]["name"].as_str().expect("a name").to_owned();
    let (object, status) = (format!("{path}/{name}"), format!("{path}/{name}/status"));
    send(client, Method::PATCH, &status, &standing("IN_PROGRESS")).await;
    for phase in ["one", "two", "three"] {
        let child = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": format!("{name}-{phase}"),
                "labels": {"heritage": "kudo", "kudo.dev/operator": "three", "kudo.dev/instance": name},
                "annotations": {
                    "kudo.dev/plan": "deploy", "kudo.dev/phase": phase, "kudo.dev/step": phase,
                    "kudo.dev/operator-version": "0.1.0",
                },
                "ownerReferences": [{
                    "apiVersion": made["apiVersion"], "kind": "Instance", "name": name,
                    "uid": made["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
                }],
            },
        });
        send(client, Method::POST, &format!("/api/v1/namespaces/{namespace}/configmaps"), &child).await;
    }
    send(client, Method::PATCH, &status, &standing("COMPLETE")).await;
    let history = json!([{"plan": "deploy", "result": "COMPLETE"}]).to_string();
    let left = json!({"metadata": {"annotations": {"plan.interlock.dev/history": history}}});
    send(client, Method::PATCH, &object, &left).await;
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"generateName": format!("{name}-")},
        "eventTime": "2026-01-02T03:04:05.000000Z", "type": "Normal", "action": "Plan",
        "reason": "PlanFinished", "reportingController": "bare", "reportingInstance": "bare",
        "note": "Execution of plan deploy finished with status COMPLETE",
        "regarding": {"apiVersion": made["apiVersion"], "kind": "Instance", "name": name, "namespace": namespace},
    });
    send(client, Method::POST, &format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"), &event)
        .await;
}

fn standing(status: &str) -> Value {
    let phases = ["one", "two", "three"]
        .map(|name| json!({"name": name, "status": status, "steps": [{"name": name, "status": status}]}));
    json!({"status": {"planStatus": {"deploy": {
        "name": "deploy", "status": status, "uid": "7c9e6679-7425-40de-944b-e07fc1f90ae7", "phases": phases,
    }}}})
}
