//! Conversion of values to text, as in KUDO's client.

use go_template::go::float::{rounded_to_f32, shortest};
use go_template::yaml;
use serde_json::{Number, Value};

/// A parameter's value as text: arrays and maps as YAML, also a null one; everything else as
/// Go's `%v` of the decoded JSON, in which each number is a float64, so that an unquoted
/// 1000000 becomes `1e+06`. `None` for null.
pub fn parameter_text(value: &Value, value_type: &str) -> Option<String> {
    match (value_type, value) {
        ("array" | "map", value) => Some(yaml::write(&as_json(value))),
        (_, Value::Null) => None,
        (_, value) => Some(verb_v(value)),
    }
}

/// A scalar where a string is wanted, as `sigs.k8s.io/yaml` converts it: a float with the
/// digits of a float32.
pub(super) fn scalar_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(String::new, |value| shortest(rounded_to_f32(value)))
        }
        other => other.to_string(),
    }
}

/// Go's `%v`.
fn verb_v(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), shortest),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(verb_v).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let mut pairs: Vec<_> = members.iter().map(|(key, value)| (key, verb_v(value))).collect();
            pairs.sort();
            let pairs: Vec<_> = pairs.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("map[{}]", pairs.join(" "))
        }
    }
}

/// JSON encodes a float without a fraction as an integer.
fn as_json(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => number.as_f64().map_or(Value::Null, whole),
        Value::Array(items) => items.iter().map(as_json).collect(),
        Value::Object(members) => members.iter().map(|(key, value)| (key.clone(), as_json(value))).collect(),
        other => other.clone(),
    }
}

fn whole(value: f64) -> Value {
    // From here on, Go's JSON encoder writes an exponent.
    const LIMIT: f64 = 1e21;
    if value.fract() == 0.0 && value.abs() < LIMIT {
        if let Ok(whole) = format!("{value:.0}").parse::<i64>() {
            return whole.into();
        }
        if let Ok(whole) = format!("{value:.0}").parse::<u64>() {
            return whole.into();
        }
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
