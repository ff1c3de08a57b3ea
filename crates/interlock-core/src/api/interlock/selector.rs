//! Namespace selectors of settings: label selectors with their limits in the schema.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The label with its name on every namespace, which only the API server sets.
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// A label selector; without labels and expressions it selects every namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSelector {
    /// Labels that a namespace must have with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub match_labels: Labels,
    /// Requirements that its labels must meet, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub match_expressions: Vec<Requirement>,
}

/// A requirement on the value of one label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.operator in ['In', 'NotIn'] ? has(self.values) && self.values.size() > 0 : !has(self.values) || self.values.size() == 0",
    "message": "In and NotIn need values, Exists and DoesNotExist take none",
}]))]
pub struct Requirement {
    /// The label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    #[schemars(extend("enum" = ["In", "NotIn", "Exists", "DoesNotExist"]))]
    pub operator: String,
    /// Values for `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 63)))]
    pub values: Vec<String>,
}

/// A fault of a selector: the field below it and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSelector {
    /// Such as `matchExpressions[0].operator`.
    pub field: String,
    /// For people.
    pub problem: String,
}

impl NamespaceSelector {
    /// Repeats the checks of the schema, as a schema of another version may lack them.
    pub fn check(&self) -> Result<(), BadSelector> {
        for (i, requirement) in self.match_expressions.iter().enumerate() {
            let bad = |field: &str, problem: String| {
                Err(BadSelector { field: format!("matchExpressions[{i}].{field}"), problem })
            };
            match (requirement.operator.as_str(), requirement.values.is_empty()) {
                ("In" | "NotIn", false) | ("Exists" | "DoesNotExist", true) => {}
                ("In" | "NotIn", true) => {
                    return bad("values", "is empty; give at least one value".to_owned());
                }
                ("Exists" | "DoesNotExist", false) => {
                    return bad("values", format!("is not used with {}; leave it out", requirement.operator));
                }
                (other, _) => {
                    return bad("operator", format!("is {other:?}; write In, NotIn, Exists or DoesNotExist"));
                }
            }
        }
        Ok(())
    }

    /// Whether it selects a namespace with these labels; one that fails [`Self::check`] selects
    /// none.
    pub fn selects(&self, labels: &Labels) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.is_met(labels))
    }

    /// The labels that it selects by, each with its field below the selector.
    pub fn keys(&self) -> impl Iterator<Item = (String, &str)> {
        let labels = self.match_labels.keys().map(|key| (format!("matchLabels[{key}]"), key.as_str()));
        let expressions = self.match_expressions.iter().enumerate();
        labels.chain(expressions.map(|(i, one)| (format!("matchExpressions[{i}].key"), one.key.as_str())))
    }

    /// Whether it selects every namespace.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }
}

impl Requirement {
    fn is_met(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn selector(value: Value) -> NamespaceSelector {
        serde_json::from_value(value).unwrap()
    }

    fn one(operator: &str, values: &[&str]) -> NamespaceSelector {
        selector(json!({"matchExpressions": [{"key": "tier", "operator": operator, "values": values}]}))
    }

    #[rstest]
    #[case::everything(selector(json!({})), true, true)]
    #[case::label(selector(json!({"matchLabels": {"tier": "dev"}})), true, false)]
    #[case::two_labels(selector(json!({"matchLabels": {"tier": "dev", "team": "a"}})), false, false)]
    #[case::is_in(one("In", &["dev", "test"]), true, false)]
    #[case::is_not_in(one("NotIn", &["dev"]), false, true)]
    #[case::not_in_others(one("NotIn", &["test"]), true, true)]
    #[case::exists(one("Exists", &[]), true, false)]
    #[case::absent(one("DoesNotExist", &[]), false, true)]
    #[case::nonsense(one("Like", &["dev"]), false, false)]
    #[case::both(
        selector(json!({
            "matchLabels": {"tier": "dev"},
            "matchExpressions": [{"key": "team", "operator": "DoesNotExist"}],
        })),
        true,
        false
    )]
    fn namespaces_are_selected(
        #[case] selector: NamespaceSelector,
        #[case] labelled: bool,
        #[case] bare: bool,
    ) {
        let labels = Labels::from([("tier".to_owned(), "dev".to_owned())]);
        assert_eq!(selector.selects(&labels), labelled);
        assert_eq!(selector.selects(&Labels::new()), bare);
    }

    #[rstest]
    #[case::fine(one("In", &["dev"]), None)]
    #[case::no_values(one("NotIn", &[]), Some("matchExpressions[0].values"))]
    #[case::needless_values(one("Exists", &["dev"]), Some("matchExpressions[0].values"))]
    #[case::operator(one("Like", &["dev"]), Some("matchExpressions[0].operator"))]
    fn what_is_wrong_is_named(#[case] selector: NamespaceSelector, #[case] field: Option<&str>) {
        assert_eq!(selector.check().err().map(|bad| bad.field).as_deref(), field);
    }
}
