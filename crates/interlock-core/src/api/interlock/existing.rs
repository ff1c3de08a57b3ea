//! Adoption of objects that no Instance made: `spec.instances.existingObjects`, parsed for a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SettingProblem;
use super::by_namespace::ByNamespace;
use super::selector::NamespaceSelector;

/// What becomes of objects that exist and that no Instance made, in some namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExistingObjectsSetting {
    /// The namespaces of Instances; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    /// `Deny`: the step fails and names the object. `Allow`: the object is updated, gets no owner
    /// reference and is never deleted.
    #[schemars(extend("enum" = Adoption::ALL.map(Adoption::as_str)))]
    pub adoption: String,
}

/// Whether packages write an object that no Instance made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Adoption {
    /// The step fails.
    #[default]
    Deny,
    /// The object is written, and never deleted.
    Allow,
}

impl Adoption {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Deny, Self::Allow];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deny => "Deny",
            Self::Allow => "Allow",
        }
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|adoption| adoption.as_str() == word)
    }
}

/// Namespaces where packages write objects that no Instance made; by default none.
pub type Adoptions = ByNamespace<Adoption>;

impl Adoptions {
    /// Reads `spec.instances.existingObjects`.
    pub fn of(settings: &[ExistingObjectsSetting]) -> (Self, Vec<SettingProblem>) {
        Self::read("existingObjects", settings.iter().map(ExistingObjectsSetting::read))
    }
}

impl ExistingObjectsSetting {
    fn read(&self) -> Result<(NamespaceSelector, Adoption), (String, String)> {
        let selector = self.namespace_selector.clone().unwrap_or_default();
        match Adoption::of(&self.adoption) {
            Some(adoption) => Ok((selector, adoption)),
            None => {
                let problem = format!("{:?} is no way to treat them; write Deny or Allow", self.adoption);
                Err(("adoption".to_owned(), problem))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::interlock::Labels;

    fn adoptions(value: Value) -> (Adoptions, Vec<SettingProblem>) {
        let settings: Vec<ExistingObjectsSetting> = serde_json::from_value(value).unwrap();
        Adoptions::of(&settings)
    }

    fn tier(tier: &str) -> Value {
        json!({"matchLabels": {"tier": tier}})
    }

    #[rstest]
    #[case::first("dev", Adoption::Allow)]
    #[case::second("prod", Adoption::Deny)]
    #[case::none("test", Adoption::Deny)]
    fn the_first_setting_that_selects_holds(#[case] label: &str, #[case] expected: Adoption) {
        let (adoptions, problems) = adoptions(json!([
            {"namespaceSelector": tier("dev"), "adoption": "Allow"},
            {"namespaceSelector": tier("prod"), "adoption": "Deny"},
            {"namespaceSelector": tier("prod"), "adoption": "Allow"},
        ]));
        assert_eq!(problems, []);
        let labels = Labels::from([("tier".to_owned(), label.to_owned())]);
        assert_eq!(adoptions.within(Some(&labels)), Some(expected));
        assert_eq!(adoptions.within(None), None, "nothing is guessed");
    }

    #[test]
    fn without_a_selector_every_namespace_is_meant_and_without_a_setting_nothing_is_written() {
        let (all, _) = adoptions(json!([{"adoption": "Allow"}]));
        assert_eq!(all.within(Some(&Labels::new())), Some(Adoption::Allow));
        assert_eq!(Adoptions::default().within(None), Some(Adoption::Deny));
    }

    #[rstest]
    #[case::word(json!({"adoption": "allow"}), "spec.instances.existingObjects[0].adoption")]
    #[case::selector(
        json!({"adoption": "Allow", "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
        "spec.instances.existingObjects[0].namespaceSelector.matchExpressions[0].values"
    )]
    fn what_is_wrong_is_named_and_selects_nothing(#[case] setting: Value, #[case] field: &str) {
        let (adoptions, problems) = adoptions(json!([setting]));
        assert_eq!(problems.iter().map(|p| p.field.as_str()).collect::<Vec<_>>(), [field]);
        assert_eq!(adoptions, Adoptions::default());
    }
}
