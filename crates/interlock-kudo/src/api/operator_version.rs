//! OperatorVersion: a package, with its parameters, templates, tasks and plans.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reference::ObjectReference;

/// One version of an operator: parameters, templates, tasks and plans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "kudo.dev",
    version = "v1beta1",
    kind = "OperatorVersion",
    plural = "operatorversions",
    singular = "operatorversion",
    shortname = "opv",
    category = "kudo",
    doc = "One version of an operator: parameters, templates, tasks and plans.",
    namespaced,
    schema = "derived",
    printcolumn = r#"{"name": "Operator", "type": "string", "description": "The operator that this is a version of.", "jsonPath": ".spec.operator.name"}"#,
    printcolumn = r#"{"name": "Version", "type": "string", "description": "Version of the package.", "jsonPath": ".spec.version"}"#,
    printcolumn = r#"{"name": "App", "type": "string", "description": "Version of the application that the package runs.", "jsonPath": ".spec.appVersion"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct OperatorVersionSpec {
    /// The Operator that this is a version of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<ObjectReference>,
    /// Version of the package, a semantic version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Version of the application that the package runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
    /// Template files by name, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub templates: Option<BTreeMap<String, String>>,
    /// Tasks that the steps of plans name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<Task>>,
    /// Parameters that Instances may set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<Parameter>>,
    /// Plans by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plans: Option<BTreeMap<String, Plan>>,
    /// Templated string for connecting to an Instance; nothing reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_string: Option<String>,
    /// Versions that may be upgraded to this one; empty means any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgradable_from: Option<Vec<ObjectReference>>,
}

/// A parameter of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Parameter {
    /// Name, the key in `Instance.spec.parameters`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What the parameter does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether a value must be given where there is no default; absent means no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// Value where an Instance gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// Plan that a change of the value runs; absent means `update`, else `deploy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// `string`, `integer`, `number`, `boolean`, `array` or `map`; absent means `string`.
    #[serde(default, rename = "value-type", skip_serializing_if = "Option::is_none")]
    pub value_type: Option<String>,
    /// Whether the value may change after creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub immutable: Option<bool>,
    /// The only values allowed.
    #[serde(default, rename = "enum", skip_serializing_if = "Option::is_none")]
    pub enum_: Option<Vec<String>>,
}

/// A task: what one entry of a step does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    /// Name that steps use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `Apply`, `Delete`, `Toggle`, `Dummy`, `Pipe` or `KudoOperator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What the kind needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<TaskSpec>,
}

/// Union of the fields of all task kinds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskSpec {
    /// Apply, Delete, Toggle: template files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<String>>,
    /// Toggle: the boolean parameter that decides between Apply and Delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// Dummy: fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub want_err: Option<bool>,
    /// Dummy: fail for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fatal: Option<bool>,
    /// Dummy: be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<bool>,
    /// Pipe: template file of the Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
    /// Pipe: files that become Secrets or ConfigMaps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipe: Option<Vec<PipeSpec>>,
    /// KudoOperator: operator of the child Instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// KudoOperator: name of the child Instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_name: Option<String>,
    /// KudoOperator: application version of the child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
    /// KudoOperator: package version of the child.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_version: Option<String>,
    /// KudoOperator: template file of the child's parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter_file: Option<String>,
}

/// One file that a Pipe task takes out of its Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PipeSpec {
    /// Path of a file that becomes one key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Path of a file of `KEY=VALUE` lines that become keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_file: Option<String>,
    /// `Secret` or `ConfigMap`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name by which templates find the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A plan: phases in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// `serial`; anything else, also nothing, is parallel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// Phases in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Vec<Phase>>,
}

/// A phase of a plan: steps in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `serial`; anything else, also nothing, is parallel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// Steps in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<Step>>,
}

/// A step of a phase: names of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Names of tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<String>>,
}
