//! Instances at rest, as they are after their last plan, made without the webhook.

use std::collections::BTreeMap;

use futures::{StreamExt as _, stream};
use http::Method;
use interlock_core::api::stamp::{Applied, Envelope, KeptSpec, VersionRef};
use interlock_kudo::instance::change::baseline::Baseline;
use serde_json::{Value, json};

use crate::requests::send;
use crate::support::Client;

/// Instances of one namespace.
const EACH: usize = 500;
/// Requests at once.
const AT_ONCE: usize = 32;
const PACKAGE: &str = "kafka-1.3.3";

/// Makes that many.
pub async fn make(admin: &Client, instances: usize) {
    let client = admin.kube();
    let namespaces = instances.div_ceil(EACH);
    for number in 0..namespaces {
        let namespace = namespace(number);
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace.as_str()}});
        send(&client, Method::POST, "/api/v1/namespaces", &object).await;
        let path = format!("/apis/kudo.dev/v1beta1/namespaces/{namespace}/operatorversions");
        send(&client, Method::POST, &path, &package()).await;
    }
    let all = (0..instances).map(|number| {
        let (client, namespace) = (&client, namespace(number / EACH));
        async move {
            let path = format!("/apis/kudo.dev/v1beta1/namespaces/{namespace}/instances");
            let mut made = send(client, Method::POST, &path, &instance(&namespace, number)).await;
            made["status"] = status(&applied(&namespace));
            send(client, Method::PUT, &format!("{path}/{}/status", name(number)), &made).await;
        }
    });
    stream::iter(all).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
}

fn namespace(number: usize) -> String {
    format!("population-{number}")
}

fn name(number: usize) -> String {
    format!("kafka-{number}")
}

fn package() -> Value {
    let plan = json!({"strategy": "serial", "phases": [
        {"name": "deploy-kafka", "strategy": "serial", "steps": [{"name": "deploy", "tasks": ["deploy"]}]}]});
    json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "OperatorVersion", "metadata": {"name": PACKAGE},
        "spec": {
            "operator": {"name": "kafka", "kind": "Operator"}, "version": "1.3.3",
            "plans": {"deploy": plan},
            "tasks": [{"name": "deploy", "kind": "Apply", "spec": {"resources": []}}],
            "templates": {}, "parameters": parameters().map(|(name, value)| json!({"name": name, "default": value})),
        },
    })
}

fn parameters() -> [(&'static str, &'static str); 12] {
    [
        ("BROKER_COUNT", "3"),
        ("BROKER_CPUS", "500m"),
        ("BROKER_CPUS_LIMIT", "2000m"),
        ("BROKER_MEM", "2048Mi"),
        ("BROKER_MEM_LIMIT", "4096Mi"),
        ("DISK_SIZE", "5Gi"),
        ("STORAGE_CLASS", "standard"),
        ("KAFKA_ZOOKEEPER_URI", "zookeeper-instance-zookeeper-0.zookeeper-instance-hs:2181"),
        ("LOG_RETENTION_HOURS", "168"),
        ("NUM_NETWORK_THREADS", "3"),
        ("NUM_IO_THREADS", "8"),
        ("METRICS_ENABLED", "true"),
    ]
}

fn applied(namespace: &str) -> Applied<'static> {
    Applied {
        operator_version: VersionRef { name: PACKAGE.into(), namespace: namespace.to_owned().into() },
        parameters: parameters().into_iter().map(|(k, v)| (k.into(), v.into())).collect(),
    }
}

fn instance(namespace: &str, number: usize) -> Value {
    let applied = applied(namespace);
    let hash = applied.hash();
    let stamp = Envelope {
        hash,
        kept: KeptSpec::Inline { spec: applied.clone() },
        previous: None,
        uid: None,
        generation: Some(1),
    };
    json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
        "metadata": {
            "name": name(number), "labels": {"kudo.dev/operator": "kafka"},
            "annotations": {"interlock.dev/last-applied-spec": stamp.to_json()},
        },
        "spec": {"operatorVersion": {"name": PACKAGE}, "parameters": BTreeMap::from(parameters())},
    })
}

fn status(applied: &Applied<'_>) -> Value {
    let condition = |type_: &str, status: &str, message: String| {
        json!({"type": type_, "status": status, "reason": "Settled", "message": message,
               "lastTransitionTime": "2026-01-02T03:04:05Z"})
    };
    json!({
        "planStatus": {"deploy": {
            "name": "deploy", "status": "COMPLETE", "uid": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
            "lastUpdatedTimestamp": "2026-01-02T03:04:05Z",
            "phases": [{"name": "deploy-kafka", "status": "COMPLETE",
                        "steps": [{"name": "deploy", "status": "COMPLETE"}]}],
        }},
        "observedGeneration": 1,
        "lastApplied": Baseline::new(applied, BTreeMap::new()),
        "conditions": [condition("Ready", "True", String::new())],
    })
}
