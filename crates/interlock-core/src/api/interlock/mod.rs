//! `interlock.dev/v1alpha1`: the kind Interlock, which configures the running process.
//!
//! Only the object named `default` is honoured. Where it is absent, everything has its default. Its
//! conditions report faults that its schema cannot reject, and the rest applies.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod accounts;
pub mod auth_servers;
mod by_namespace;
pub mod dependencies_hash;
pub mod existing;
pub mod limitadors;
pub mod policies;
mod problem;
pub mod rule_actions;
pub mod selector;

pub use accounts::{Account, Accounts, InstancesSetting, ServiceAccountSetting};
pub use auth_servers::{AuthEndpoint, AuthServers};
pub use by_namespace::ByNamespace;
pub use dependencies_hash::{CountedReferences, DependenciesHashSetting, DependenciesHashes};
pub use existing::{Adoption, Adoptions, ExistingObjectsSetting};
pub use limitadors::{LimitStore, Limitador, Limitadors};
pub use policies::PoliciesSetting;
pub use problem::SettingProblem;
pub use rule_actions::{Actions, RuleAction, RuleSetting, Rules};
pub use selector::{Labels, NamespaceSelector};

/// `metadata.name` of the one object that is honoured.
pub const DEFAULT: &str = "default";

/// How Interlock is set up, and how its parts stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "interlock.dev",
    version = "v1alpha1",
    kind = "Interlock",
    plural = "interlocks",
    singular = "interlock",
    shortname = "ilk",
    doc = "How Interlock is set up, and how its parts stand. The object named default is honoured, others are not.",
    status = "InterlockStatus",
    derive = "Default",
    derive = "PartialEq",
    schema = "derived",
    printcolumn = r#"{"name": "Ready", "type": "string", "description": "Whether everything that is required runs.", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "description": "Why it is ready or not.", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name": "Message", "type": "string", "description": "What is missing, and what to do.", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].message", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct InterlockSpec {
    /// The parts of Interlock by name, `instances` and `routes` among them; one that is not named
    /// has its default. The conditions tell which there are.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 32))]
    pub capabilities: BTreeMap<String, CapabilitySetting>,
    /// How Instances are carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances: Option<InstancesSetting>,
    /// How policies of the Gateway API are carried out, where the capability `policies` is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policies: Option<PoliciesSetting>,
    /// What the rules do, by group and namespace. The first setting of a group that selects a
    /// namespace holds; where none does, the group has its default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub rules: Vec<RuleSetting>,
}

/// How one part of Interlock is set up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapabilitySetting {
    /// `auto`, the default except for `dataplanes`: it runs while its kinds are served. `manual`: it
    /// runs if its kinds are served when the mode is set or the process starts, and until one goes;
    /// a CustomResourceDefinition that is installed later starts nothing. `off`, in quotes, the
    /// default of `dataplanes`: it does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = Mode::ALL.map(Mode::as_str)))]
    pub mode: Option<String>,
}

/// When a part of Interlock runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// While its kinds are served.
    #[default]
    Auto,
    /// It runs if its kinds were served when the process started, or when the mode was set, until
    /// one is removed: a CustomResourceDefinition installed later starts nothing.
    Manual,
    /// Never.
    Off,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Manual, Self::Off];

    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Manual => "manual",
            Self::Off => "off",
        }
    }

    /// The mode of that word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.as_str() == word)
    }
}

/// How the parts of Interlock stand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterlockStatus {
    /// The `metadata.generation` that the conditions were made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready` over all, `Accepted` for the spec, and one for each part, such as `InstancesReady`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// The parsed spec: valid settings, and problems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Modes of the capabilities that the spec names.
    pub modes: BTreeMap<String, Mode>,
    /// Actions of the rules, by namespace.
    pub rules: Rules,
    /// Service accounts of packages, by namespace.
    pub accounts: Accounts,
    /// Namespaces where packages write objects that no Instance made.
    pub adoptions: Adoptions,
    /// What counts in the hashes of pods' dependencies, by namespace.
    pub dependencies_hashes: DependenciesHashes,
    /// Where limits of requests are counted.
    pub limitadors: Limitadors,
    /// What authenticates and authorizes requests.
    pub auth_servers: AuthServers,
    /// Settings that are ignored.
    pub problems: Vec<SettingProblem>,
}

impl Settings {
    /// Reads a spec; `known` are the names of the existing capabilities.
    pub fn read(spec: &InterlockSpec, known: &[&str]) -> Self {
        let mut problems = Vec::new();
        let mut modes = BTreeMap::new();
        for (name, setting) in &spec.capabilities {
            if !known.contains(&name.as_str()) {
                problems.push(SettingProblem {
                    field: format!("spec.capabilities.{name}"),
                    problem: format!("there is no such capability; there are {}", known.join(", ")),
                });
                continue;
            }
            match setting.mode.as_deref().map(|word| (word, Mode::of(word))) {
                None => {}
                Some((_, Some(mode))) => {
                    modes.insert(name.clone(), mode);
                }
                Some((word, None)) => problems.push(SettingProblem {
                    field: format!("spec.capabilities.{name}.mode"),
                    problem: format!("{word:?} is no mode; write auto, manual or off"),
                }),
            }
        }
        let (rules, wrong) = Rules::read(&spec.rules);
        problems.extend(wrong);
        let instances = spec.instances.clone().unwrap_or_default();
        let (accounts, wrong) = Accounts::read(&instances.service_accounts);
        problems.extend(wrong);
        let (adoptions, wrong) = Adoptions::of(&instances.existing_objects);
        problems.extend(wrong);
        let (dependencies_hashes, wrong) = DependenciesHashes::of(&instances.dependencies_hash);
        problems.extend(wrong);
        let policies = spec.policies.clone().unwrap_or_default();
        let (limitadors, wrong) = Limitadors::read(&policies.limitadors);
        problems.extend(wrong);
        let (auth_servers, wrong) = AuthServers::read(&policies.auth_servers);
        problems.extend(wrong);
        Self { modes, rules, accounts, adoptions, dependencies_hashes, limitadors, auth_servers, problems }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_honoured_is_named_and_the_rest_holds() {
        let spec: InterlockSpec = serde_json::from_value(json!({
            "capabilities": {"routes": {"mode": "off"}, "instances": {"mode": "never"}, "roots": {}},
            "rules": [{"group": "freeze", "action": "Warn"}, {"group": "lock", "action": "Warn"}],
        }))
        .unwrap();
        let settings = Settings::read(&spec, &["instances", "routes"]);
        assert_eq!(settings.modes, BTreeMap::from([("routes".to_owned(), Mode::Off)]));
        assert!(!settings.rules.is_empty());
        let fields: Vec<&str> = settings.problems.iter().map(|p| p.field.as_str()).collect();
        assert_eq!(
            fields,
            ["spec.capabilities.instances.mode", "spec.capabilities.roots", "spec.rules[1].group"]
        );
    }
}
