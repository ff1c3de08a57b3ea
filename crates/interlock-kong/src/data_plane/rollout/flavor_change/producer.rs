//! The configuration producer of a DataPlane, a Deployment such as that of Kong's ingress controller: stopped before
//! a promotion across dialects and started after it, so that it takes up the flavor of the promoted pods.

use interlock_core::api::meta;
use interlock_core::api::object::annotation;
use serde_json::{Value, json};

/// Annotation that `kubectl rollout restart` writes on a pod template.
const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// What the producer is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProducerState {
    /// It is left to people.
    NotGiven,
    /// It has pods, or shall have some.
    Running {
        /// Whether all of its pods are of its present template, and available.
        is_ready: bool,
        /// Whether its pods were started for another dialect.
        is_stale: bool,
    },
    /// It was scaled to 0 for this DataPlane, and has pods left.
    Stopping,
    /// It was scaled to 0 for this DataPlane, and has no pod left.
    Stopped,
    /// It was scaled to 0 for this other DataPlane.
    Taken(String),
    /// It was scaled to 0 by another client.
    Absent,
}

impl ProducerState {
    /// The state of a Deployment that serves the DataPlane `NAMESPACE/NAME`.
    pub fn of(deployment: &Value, data_plane: &str, is_stale: bool) -> Self {
        let number = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_i64);
        let wanted = number("/spec/replicas").unwrap_or(1);
        let status = |field: &str| number(&format!("/status/{field}")).unwrap_or_default();
        if wanted == 0 {
            return match stopped_for(deployment) {
                Some((by, _)) if by != data_plane => Self::Taken(by.to_owned()),
                Some(_) if status("replicas") == 0 && is_observed(deployment) => Self::Stopped,
                Some(_) => Self::Stopping,
                None => Self::Absent,
            };
        }
        let counts = ["replicas", "updatedReplicas", "availableReplicas"].map(status);
        let is_ready = is_observed(deployment) && counts.iter().all(|count| *count == wanted);
        Self::Running { is_ready, is_stale }
    }
}

/// The patch that stops a producer, and remembers for whom and from how many pods.
pub fn stop(deployment: &Value, data_plane: &str) -> Value {
    let replicas = deployment.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    json!({
        "metadata": {
            "resourceVersion": deployment["metadata"]["resourceVersion"],
            "annotations": {meta::STOPPED_FOR_PROMOTION: format!("{data_plane}:{replicas}")},
        },
        "spec": {"replicas": 0},
    })
}

/// The patch that starts a producer that was stopped, with as many pods as it had.
pub fn start(deployment: &Value, now: &str) -> Value {
    let mut patch = restart(deployment, now);
    patch["metadata"]["annotations"] = json!({meta::STOPPED_FOR_PROMOTION: null});
    patch["spec"]["replicas"] = json!(stopped_for(deployment).map_or(1, |(_, replicas)| replicas));
    patch
}

/// The patch that replaces the pods of a producer, as `kubectl rollout restart` does.
pub fn restart(deployment: &Value, now: &str) -> Value {
    json!({
        "metadata": {"resourceVersion": deployment["metadata"]["resourceVersion"]},
        "spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: now}}}},
    })
}

/// For which DataPlane a producer was stopped, and how many pods it had.
fn stopped_for(deployment: &Value) -> Option<(&str, i64)> {
    let (by, replicas) = annotation(deployment, meta::STOPPED_FOR_PROMOTION)?.rsplit_once(':')?;
    // Of what is no number, one pod is started.
    Some((by, replicas.parse().ok().filter(|replicas| *replicas > 0).unwrap_or(1)))
}

fn is_observed(deployment: &Value) -> bool {
    let number = |pointer: &str| deployment.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    number("/status/observedGeneration") >= number("/metadata/generation")
}
