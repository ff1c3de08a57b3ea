//! Deployments, DaemonSets, ReplicaSets and StatefulSets before `apps/v1`: a missing selector was taken from the
//! labels of the template, and some defaults were others (pkg/apis/apps and extensions, `defaults.go`, of
//! Kubernetes 1.15).

use serde_json::{Map, Value, json};

use super::fields;

/// Seconds that never pass: the API server's own way to have no deadline.
const NO_DEADLINE: i32 = i32::MAX;

/// Writes out the selector, which `apps/v1` requires.
pub(super) fn selector(object: &mut Value) {
    with_spec(object, |_| ());
}

/// Rollouts had no deadline, replaced one pod at a time, and kept every ReplicaSet.
pub(super) fn extensions_deployment(object: &mut Value) {
    with_spec(object, |spec| {
        one_at_a_time(spec);
        fields::default(spec, "progressDeadlineSeconds", NO_DEADLINE);
        fields::default(spec, "revisionHistoryLimit", i32::MAX);
        spec.remove("rollbackTo");
    });
}

/// Two ReplicaSets were kept.
pub(super) fn apps_v1beta1_deployment(object: &mut Value) {
    with_spec(object, |spec| {
        fields::default(spec, "revisionHistoryLimit", 2);
        spec.remove("rollbackTo");
    });
}

/// The update strategy was `OnDelete`.
pub(super) fn extensions_daemon_set(object: &mut Value) {
    with_spec(object, |spec| {
        on_delete(spec);
        spec.remove("templateGeneration");
    });
}

/// The update strategy was `OnDelete`.
pub(super) fn apps_v1beta1_stateful_set(object: &mut Value) {
    with_spec(object, on_delete);
}

fn with_spec(object: &mut Value, convert: impl FnOnce(&mut Map<String, Value>)) {
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    let Some(spec) = fields::spec(object) else { return };
    let selected =
        spec.get("selector").and_then(Value::as_object).is_some_and(|selector| !selector.is_empty());
    if !selected && labels.is_object() {
        spec.insert("selector".to_owned(), json!({"matchLabels": labels}));
    }
    convert(spec);
}

fn on_delete(spec: &mut Map<String, Value>) {
    if let Some(strategy) = fields::object(spec, "updateStrategy") {
        fields::default(strategy, "type", "OnDelete");
    }
}

fn one_at_a_time(spec: &mut Map<String, Value>) {
    let Some(strategy) = fields::object(spec, "strategy") else { return };
    fields::default(strategy, "type", "RollingUpdate");
    if strategy.get("type").is_some_and(|type_| type_ == "RollingUpdate")
        && let Some(rolling) = fields::object(strategy, "rollingUpdate")
    {
        fields::default(rolling, "maxSurge", 1);
        fields::default(rolling, "maxUnavailable", 1);
    }
}
