//! A ValidatingAdmissionPolicyBinding of ours: the namespaces that it excludes from its policy.
//!
//! One requirement on the label that only the API server writes excludes namespaces; other requirements of
//! the selector, added by users, stay.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;
use serde::Deserialize as _;
use serde_json::{Value, json};

/// The label with the name of a namespace, on every one.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The namespaces that a binding excludes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExcludedNamespaces {
    /// These; often none.
    Named(BTreeSet<String>),
    All,
}

impl Default for ExcludedNamespaces {
    fn default() -> Self {
        Self::Named(BTreeSet::new())
    }
}

impl ExcludedNamespaces {
    fn requirement(&self) -> Option<LabelSelectorRequirement> {
        let requirement = |operator: &str, values| LabelSelectorRequirement {
            key: NAME_LABEL.to_owned(),
            operator: operator.to_owned(),
            values,
        };
        match self {
            Self::Named(names) if names.is_empty() => None,
            Self::Named(names) => Some(requirement("NotIn", Some(names.iter().cloned().collect()))),
            Self::All => Some(requirement("DoesNotExist", None)),
        }
    }
}

/// The last read state of the binding.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum BindingState {
    /// Not read yet, or not allowed to be read.
    #[default]
    Unknown,
    /// There is none: its policy denies nothing.
    Absent,
    /// It exists.
    Present(FoundBinding),
}

#[derive(Clone, Debug, PartialEq)]
pub struct FoundBinding {
    /// Its version, for a conditional write.
    pub resource_version: String,
    expressions: Vec<LabelSelectorRequirement>,
}

/// Whether a requirement is one that [`ExcludedNamespaces`] makes.
pub fn is_ours(requirement: &LabelSelectorRequirement) -> bool {
    requirement.key == NAME_LABEL && ["NotIn", "DoesNotExist"].contains(&requirement.operator.as_str())
}

impl BindingState {
    /// From a binding; `None` where there is none. A binding that cannot be read is left alone.
    pub fn of(binding: Option<&Value>) -> Self {
        let Some(binding) = binding else { return Self::Absent };
        ValidatingAdmissionPolicyBinding::deserialize(binding)
            .map_or(Self::Unknown, |binding| Self::Present(FoundBinding::of(binding)))
    }
}

impl FoundBinding {
    fn of(binding: ValidatingAdmissionPolicyBinding) -> Self {
        let selector = binding.spec.match_resources.and_then(|resources| resources.namespace_selector);
        Self {
            resource_version: binding.metadata.resource_version.unwrap_or_default(),
            expressions: selector.and_then(|selector| selector.match_expressions).unwrap_or_default(),
        }
    }

    /// The merge patch that makes the binding exclude these; `None` where it already does.
    pub fn patch(&self, left_out: &ExcludedNamespaces) -> Option<Value> {
        let wanted = left_out.requirement();
        let ours: Vec<_> = self.expressions.iter().filter(|e| is_ours(e)).collect();
        if ours == wanted.iter().collect::<Vec<_>>() {
            return None;
        }
        let others = self.expressions.iter().filter(|e| !is_ours(e)).cloned();
        let expressions: Vec<_> = others.chain(wanted).collect();
        Some(json!({
            "metadata": { "resourceVersion": self.resource_version },
            "spec": { "matchResources": { "namespaceSelector": { "matchExpressions": expressions } } },
        }))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn found(expressions: Value) -> FoundBinding {
        FoundBinding {
            resource_version: "7".to_owned(),
            expressions: serde_json::from_value(expressions).unwrap(),
        }
    }

    fn named(names: &[&str]) -> ExcludedNamespaces {
        ExcludedNamespaces::Named(names.iter().map(|name| (*name).to_owned()).collect())
    }

    fn not_in(names: &[&str]) -> Value {
        json!({"key": NAME_LABEL, "operator": "NotIn", "values": names})
    }

    fn none() -> Value {
        json!({"key": NAME_LABEL, "operator": "DoesNotExist"})
    }

    fn added_by_users() -> Value {
        json!({"key": "tier", "operator": "NotIn", "values": ["x"]})
    }

    #[rstest]
    #[case::nothing(json!([]), named(&[]), None)]
    #[case::some(json!([]), named(&["b", "a"]), Some(json!([not_in(&["a", "b"])])))]
    #[case::the_same(json!([not_in(&["a", "b"])]), named(&["a", "b"]), None)]
    #[case::fewer(json!([not_in(&["a", "b"])]), named(&["b"]), Some(json!([not_in(&["b"])])))]
    #[case::none_any_more(json!([not_in(&["a"])]), named(&[]), Some(json!([])))]
    #[case::all(json!([not_in(&["a"])]), ExcludedNamespaces::All, Some(json!([none()])))]
    #[case::still_all(json!([none()]), ExcludedNamespaces::All, None)]
    #[case::beside_theirs(json!([added_by_users()]), named(&["a"]), Some(json!([added_by_users(), not_in(&["a"])])))]
    #[case::theirs_alone(json!([added_by_users()]), named(&[]), None)]
    fn only_our_requirement_is_written(
        #[case] expressions: Value,
        #[case] left_out: ExcludedNamespaces,
        #[case] written: Option<Value>,
    ) {
        let patch = found(expressions).patch(&left_out);
        let selector = "/spec/matchResources/namespaceSelector/matchExpressions";
        assert_eq!(patch.as_ref().and_then(|p| p.pointer(selector)), written.as_ref());
        assert!(patch.is_none_or(|p| p["metadata"]["resourceVersion"] == "7"));
    }
}
