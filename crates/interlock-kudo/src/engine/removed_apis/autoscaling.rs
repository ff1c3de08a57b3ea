//! HorizontalPodAutoscalers of `autoscaling/v2beta1`, whose metrics have their target in fields of their own.

use serde_json::{Map, Value, json};

use super::fields;

/// Rewrites the metrics of the spec.
pub(super) fn v2beta1(object: &mut Value) {
    let Some(spec) = fields::spec(object) else { return };
    for metric in fields::items(spec.get_mut("metrics")) {
        for (source, convert) in SOURCES {
            if let Some(source) = metric.get_mut(*source).and_then(Value::as_object_mut) {
                convert(source);
            }
        }
    }
}

/// Rewrites a source of a metric.
type Convert = fn(&mut Map<String, Value>);

const SOURCES: &[(&str, Convert)] = &[
    ("resource", of_resource),
    ("containerResource", of_resource),
    ("pods", |source| {
        named(source, "selector");
        target(source, &[("targetAverageValue", "AverageValue", "averageValue")]);
    }),
    ("object", |source| {
        named(source, "selector");
        // The name `target` is that of the described object in v2beta1.
        fields::rename(source, "target", "describedObject");
        target(
            source,
            &[("averageValue", "AverageValue", "averageValue"), ("targetValue", "Value", "value")],
        );
    }),
    ("external", |source| {
        named(source, "metricSelector");
        target(
            source,
            &[("targetAverageValue", "AverageValue", "averageValue"), ("targetValue", "Value", "value")],
        );
    }),
];

fn of_resource(source: &mut Map<String, Value>) {
    let targets = [
        ("targetAverageUtilization", "Utilization", "averageUtilization"),
        ("targetAverageValue", "AverageValue", "averageValue"),
    ];
    target(source, &targets);
}

/// `metricName` and its selector become `metric`.
fn named(source: &mut Map<String, Value>, selector: &str) {
    let Some(name) = source.remove("metricName") else { return };
    let mut metric = Map::from_iter([("name".to_owned(), name)]);
    metric.extend(source.remove(selector).map(|selector| ("selector".to_owned(), selector)));
    source.insert("metric".to_owned(), Value::Object(metric));
}

/// The first of these fields that is set becomes `target`; the others are dropped, as v2beta1 ignores them.
fn target(source: &mut Map<String, Value>, fields: &[(&str, &str, &str)]) {
    let mut found = None;
    for (field, type_, value) in fields {
        let set = source.remove(*field).filter(|set| !set.is_null());
        found = found.or_else(|| set.map(|set| json!({"type": type_, *value: set})));
    }
    if let Some(found) = found {
        source.insert("target".to_owned(), found);
    }
}
