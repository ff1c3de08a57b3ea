//! The spec of a ChangeGuard, as people write it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What may not change meanwhile, and when that is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GuardSpec {
    /// The objects that are guarded.
    #[serde(rename = "match")]
    pub matches: MatchSpec,
    /// The preset that says when an object is busy, and what may not change then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub preset: Option<String>,
    /// When an object is busy, beside the preset.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub busy_when: Vec<BusyWhen>,
    /// What may not change of a busy object, such as `spec.template`; that of the preset, else `spec`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub paths: Vec<String>,
    /// What of that may, such as `spec.replicas`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub except: Vec<String>,
    /// What becomes of a change of a busy object.
    #[serde(default)]
    pub action: GuardAction,
}

/// The objects that are guarded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MatchSpec {
    /// Kinds, and what is done to them.
    #[schemars(length(min = 1, max = 32))]
    pub resource_rules: Vec<ResourceRule>,
    /// Whether objects that a controller owns are guarded too. Their operator edits them.
    #[serde(default)]
    pub include_owned: bool,
}

/// Kinds by their resources, in the shape of a ValidatingAdmissionPolicy's rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceRule {
    /// API groups; `""` is the core group.
    #[schemars(length(min = 1, max = 16))]
    pub api_groups: Vec<String>,
    /// The one version that expressions are written for: objects are converted to it.
    #[schemars(length(min = 1, max = 1))]
    pub api_versions: Vec<String>,
    /// Plural names, such as `deployments`.
    #[schemars(length(min = 1, max = 32))]
    pub resources: Vec<String>,
    /// `UPDATE` by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 2))]
    pub operations: Vec<Operation>,
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
}

/// What becomes of a change of a busy object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GuardAction {
    /// It is refused.
    #[default]
    Deny,
    /// It is admitted, with a warning.
    Warn,
}

/// A condition under which an object is busy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BusyWhen {
    /// Its name in refusals.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// CEL over `oldObject`, a boolean.
    #[schemars(length(min = 1, max = 4096))]
    pub expression: String,
    /// What a refusal says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub message: Option<String>,
    /// CEL over `oldObject` for the same, a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub message_expression: Option<String>,
    /// CEL over `oldObject`, a timestamp: since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub since: Option<String>,
}
