//! What counts in `kudo.dev/dependencies-hash`: `spec.instances.dependenciesHash`, parsed for a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::SettingProblem;
use super::by_namespace::ByNamespace;
use super::selector::NamespaceSelector;

/// What counts in the annotation `kudo.dev/dependencies-hash` of pod templates, in some namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependenciesHashSetting {
    /// The namespaces of Instances; absent means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    /// `Volumes`: the ConfigMaps and Secrets of volumes, and the Secrets of imagePullSecrets, as KUDO
    /// counts. `All`: also those of env and envFrom, in init containers too, and of projected volumes.
    #[schemars(extend("enum" = CountedReferences::ALL.map(CountedReferences::as_str)))]
    pub references: String,
}

/// The references of a pod template that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountedReferences {
    /// Those of imagePullSecrets and of volumes that are one ConfigMap or Secret.
    #[default]
    Volumes,
    /// Also those of variables and of projected volumes.
    All,
}

impl CountedReferences {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Volumes, Self::All];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Volumes => "Volumes",
            Self::All => "All",
        }
    }

    fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|references| references.as_str() == word)
    }
}

/// What counts, by namespace; by default as in KUDO.
pub type DependenciesHashes = ByNamespace<CountedReferences>;

impl DependenciesHashes {
    /// Reads `spec.instances.dependenciesHash`.
    pub fn of(settings: &[DependenciesHashSetting]) -> (Self, Vec<SettingProblem>) {
        Self::read("dependenciesHash", settings.iter().map(DependenciesHashSetting::read))
    }
}

impl DependenciesHashSetting {
    fn read(&self) -> Result<(NamespaceSelector, CountedReferences), (String, String)> {
        let selector = self.namespace_selector.clone().unwrap_or_default();
        match CountedReferences::of(&self.references) {
            Some(references) => Ok((selector, references)),
            None => {
                let problem = format!("{:?} are no references; write Volumes or All", self.references);
                Err(("references".to_owned(), problem))
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

    fn hashes(value: Value) -> (DependenciesHashes, Vec<SettingProblem>) {
        let settings: Vec<DependenciesHashSetting> = serde_json::from_value(value).unwrap();
        DependenciesHashes::of(&settings)
    }

    #[rstest]
    #[case::first("dev", CountedReferences::All)]
    #[case::second("prod", CountedReferences::Volumes)]
    #[case::none("test", CountedReferences::Volumes)]
    fn the_first_setting_that_selects_holds(#[case] label: &str, #[case] expected: CountedReferences) {
        let tier = |tier: &str| json!({"matchLabels": {"tier": tier}});
        let (hashes, problems) = hashes(json!([
            {"namespaceSelector": tier("dev"), "references": "All"},
            {"namespaceSelector": tier("prod"), "references": "Volumes"},
            {"namespaceSelector": tier("prod"), "references": "All"},
        ]));
        assert_eq!(problems, []);
        let labels = Labels::from([("tier".to_owned(), label.to_owned())]);
        assert_eq!(hashes.within(Some(&labels)), Some(expected));
    }

    #[test]
    fn a_word_that_is_none_is_named_and_kudo_counts() {
        let (hashes, problems) = hashes(json!([{"references": "all"}]));
        assert_eq!(problems[0].field, "spec.instances.dependenciesHash[0].references");
        assert_eq!(hashes.within(None), Some(CountedReferences::Volumes));
    }
}
