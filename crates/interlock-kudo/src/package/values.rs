//! Values of parameters as templates see them.

use std::collections::BTreeMap;

use go_template::SharedMap;
use go_template::yaml::Reader;
use interlock_core::api::values::Values;
use thiserror::Error;

use super::Package;
use super::params;
use crate::api::Parameter;

/// A value that cannot be passed to templates. Messages omit it: it may be a password.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "parameter \"{parameter}\" has an invalid value: type is \"{value_type}\" but the value {why}; set \
     spec.parameters.{parameter} to a YAML {value_type}"
)]
pub struct ValueError {
    pub parameter: String,
    /// `array` or `map`.
    pub value_type: &'static str,
    /// The fault, to continue a sentence that begins with "the value".
    pub why: String,
}

/// All parameters of a package: the given value, also an empty one, else the default, else
/// nothing. Arrays and maps are decoded, everything else is text, numbers and booleans too
/// (KUDO `ParamsMap` and `convert.ParamValue`). The arrays and maps share one budget of decoded
/// bytes ([`go_template::yaml::MAX_MADE`]), and have no aliases.
pub fn parameters(package: &Package, values: &Values<'_>) -> Result<SharedMap, ValueError> {
    let reader = params::reader();
    let all: Result<BTreeMap<_, _>, _> = package
        .parameters()
        .filter_map(|p| Some((p, p.name.as_deref()?)))
        .map(|(p, name)| {
            let text = values.get(name).map(AsRef::as_ref).or(p.default.as_deref()).unwrap_or_default();
            Ok((name.to_owned(), value(&reader, p, name, text)?))
        })
        .collect();
    all.map(SharedMap::from)
}

fn value(
    reader: &Reader<'_>,
    parameter: &Parameter,
    name: &str,
    text: &str,
) -> Result<go_template::Value, ValueError> {
    let value_type = match parameter.value_type.as_deref() {
        Some("array") => "array",
        Some("map") => "map",
        _ => return Ok(text.into()),
    };
    let invalid = |why: String| ValueError { parameter: name.to_owned(), value_type, why };
    let no_such = || invalid(format!("is not a YAML {value_type}"));
    let decoded = params::decode(reader, text).map_err(|bound| bound.map_or_else(no_such, invalid))?;
    // KUDO accepts any value as a map; only an array must be one.
    if value_type == "array" && !(decoded.is_array() || decoded.is_null()) {
        return Err(no_such());
    }
    Ok(decoded.into())
}

#[cfg(test)]
mod tests {
    use go_template::Value;
    use interlock_core::api::object::NamespacedName;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn given(parameter: serde_json::Value, value: Option<&'static str>) -> Result<Value, ValueError> {
        let spec = serde_json::from_value(json!({"parameters": [parameter]})).unwrap();
        let package = Package::new(NamespacedName::new("ns", "ov"), spec);
        let values: Values<'_> = value.into_iter().map(|v| ("P".into(), v.into())).collect();
        parameters(&package, &values).map(|all| all["P"].clone())
    }

    #[rstest]
    #[case::given(json!({"name": "P", "default": "d"}), Some("v"), "v".into())]
    #[case::given_empty(json!({"name": "P", "default": "d"}), Some(""), "".into())]
    #[case::default(json!({"name": "P", "default": "d"}), None, "d".into())]
    #[case::nothing(json!({"name": "P"}), None, "".into())]
    #[case::integers_are_text(json!({"name": "P", "value-type": "integer"}), Some("3"), "3".into())]
    #[case::booleans_are_text(json!({"name": "P", "value-type": "boolean"}), Some("true"), "true".into())]
    #[case::array(json!({"name": "P", "value-type": "array"}), Some("- a\n- 1000000"), Value::List(vec!["a".into(), Value::Float(1e6)]))]
    #[case::null_array(json!({"name": "P", "value-type": "array", "default": "null\n"}), None, Value::Nil)]
    #[case::empty_array(json!({"name": "P", "value-type": "array"}), None, Value::Nil)]
    #[case::map(json!({"name": "P", "value-type": "map"}), Some("{a: true}"), [("a", Value::Bool(true))].into_iter().collect())]
    #[case::a_map_may_be_a_scalar(json!({"name": "P", "value-type": "map"}), Some("x"), "x".into())]
    fn values(
        #[case] parameter: serde_json::Value,
        #[case] value: Option<&'static str>,
        #[case] expected: Value,
    ) {
        assert_eq!(given(parameter, value), Ok(expected));
    }

    /// The limit holds for Instances that bypassed the webhook, too.
    #[test]
    fn aliases_are_refused() {
        let error = given(json!({"name": "P", "value-type": "array"}), Some("[&a x, *a]")).unwrap_err();
        assert!(error.why.starts_with("uses a YAML alias"), "{error}");
    }

    #[rstest]
    #[case::not_a_list("array", "a: 1")]
    #[case::not_yaml("map", "{a")]
    fn bad_values_are_named_and_not_shown(#[case] value_type: &'static str, #[case] value: &'static str) {
        let error = given(json!({"name": "P", "value-type": value_type}), Some(value)).unwrap_err();
        let why = format!("is not a YAML {value_type}");
        assert_eq!(error, ValueError { parameter: "P".to_owned(), value_type, why });
        assert!(!error.to_string().contains(value));
    }
}
