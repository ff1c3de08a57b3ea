//! What Kubernetes makes of the objects of a [`World`]: pods, endpoints, and the end of what is being deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use interlock_core::api::object::{ObjectKey, meta_str};
use interlock_core::reconcile::ObjectList;
use serde_json::{Value, json};

use super::world::{World, is_terminating};

impl World {
    /// Takes away what is being deleted.
    pub fn collect_garbage(&mut self) {
        self.objects.retain(|_, object| !is_terminating(object));
    }

    /// Lets all Deployments get their pods.
    pub fn settle_deployments(&mut self) {
        let keys: Vec<ObjectKey> =
            self.objects.keys().filter(|key| key.gvk.kind == "Deployment").cloned().collect();
        for key in keys {
            let mut object = Value::clone(&self.objects[&key]);
            let replicas = object["spec"]["replicas"].as_i64().unwrap_or(1);
            let status = json!({
                "observedGeneration": object["metadata"]["generation"],
                "replicas": replicas, "updatedReplicas": replicas,
                "availableReplicas": replicas, "readyReplicas": replicas,
            });
            if object["status"] != status {
                object["status"] = status;
                self.store(&key, object);
            }
        }
    }

    /// The pods of all Deployments, as far as their status has them.
    fn pods(&self) -> Vec<Value> {
        let deployments = self.objects.values().filter(|object| object["kind"] == "Deployment");
        let waits = self.mounts_since.and_then(|since| self.waiting_pod(&since.to_string()));
        deployments
            .flat_map(|deployment| {
                let name = meta_str(deployment, "name").unwrap().to_owned();
                let image = &deployment["spec"]["template"]["spec"]["containers"][0]["image"];
                let hash = image.as_str().unwrap_or("x").replace([':', '/', '.'], "");
                let count = deployment["status"]["availableReplicas"].as_i64().unwrap_or(0);
                let labels = deployment["spec"]["template"]["metadata"]["labels"].clone();
                (0..count).map(move |i| {
                    let mut labels = labels.clone();
                    labels["pod-template-hash"] = json!(hash);
                    json!({
                        "kind": "Pod",
                        "metadata": {
                            "name": format!("{name}-{hash}-{i}"), "labels": labels,
                            "ownerReferences": [{"kind": "ReplicaSet", "name": format!("{name}-{hash}")}],
                        },
                        "status": {
                            "phase": "Running", "podIP": format!("10.0.0.{i}"),
                            "conditions": [{"type": "Ready", "status": "True"}],
                        },
                    })
                })
            })
            .chain(waits)
            .collect()
    }

    fn waiting_pod(&self, since: &str) -> Option<Value> {
        let deployment = self.child("Deployment", "dataplane-edge-blue")?;
        Some(json!({
            "kind": "Pod",
            "metadata": {"name": "waits", "labels": deployment["spec"]["template"]["metadata"]["labels"]},
            "status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": since},
                {"type": "PodReadyToStartContainers", "status": "False"},
            ]},
        }))
    }

    /// What a list of the API server has.
    pub fn list(&self, list: &ObjectList) -> Vec<Arc<Value>> {
        let has = |labels: &Value, wanted: &BTreeMap<String, String>| {
            wanted.iter().all(|(name, value)| labels[name.as_str()] == value.as_str())
        };
        let pods = self.pods();
        match list.gvk.kind.as_str() {
            "Pod" => {
                let mut found = pods.into_iter().filter(|pod| has(&pod["metadata"]["labels"], &list.labels));
                found.by_ref().map(Arc::new).collect()
            }
            "EndpointSlice" => {
                let service = self.child("Service", &list.labels["kubernetes.io/service-name"]);
                let Some(service) = service else { return Vec::new() };
                let selector = service["spec"]["selector"].as_object().unwrap().clone();
                let wanted: BTreeMap<String, String> =
                    selector.into_iter().map(|(k, v)| (k, v.as_str().unwrap().to_owned())).collect();
                let behind = pods.iter().filter(|pod| has(&pod["metadata"]["labels"], &wanted));
                let endpoints: Vec<Value> = behind
                    .map(|pod| json!({"conditions": {"ready": true}, "targetRef": {"name": pod["metadata"]["name"]}}))
                    .collect();
                vec![Arc::new(json!({"endpoints": endpoints}))]
            }
            "Deployment" | "Service" | "ControllerRevision" => {
                let keys: BTreeSet<_> = self.objects.keys().chain(self.unseen.keys()).collect();
                let of_kind = keys.into_iter().filter(|key| key.gvk == list.gvk);
                let found = of_kind.filter_map(|key| self.view_of(key));
                let found = found.filter(|object| has(&object["metadata"]["labels"], &list.labels));
                found.map(|object| Arc::clone(&object.0)).collect()
            }
            other => panic!("nobody lists {other}"),
        }
    }
}
