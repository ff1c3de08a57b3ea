//! Health of an object by its conditions, for kinds without a rule of their own, as custom resources are: the
//! generic rule of kstatus (`cli-utils/pkg/kstatus/status/generic.go`), or the condition that the object names.

use serde_json::Value;

use super::outcome::{Health, condition, full_name, number};
use crate::api::meta;
use crate::api::object::annotation;

/// The health of the object. One that has no status is healthy: not every kind has a controller.
pub(super) fn health(object: &Value) -> Health {
    let name = || {
        let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
        format!("{kind} {}", full_name(object))
    };
    let observed = &object["status"]["observedGeneration"];
    if observed.is_i64() && number(observed) < number(&object["metadata"]["generation"]) {
        return Health::Waiting(format!("{} is not healthy: its controller has not observed it yet", name()));
    }
    if let Some(named) = annotation(object, meta::READY_CONDITION) {
        return by_name(object, named, name);
    }
    for (type_, healthy) in [("Stalled", "False"), ("Reconciling", "False"), ("Ready", "True")] {
        let Some(found) = condition(object, type_).filter(|found| found["status"] != healthy) else {
            continue;
        };
        let why = told(type_, found, name);
        return match type_ {
            "Stalled" if found["status"] == "True" => Health::Failed(why),
            _ => Health::Waiting(why),
        };
    }
    Health::Healthy
}

/// Health by the one condition that the object names; it has to be there.
fn by_name(object: &Value, type_: &str, name: impl Fn() -> String) -> Health {
    match condition(object, type_) {
        Some(found) if found["status"] == "True" => Health::Healthy,
        Some(found) => Health::Waiting(told(type_, found, name)),
        None => Health::Waiting(format!(
            "{} is not healthy: it has no condition {type_}, which its annotation {} names",
            name(),
            meta::READY_CONDITION
        )),
    }
}

fn told(type_: &str, found: &Value, name: impl Fn() -> String) -> String {
    let text = |field: &str| found[field].as_str().unwrap_or_default();
    let why = [text("reason"), text("message")].into_iter().filter(|text| !text.is_empty());
    let why = why.collect::<Vec<_>>().join(": ");
    let why = if why.is_empty() { why } else { format!(" ({why})") };
    format!("{} is not healthy: {type_} is {}{why}", name(), text("status"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::health::of;
    use crate::health::tests::told;

    fn status(conditions: Value) -> Value {
        json!({"observedGeneration": 2, "conditions": conditions})
    }

    #[rstest]
    #[case::no_controller(json!(null), "healthy")]
    #[case::not_observed(json!({"observedGeneration": 1}), "kafka ns/x is not healthy: its controller has not observed it yet")]
    #[case::observed(json!({"observedGeneration": 2}), "healthy")]
    #[case::ready(status(json!([{"type": "Ready", "status": "True"}])), "healthy")]
    #[case::not_ready(status(json!([{"type": "Ready", "status": "False", "reason": "Creating", "message": "2 of 3 brokers"}])), "kafka ns/x is not healthy: Ready is False (Creating: 2 of 3 brokers)")]
    #[case::unknown(status(json!([{"type": "Ready", "status": "Unknown"}])), "kafka ns/x is not healthy: Ready is Unknown")]
    #[case::reconciling(status(json!([{"type": "Reconciling", "status": "True", "reason": "Rolling"}, {"type": "Ready", "status": "True"}])), "kafka ns/x is not healthy: Reconciling is True (Rolling)")]
    #[case::stalled(status(json!([{"type": "Stalled", "status": "True", "message": "no quota"}])), "FAILED kafka ns/x is not healthy: Stalled is True (no quota)")]
    #[case::another_condition(status(json!([{"type": "Available", "status": "False"}])), "healthy")]
    fn by_kstatus(#[case] status: Value, #[case] expected: &str) {
        assert_eq!(told(of(&object(json!({}), status))), expected);
    }

    #[rstest]
    #[case::holds(status(json!([{"type": "Available", "status": "True"}, {"type": "Ready", "status": "False"}])), "healthy")]
    #[case::does_not(status(json!([{"type": "Available", "status": "False", "reason": "Down"}])), "kafka ns/x is not healthy: Available is False (Down)")]
    #[case::absent(status(json!([])), "kafka ns/x is not healthy: it has no condition Available, which its annotation interlock.dev/ready-condition names")]
    fn by_the_condition_that_is_named(#[case] status: Value, #[case] expected: &str) {
        let annotations = json!({"annotations": {meta::READY_CONDITION: "Available"}});
        assert_eq!(told(of(&object(annotations, status))), expected);
    }

    fn object(metadata: Value, status: Value) -> Value {
        let mut object = json!({
            "apiVersion": "kafka.example/v1", "kind": "Kafka", "status": status,
            "metadata": {"name": "x", "namespace": "ns", "generation": 2},
        });
        let metadata = metadata.as_object().cloned().unwrap_or_default();
        object["metadata"].as_object_mut().unwrap().extend(metadata);
        object
    }
}
