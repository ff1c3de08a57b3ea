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

#[cfg(test)]
mod tests {
    use interlock_core::api::object::NamespacedName;
    use json_patch::PatchOperation;
    use rstest::rstest;
    use serde_json::{Value, json};

    use crate::data_plane::rollout::flavor_change::preview_producer;
    use crate::data_plane::rollout::flavor_change::producer::{ProducerState, restart, start, stop};

    const BY: &str = "interlock.dev/stopped-for-promotion";

    fn deployment(replicas: Value, pods: [i64; 3], observed: i64, stopped: Option<&str>) -> Value {
        json!({
            "metadata": {"generation": 4, "resourceVersion": "9", "annotations": {BY: stopped}},
            "spec": {"replicas": replicas},
            "status": {"observedGeneration": observed, "replicas": pods[0], "updatedReplicas": pods[1], "availableReplicas": pods[2]},
        })
    }

    #[rstest]
    #[case::ready(deployment(json!(2), [2, 2, 2], 4, None), ProducerState::Running { is_ready: true, is_stale: false })]
    #[case::one_by_default(deployment(json!(null), [1, 1, 1], 4, None), ProducerState::Running { is_ready: true, is_stale: false })]
    #[case::former_pods(deployment(json!(2), [3, 2, 2], 4, None), ProducerState::Running { is_ready: false, is_stale: false })]
    #[case::unavailable(deployment(json!(2), [2, 2, 1], 4, None), ProducerState::Running { is_ready: false, is_stale: false })]
    #[case::unobserved(deployment(json!(2), [2, 2, 2], 3, None), ProducerState::Running { is_ready: false, is_stale: false })]
    #[case::stopping(deployment(json!(0), [1, 0, 0], 4, Some("kong/edge:2")), ProducerState::Stopping)]
    #[case::stopping_unobserved(deployment(json!(0), [0, 0, 0], 3, Some("kong/edge:2")), ProducerState::Stopping)]
    #[case::stopped(deployment(json!(0), [0, 0, 0], 4, Some("kong/edge:2")), ProducerState::Stopped)]
    #[case::taken(deployment(json!(0), [0, 0, 0], 4, Some("kong/other:2")), ProducerState::Taken("kong/other".to_owned()))]
    #[case::absent(deployment(json!(0), [0, 0, 0], 4, None), ProducerState::Absent)]
    #[case::scaled_up_by_hand(deployment(json!(1), [1, 1, 1], 4, Some("kong/edge:2")), ProducerState::Running { is_ready: true, is_stale: false })]
    fn states(#[case] deployment: Value, #[case] state: ProducerState) {
        assert_eq!(ProducerState::of(&deployment, "kong/edge", false), state);
    }

    #[test]
    fn a_stopped_producer_is_started_as_it_was() {
        let mut producer = deployment(json!(3), [3, 3, 3], 4, None);
        let patch = stop(&producer, "kong/edge");
        json_patch::merge(&mut producer, &patch);
        assert_eq!(
            (&producer["spec"]["replicas"], &producer["metadata"]["annotations"][BY]),
            (&json!(0), &json!("kong/edge:3"))
        );
        let patch = start(&producer, "2026-01-02T03:04:05Z");
        json_patch::merge(&mut producer, &patch);
        assert_eq!(
            (&producer["spec"]["replicas"], producer["metadata"]["annotations"].get(BY)),
            (&json!(3), None)
        );
        let restarted = json!("2026-01-02T03:04:05Z");
        let template = "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt";
        assert_eq!(producer.pointer(template), Some(&restarted));
        let again = restart(&producer, "later");
        assert_eq!((again.pointer(template), again["spec"].get("replicas")), (Some(&json!("later")), None));
    }

    #[rstest]
    #[case("kong/edge:x")]
    #[case("kong/edge:-2")]
    #[case("kong/edge:0")]
    fn what_is_no_number_starts_one_pod(#[case] annotation: &str) {
        let producer = deployment(json!(0), [0, 0, 0], 4, Some(annotation));
        assert_eq!(start(&producer, "now")["spec"]["replicas"], 1);
    }

    fn controller(container: Value) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "kic", "namespace": "kong", "uid": "u", "resourceVersion": "9", "annotations": {"a": "b"}},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "kic"}}, "template": {
                "metadata": {"labels": {"app": "kic"}}, "spec": {"containers": [{"name": "sidecar"}, container]}}},
            "status": {"replicas": 3},
        })
    }

    fn copied(container: Value) -> Value {
        let (producer, plane) = (NamespacedName::new("kong", "kic"), NamespacedName::new("kong", "edge"));
        let mut copy = controller(container);
        let command = preview_producer::command(&copy, &producer, &plane);
        let patch = command.split('\'').nth(1).unwrap();
        assert!(!patch.contains("s3cret"), "{patch}");
        let operations: Vec<PatchOperation> = serde_json::from_str(patch).unwrap();
        json_patch::patch(&mut copy, &operations).unwrap();
        copy
    }

    fn env(service: &str, election: &str, update: &str) -> Value {
        json!([
            {"name": "CONTROLLER_KONG_ADMIN_SVC", "value": service},
            {"name": "CONTROLLER_ELECTION_ID", "value": election},
            {"name": "CONTROLLER_UPDATE_STATUS", "value": update},
        ])
    }

    #[rstest]
    #[case::variables(
        json!({"name": "kic", "env": [{"name": "P", "value": "s3cret"}, {"name": "CONTROLLER_KONG_ADMIN_SVC", "value": "kong/live"}]}),
        json!({"name": "kic", "env": [{"name": "P", "value": "s3cret"},
            {"name": "CONTROLLER_KONG_ADMIN_SVC", "value": "kong/dataplane-admin-edge-preview"},
            {"name": "CONTROLLER_ELECTION_ID", "value": "dataplane-admin-edge-preview"},
            {"name": "CONTROLLER_UPDATE_STATUS", "value": "false"}]})
    )]
    #[case::flags(
        json!({"name": "kic", "args": ["--kong-admin-svc=kong/live", "--x", "--election-id", "kic", "--update-status=true"]}),
        json!({"name": "kic", "env": [], "args": ["--kong-admin-svc=kong/dataplane-admin-edge-preview", "--x", "--election-id",
            "dataplane-admin-edge-preview", "--update-status=false"]})
    )]
    #[case::by_its_name(
        json!({"name": "ingress-controller"}),
        json!({"name": "ingress-controller", "env": env("kong/dataplane-admin-edge-preview", "dataplane-admin-edge-preview", "false")})
    )]
    fn the_copy_sees_the_preview_alone(#[case] container: Value, #[case] wanted: Value) {
        let copy = copied(container);
        let labels = json!({"interlock.dev/preview-producer-of": "edge"});
        assert_eq!(copy["metadata"], json!({"name": "kic-preview", "namespace": "kong", "labels": labels}));
        assert_eq!(
            (&copy["spec"]["selector"]["matchLabels"], &copy["spec"]["template"]["metadata"]["labels"]),
            (&labels, &labels)
        );
        assert_eq!(copy["spec"]["template"]["spec"]["containers"][1], wanted);
        assert!(copy["status"].is_null());
    }
}
