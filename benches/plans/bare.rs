//! The writes that a plan comes to, by a client that looks at nothing.

use std::time::Instant;

use futures::{StreamExt as _, stream};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Cluster, block_on};
use crate::{AT_ONCE, Rates, instance, make, path, send};

/// What is written a second, as Interlock writes it.
pub fn rates(cluster: &Cluster, count: usize) -> Rates {
    let client = cluster.admin().kube();
    let spaces = ["made", "there"].map(|name| cluster.namespace(name));
    let [made, there] = spaces.each_ref().map(|space| space.name());
    let made = rate(&client, made, true, count);
    block_on(make(&client, there, count, instance));
    Rates { made, there: rate(&client, there, false, count) }
}

fn rate(client: &kube::Client, namespace: &str, makes: bool, count: usize) -> f64 {
    block_on(async {
        let begun = Instant::now();
        let all = (0..count).map(|number| writes(client, namespace, makes, number));
        stream::iter(all).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        count as f64 / begun.elapsed().as_secs_f64()
    })
}

/// The Instance where it is not there, the start of the run, what it makes, its end, an Event, and
/// the Instance as it is left.
async fn writes(client: &kube::Client, namespace: &str, makes: bool, number: usize) {
    let path = path(namespace);
    let object = instance(number);
    let name = object["metadata"]["name"].as_str().expect("a name");
    let (object_path, status) = (format!("{path}/{name}"), format!("{path}/{name}/status"));
    if makes {
        send(client, Method::POST, &path, &object).await;
    }
    let made = send(client, Method::PATCH, &status, &standing("IN_PROGRESS")).await;
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
    send(client, Method::PATCH, &object_path, &left).await;
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
