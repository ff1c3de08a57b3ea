//! A file of parameter values by name: the client's `--parameter-file`, and `parameterFile` of a KudoOperator task
//! (KUDO `pkg/kudoctl/cmd/params/parser.go`).

use std::collections::BTreeMap;

use serde_json::Value;
use thiserror::Error;

use super::bundle::parameter_text;

/// Why a file holds no values of parameters, to continue a sentence that begins with it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParameterFileError {
    /// It is a list or a scalar.
    #[error("is no mapping of names to values, such as `REPLICAS: 3`")]
    NotAMapping,
    /// The value of this parameter is null.
    #[error("has null for parameter {0}; write \"\" for an empty value, or leave it out")]
    Null(String),
}

/// The values of a decoded file as text: arrays and maps as YAML, others as KUDO's client prints them. A file without
/// content has none.
///
/// # Errors
/// The file is no mapping, or has a null.
pub fn values(content: Value) -> Result<BTreeMap<String, String>, ParameterFileError> {
    let members = match content {
        Value::Object(members) => members,
        Value::Null => return Ok(BTreeMap::new()),
        _ => return Err(ParameterFileError::NotAMapping),
    };
    let text = |(name, value): (String, Value)| {
        let kind = match value {
            Value::Object(_) => "map",
            Value::Array(_) => "array",
            _ => "string",
        };
        match parameter_text(&value, kind) {
            Some(text) => Ok((name, text)),
            None => Err(ParameterFileError::Null(name)),
        }
    };
    members.into_iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::text(json!({"A": "x"}), json!({"A": "x"}))]
    #[case::number(json!({"A": 3, "B": 1_000_000, "C": 0.5}), json!({"A": "3", "B": "1e+06", "C": "0.5"}))]
    #[case::flag(json!({"A": true}), json!({"A": "true"}))]
    #[case::list(json!({"A": [1, "b"]}), json!({"A": "- 1\n- b\n"}))]
    #[case::map(json!({"A": {"b": [1]}}), json!({"A": "b:\n- 1\n"}))]
    #[case::empty(json!({"A": ""}), json!({"A": ""}))]
    #[case::nothing(json!(null), json!({}))]
    fn values_become_text(#[case] content: Value, #[case] expected: Value) {
        assert_eq!(serde_json::to_value(values(content).unwrap()).unwrap(), expected);
    }

    #[rstest]
    #[case::null(json!({"A": null}), ParameterFileError::Null("A".to_owned()))]
    #[case::list(json!(["A"]), ParameterFileError::NotAMapping)]
    #[case::text(json!("A"), ParameterFileError::NotAMapping)]
    fn other_files_are_refused(#[case] content: Value, #[case] expected: ParameterFileError) {
        assert_eq!(values(content), Err(expected));
    }
}
