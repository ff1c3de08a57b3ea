//! Health of applied objects, by kind (KUDO `pkg/kubernetes/status/health.go`); objects of kinds not named here, which
//! are healthy for KUDO as soon as they exist, by their conditions.

mod conditions;
pub mod instance;
mod outcome;
pub mod pods;

use serde_json::Value;

pub use self::outcome::Health;
use self::outcome::{condition, full_name, holds, is_observed, name, number};
use crate::api::object::{Gvk, annotation};

/// The health of one object.
pub fn of(object: &Value) -> Health {
    let Some(gvk) = Gvk::of(object) else { return Health::Healthy };
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("apps", "Deployment") => deployment(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("batch", "Job") => job(object),
        ("", "Service") => service(object),
        ("", "Pod") => pod(object),
        ("", "PersistentVolumeClaim") => claim(object),
        ("", "Namespace") => namespace(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd(object),
        (crate::api::meta::KUDO_GROUP, "Instance") => instance::health(object),
        _ => conditions::health(object),
    }
}

/// The rules of `kubectl rollout status`. For KUDO a Deployment that has exceeded its progress deadline goes on
/// being waited for, so its plan never ends. One that lacks pods is waited for: they may be accepted later.
fn deployment(object: &Value) -> Health {
    let name = name(object);
    let refused = pods::reported(object);
    let replicas = number(&object["status"]["replicas"]);
    let lacks_pods = refused.is_some() || replicas < object["spec"]["replicas"].as_i64().unwrap_or(1);
    let exceeded =
        condition(object, "Progressing").is_some_and(|c| c["reason"] == "ProgressDeadlineExceeded");
    if is_observed(object) && exceeded && !lacks_pods {
        return Health::Failed(format!("deployment \"{name}\" exceeded its progress deadline"));
    }
    match deployment_waits(object, name) {
        Some(why) => {
            let refused = refused.as_ref().map_or_else(String::new, pods::told);
            Health::Waiting(format!("deployment \"{name}\" is not healthy: {why}{refused}"))
        }
        None => Health::Healthy,
    }
}

fn deployment_waits(object: &Value, name: &str) -> Option<String> {
    let (spec, status) = (&object["spec"], &object["status"]);
    if !is_observed(object) {
        return Some("Waiting for deployment spec update to be observed...".to_owned());
    }
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let updated = number(&status["updatedReplicas"]);
    let replicas = number(&status["replicas"]);
    let available = number(&status["availableReplicas"]);
    let rest = if updated < wanted {
        format!("{updated} out of {wanted} new replicas have been updated...")
    } else if replicas > updated {
        format!("{} old replicas are pending termination...", replicas - updated)
    } else if available < updated {
        format!("{available} of {updated} updated replicas are available...")
    } else {
        return None;
    };
    Some(format!("Waiting for deployment \"{name}\" rollout to finish: {rest}"))
}

/// The rules of `kubectl rollout status`; with `OnDelete`, which that does not support, every pod that is there has
/// to be available.
fn daemon_set(object: &Value) -> Health {
    let (status, name) = (&object["status"], name(object));
    let wanted = number(&status["desiredNumberScheduled"]);
    let updated = number(&status["updatedNumberScheduled"]);
    let available = number(&status["numberAvailable"]);
    let on_delete = object["spec"]["updateStrategy"]["type"] == "OnDelete";
    let why = if !is_observed(object) {
        "Waiting for daemon set spec update to be observed...".to_owned()
    } else if updated < wanted && !on_delete {
        format!(
            "Waiting for daemon set \"{name}\" rollout to finish: {updated} out of {wanted} new pods have been updated..."
        )
    } else if available < wanted {
        format!(
            "Waiting for daemon set \"{name}\" rollout to finish: {available} of {wanted} updated pods are available..."
        )
    } else {
        return Health::Healthy;
    };
    Health::Waiting(format!("daemon set \"{name}\" is not healthy: {why}"))
}

/// A claim that is pending is waited for only while a volume is made for it: one whose storage class waits for the
/// first consumer stays pending until a pod uses it, and a later step may bring that.
fn claim(object: &Value) -> Health {
    const PROVISIONER: &str = "volume.kubernetes.io/storage-provisioner";
    let name = full_name(object);
    match object["status"]["phase"].as_str() {
        Some("Lost") => Health::Failed(format!("persistent volume claim {name} has lost its volume")),
        Some("Pending") => Health::waiting_unless(annotation(object, PROVISIONER).is_none(), || {
            format!("persistent volume claim {name} is not bound yet")
        }),
        _ => Health::Healthy,
    }
}

fn stateful_set(object: &Value) -> Health {
    match stateful_set_waits(object) {
        Some(why) => Health::Waiting(format!("statefulset \"{}\" is not healthy: {why}", name(object))),
        None => Health::Healthy,
    }
}

/// The rules of `kubectl rollout status`, which does not support `OnDelete`: there a pod is updated
/// only once a user deletes it, so readiness of all pods is enough.
fn stateful_set_waits(object: &Value) -> Option<String> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let observed = number(&status["observedGeneration"]);
    if observed == 0 || number(&object["metadata"]["generation"]) > observed {
        return Some("Waiting for statefulset spec update to be observed...".to_owned());
    }
    let wanted = spec["replicas"].as_i64().unwrap_or(1);
    let ready = number(&status["readyReplicas"]);
    if ready < wanted {
        return Some(format!("Waiting for {} pods to be ready...", wanted - ready));
    }
    let strategy = &spec["updateStrategy"];
    if strategy["type"] == "OnDelete" {
        return None;
    }
    let updated = number(&status["updatedReplicas"]);
    if strategy["rollingUpdate"].is_object() {
        let goal = wanted - number(&strategy["rollingUpdate"]["partition"]);
        return (updated < goal).then(|| {
            format!("Waiting for partitioned roll out to finish: {updated} out of {goal} new pods have been updated...")
        });
    }
    let revision = &status["updateRevision"];
    (*revision != status["currentRevision"]).then(|| {
        format!(
            "waiting for statefulset rolling update to complete {updated} pods at revision {}...",
            revision.as_str().unwrap_or_default()
        )
    })
}

/// KUDO checks only `succeeded == 1`, so a Job of several completions never becomes healthy there.
fn job(object: &Value) -> Health {
    let (spec, status) = (&object["spec"], &object["status"]);
    let name = name(object);
    let completions = spec["completions"].as_i64();
    let parallel = spec["parallelism"].as_i64().unwrap_or(1) > 1;
    let enough = number(&status["succeeded"]) >= completions.unwrap_or(1).max(1);
    if holds(object, "Complete") || enough && (completions.is_some() || !parallel) {
        return Health::Healthy;
    }
    if holds(object, "Failed") {
        let why = condition(object, "Failed").and_then(|c| c["message"].as_str()).unwrap_or_default();
        return Health::Failed(format!("job \"{name}\" has failed terminally: {why}"));
    }
    Health::Waiting(format!("job \"{name}\" still running or failed"))
}

fn service(object: &Value) -> Health {
    let (spec, status) = (&object["spec"], &object["status"]);
    let name = full_name(object);
    let type_ = spec["type"].as_str().unwrap_or("ClusterIP");
    if type_ == "ExternalName" {
        return Health::Healthy;
    }
    if spec["clusterIP"].as_str().unwrap_or_default().is_empty() {
        return Health::Waiting(format!("service {name} does not have cluster IP address"));
    }
    let reachable = spec["externalIPs"].as_array().is_some_and(|ips| !ips.is_empty())
        || status["loadBalancer"]["ingress"].is_array();
    Health::waiting_unless(type_ != "LoadBalancer" || reachable, || {
        format!("service {name} does not have load balancer ingress IP address")
    })
}

fn pod(object: &Value) -> Health {
    let phase = object["status"]["phase"].as_str().unwrap_or_default();
    Health::waiting_unless(phase == "Running" && holds(object, "Ready"), || {
        format!("pod {} is not running yet: {phase}", full_name(object))
    })
}

fn namespace(object: &Value) -> Health {
    let phase = object["status"]["phase"].as_str().unwrap_or_default();
    Health::waiting_unless(phase == "Active", || format!("namespace {} is not active: {phase}", name(object)))
}

fn crd(object: &Value) -> Health {
    Health::waiting_unless(holds(object, "Established"), || {
        format!("CRD {} is not healthy: it is not established", name(object))
    })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn object(api_version: &str, kind: &str, rest: Value) -> Value {
        let mut object = json!({"apiVersion": api_version, "kind": kind,
            "metadata": {"name": "x", "namespace": "ns", "generation": 2}});
        object.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        object
    }

    pub(super) fn told(health: Health) -> String {
        match health {
            Health::Healthy => "healthy".to_owned(),
            Health::Waiting(why) => why,
            Health::Failed(why) => format!("FAILED {why}"),
        }
    }

    #[rstest]
    #[case::not_observed(json!({"replicas": 1}), json!({"observedGeneration": 1}), "deployment \"x\" is not healthy: Waiting for deployment spec update to be observed...")]
    #[case::updating(json!({"replicas": 3}), json!({"observedGeneration": 2, "updatedReplicas": 1}), "deployment \"x\" is not healthy: Waiting for deployment \"x\" rollout to finish: 1 out of 3 new replicas have been updated...")]
    #[case::old_ones(json!({"replicas": 1}), json!({"observedGeneration": 2, "updatedReplicas": 1, "replicas": 3}), "deployment \"x\" is not healthy: Waiting for deployment \"x\" rollout to finish: 2 old replicas are pending termination...")]
    #[case::unavailable(json!({"replicas": 1}), json!({"observedGeneration": 2, "updatedReplicas": 1, "replicas": 1}), "deployment \"x\" is not healthy: Waiting for deployment \"x\" rollout to finish: 0 of 1 updated replicas are available...")]
    #[case::deadline_without_pods(json!({"replicas": 2}), json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]}), "deployment \"x\" is not healthy: Waiting for deployment \"x\" rollout to finish: 1 out of 2 new replicas have been updated...")]
    #[case::deadline(json!({"replicas": 1}), json!({"observedGeneration": 2, "replicas": 1, "conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]}), "FAILED deployment \"x\" exceeded its progress deadline")]
    #[case::deadline_of_before(json!({"replicas": 1}), json!({"observedGeneration": 1, "conditions": [{"type": "Progressing", "reason": "ProgressDeadlineExceeded"}]}), "deployment \"x\" is not healthy: Waiting for deployment spec update to be observed...")]
    #[case::refused(json!({"replicas": 1}), json!({"observedGeneration": 2, "conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "pods \"x-\" is forbidden: exceeded quota: q, requested: pods=1"}]}), "deployment \"x\" is not healthy: Waiting for deployment \"x\" rollout to finish: 0 out of 1 new replicas have been updated...; its pods are refused: pods \"x-\" is forbidden: exceeded quota: q, requested: pods=1")]
    #[case::done(json!({"replicas": 1}), json!({"observedGeneration": 2, "updatedReplicas": 1, "replicas": 1, "availableReplicas": 1}), "healthy")]
    #[case::none_wanted(json!({"replicas": 0}), json!({"observedGeneration": 2}), "healthy")]
    fn deployments(#[case] spec: Value, #[case] status: Value, #[case] expected: &str) {
        let object = object("apps/v1", "Deployment", json!({"spec": spec, "status": status}));
        assert_eq!(told(of(&object)), expected);
    }

    #[rstest]
    #[case::never_observed(json!({}), json!({}), "statefulset \"x\" is not healthy: Waiting for statefulset spec update to be observed...")]
    #[case::ready(json!({"replicas": 3}), json!({"observedGeneration": 2, "readyReplicas": 1}), "statefulset \"x\" is not healthy: Waiting for 2 pods to be ready...")]
    #[case::partition(json!({"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}), json!({"observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": 1}), "statefulset \"x\" is not healthy: Waiting for partitioned roll out to finish: 1 out of 2 new pods have been updated...")]
    #[case::partition_done(json!({"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}}), json!({"observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": 2}), "healthy")]
    #[case::revision(json!({"replicas": 1, "updateStrategy": {"type": "RollingUpdate"}}), json!({"observedGeneration": 2, "readyReplicas": 1, "updateRevision": "b", "currentRevision": "a"}), "statefulset \"x\" is not healthy: waiting for statefulset rolling update to complete 0 pods at revision b...")]
    #[case::same_revision(json!({"replicas": 1, "updateStrategy": {"type": "RollingUpdate"}}), json!({"observedGeneration": 2, "readyReplicas": 1, "updateRevision": "b", "currentRevision": "b"}), "healthy")]
    #[case::on_delete(json!({"replicas": 1, "updateStrategy": {"type": "OnDelete"}}), json!({"observedGeneration": 2, "readyReplicas": 1, "updateRevision": "b", "currentRevision": "a"}), "healthy")]
    fn stateful_sets(#[case] spec: Value, #[case] status: Value, #[case] expected: &str) {
        let object = object("apps/v1", "StatefulSet", json!({"spec": spec, "status": status}));
        assert_eq!(told(of(&object)), expected);
    }

    #[rstest]
    #[case::not_observed(json!({}), json!({"observedGeneration": 1}), "daemon set \"x\" is not healthy: Waiting for daemon set spec update to be observed...")]
    #[case::updating(json!({}), json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 1, "numberAvailable": 3}), "daemon set \"x\" is not healthy: Waiting for daemon set \"x\" rollout to finish: 1 out of 3 new pods have been updated...")]
    #[case::unavailable(json!({}), json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 2}), "daemon set \"x\" is not healthy: Waiting for daemon set \"x\" rollout to finish: 2 of 3 updated pods are available...")]
    #[case::on_delete(json!({"updateStrategy": {"type": "OnDelete"}}), json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "numberAvailable": 3}), "healthy")]
    #[case::no_node(json!({}), json!({"observedGeneration": 2}), "healthy")]
    fn daemon_sets(#[case] spec: Value, #[case] status: Value, #[case] expected: &str) {
        let object = object("apps/v1", "DaemonSet", json!({"spec": spec, "status": status}));
        assert_eq!(told(of(&object)), expected);
    }

    #[rstest]
    #[case::bound(json!({}), "Bound", "healthy")]
    #[case::waits_for_its_first_consumer(json!({}), "Pending", "healthy")]
    #[case::provisioning(json!({"volume.kubernetes.io/storage-provisioner": "csi"}), "Pending", "persistent volume claim ns/x is not bound yet")]
    #[case::lost(json!({}), "Lost", "FAILED persistent volume claim ns/x has lost its volume")]
    fn claims(#[case] annotations: Value, #[case] phase: &str, #[case] expected: &str) {
        let mut object = object("v1", "PersistentVolumeClaim", json!({"status": {"phase": phase}}));
        object["metadata"]["annotations"] = annotations;
        assert_eq!(told(of(&object)), expected);
    }

    #[rstest]
    #[case::running(json!({"completions": 1}), json!({"active": 1}), "job \"x\" still running or failed")]
    #[case::one_of_one(json!({"completions": 1, "parallelism": 1}), json!({"succeeded": 1}), "healthy")]
    #[case::one_of_three(json!({"completions": 3}), json!({"succeeded": 1}), "job \"x\" still running or failed")]
    #[case::three_of_three(json!({"completions": 3}), json!({"succeeded": 3}), "healthy")]
    #[case::work_queue(json!({"parallelism": 3}), json!({"succeeded": 1}), "job \"x\" still running or failed")]
    #[case::work_queue_done(json!({"parallelism": 3}), json!({"succeeded": 3, "conditions": [{"type": "Complete", "status": "True"}]}), "healthy")]
    #[case::failed(json!({"completions": 1}), json!({"conditions": [{"type": "Failed", "status": "True", "message": "Job has reached the specified backoff limit"}]}), "FAILED job \"x\" has failed terminally: Job has reached the specified backoff limit")]
    fn jobs(#[case] spec: Value, #[case] status: Value, #[case] expected: &str) {
        assert_eq!(told(of(&object("batch/v1", "Job", json!({"spec": spec, "status": status})))), expected);
    }

    #[rstest]
    #[case::external(json!({"type": "ExternalName"}), json!({}), "healthy")]
    #[case::no_address(json!({"type": "ClusterIP"}), json!({}), "service ns/x does not have cluster IP address")]
    #[case::headless(json!({"clusterIP": "None"}), json!({}), "healthy")]
    #[case::balancer(json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"}), json!({}), "service ns/x does not have load balancer ingress IP address")]
    #[case::balancer_up(json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"}), json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}), "healthy")]
    #[case::balancer_external(json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1", "externalIPs": ["1.2.3.4"]}), json!({}), "healthy")]
    fn services(#[case] spec: Value, #[case] status: Value, #[case] expected: &str) {
        assert_eq!(told(of(&object("v1", "Service", json!({"spec": spec, "status": status})))), expected);
    }

    #[rstest]
    #[case("v1", "Pod", json!({"phase": "Pending"}), "pod ns/x is not running yet: Pending")]
    #[case("v1", "Pod", json!({"phase": "Running"}), "pod ns/x is not running yet: Running")]
    #[case("v1", "Pod", json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}), "healthy")]
    #[case("v1", "Pod", json!({"phase": "Succeeded"}), "pod ns/x is not running yet: Succeeded")]
    #[case("v1", "Namespace", json!({"phase": "Terminating"}), "namespace x is not active: Terminating")]
    #[case("v1", "Namespace", json!({"phase": "Active"}), "healthy")]
    #[case("apiextensions.k8s.io/v1", "CustomResourceDefinition", json!({}), "CRD x is not healthy: it is not established")]
    #[case("apiextensions.k8s.io/v1", "CustomResourceDefinition", json!({"conditions": [{"type": "Established", "status": "True"}]}), "healthy")]
    #[case("v1", "ConfigMap", json!({}), "healthy")]
    fn others(#[case] version: &str, #[case] kind: &str, #[case] status: Value, #[case] expected: &str) {
        assert_eq!(told(of(&object(version, kind, json!({"status": status})))), expected);
    }
}
