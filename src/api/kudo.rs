//! `kudo.dev/v1beta1`: Operator, OperatorVersion, Instance.
//!
//! Fields, names and JSON keys are those of KUDO v0.19 (`pkg/apis/kudo/v1beta1`). Nothing is
//! required and no value is restricted by the schema: whatever KUDO's CRDs accept is accepted
//! here, and what is wrong in meaning is refused by admission, with a reason.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Where an execution (of a plan, a phase or a step) stands.
///
/// A free string in the schema; what is none of KUDO's words is kept as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ExecutionStatus {
    /// Never executed, or not since the plan was last scheduled.
    #[default]
    NeverRun,
    /// Scheduled, not begun.
    Pending,
    /// Being executed.
    InProgress,
    /// A task failed and is tried again.
    Error,
    /// Ended by an error.
    FatalError,
    /// Ended well.
    Complete,
    /// A word that KUDO does not know.
    Other(String),
}

impl ExecutionStatus {
    /// The string on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::NeverRun => "NEVER_RUN",
            Self::Pending => "PENDING",
            Self::InProgress => "IN_PROGRESS",
            Self::Error => "ERROR",
            Self::FatalError => "FATAL_ERROR",
            Self::Complete => "COMPLETE",
            Self::Other(word) => word,
        }
    }

    /// `COMPLETE` or `FATAL_ERROR`.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Complete | Self::FatalError)
    }

    /// `PENDING`, `IN_PROGRESS` or `ERROR`.
    pub fn is_running(&self) -> bool {
        matches!(self, Self::Pending | Self::InProgress | Self::Error)
    }
}

impl From<&str> for ExecutionStatus {
    fn from(word: &str) -> Self {
        match word {
            "" | "NEVER_RUN" => Self::NeverRun,
            "PENDING" => Self::Pending,
            "IN_PROGRESS" => Self::InProgress,
            "ERROR" => Self::Error,
            "FATAL_ERROR" => Self::FatalError,
            "COMPLETE" => Self::Complete,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl From<String> for ExecutionStatus {
    fn from(word: String) -> Self {
        Self::from(word.as_str())
    }
}

impl From<ExecutionStatus> for String {
    fn from(status: ExecutionStatus) -> Self {
        status.as_str().to_owned()
    }
}

impl fmt::Display for ExecutionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl JsonSchema for ExecutionStatus {
    fn schema_name() -> Cow<'static, str> {
        "ExecutionStatus".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// Reference to an object, of the shape of core/v1 ObjectReference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// Kind of the referent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Namespace of the referent; empty means the namespace of the referring object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the referent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// UID of the referent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// API version of the referent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Specific resourceVersion to which this reference is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Part of the referent that is meant, in JSON/Go field access syntax.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
}

impl ObjectReference {
    /// The name, empty when there is none.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// The namespace, or that of the referring object.
    pub fn namespace_or<'a>(&'a self, own: &'a str) -> &'a str {
        self.namespace.as_deref().filter(|ns| !ns.is_empty()).unwrap_or(own)
    }
}

/// Person or group that maintains an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Maintainer {
    /// Name of the maintainer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Email address of the maintainer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
}

/// Identity of a package, shared by its versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "kudo.dev",
    version = "v1beta1",
    kind = "Operator",
    plural = "operators",
    singular = "operator",
    shortname = "op",
    category = "kudo",
    category = "interlock",
    doc = "Identity of a package, shared by its versions.",
    namespaced,
    schema = "derived",
    printcolumn = r#"{"name": "URL", "type": "string", "description": "Where to read more.", "jsonPath": ".spec.url", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct OperatorSpec {
    /// What the operator does, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Lowest version of KUDO that the package was written for; informational.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kudo_version: Option<String>,
    /// Lowest version of Kubernetes that the package needs; checked by clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubernetes_version: Option<String>,
    /// Who maintains the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maintainers: Option<Vec<Maintainer>>,
    /// Where to read more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Template that clients render when they make the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_manifest: Option<String>,
}

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
    category = "interlock",
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

/// A deployment of an OperatorVersion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "kudo.dev",
    version = "v1beta1",
    kind = "Instance",
    plural = "instances",
    singular = "instance",
    shortname = "inst",
    category = "kudo",
    category = "interlock",
    category = "all",
    doc = "A deployment of an OperatorVersion.",
    namespaced,
    status = "InstanceStatus",
    schema = "derived",
    printcolumn = r#"{"name": "OperatorVersion", "type": "string", "description": "The OperatorVersion to run.", "jsonPath": ".spec.operatorVersion.name"}"#,
    printcolumn = r#"{"name": "Plan", "type": "string", "description": "The plan that is scheduled or runs now.", "jsonPath": ".spec.planExecution.planName"}"#,
    printcolumn = r#"{"name": "Status", "type": "string", "description": "Why it is ready or not, among it how its plan stands.", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "description": "Whether everything that the Instance asks for is there.", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Running", "type": "string", "description": "Whether a plan runs.", "jsonPath": ".status.conditions[?(@.type==\"PlanRunning\")].status", "priority": 1}"#,
    printcolumn = r#"{"name": "Drift", "type": "string", "description": "Whether the spec differs from what was carried out.", "jsonPath": ".status.conditions[?(@.type==\"SpecDrift\")].status", "priority": 1}"#,
    printcolumn = r#"{"name": "Stalled", "type": "string", "description": "Whether an error keeps a plan from going on.", "jsonPath": ".status.conditions[?(@.type==\"Stalled\")].status", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct InstanceSpec {
    /// The OperatorVersion to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_version: Option<ObjectReference>,
    /// Values of parameters, always strings; arrays and maps are YAML text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<BTreeMap<String, String>>,
    /// The plan that is scheduled or runs now; written by Interlock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_execution: Option<PlanExecution>,
}

/// The plan that is scheduled or runs now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanExecution {
    /// Name of the plan; empty means none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_name: Option<String>,
    /// Id of this execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// `NEVER_RUN` when scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ExecutionStatus>,
}

impl PlanExecution {
    /// Name of the plan, empty when there is none.
    pub fn plan(&self) -> &str {
        self.plan_name.as_deref().unwrap_or_default()
    }

    /// Id of the execution, empty when there is none.
    pub fn uid(&self) -> &str {
        self.uid.as_deref().unwrap_or_default()
    }
}

/// What was observed of an Instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceStatus {
    /// Conditions `Ready`, `PlanRunning`, `Stalled`, `SpecDrift`, `SpecStamped`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Last execution of each plan of the OperatorVersion, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plan_status: BTreeMap<String, PlanStatus>,
}

/// Last execution of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStatus {
    /// Name of the plan.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Where it stands.
    #[serde(default)]
    pub status: ExecutionStatus,
    /// What concerns the plan as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Last change of this entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_updated_timestamp: Option<Time>,
    /// Phases in the order of the OperatorVersion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Vec<PhaseStatus>>,
    /// Id of the execution, fresh for each.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// Last execution of a phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseStatus {
    /// Name of the phase.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Where it stands.
    #[serde(default)]
    pub status: ExecutionStatus,
    /// What concerns the phase as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Steps in the order of the OperatorVersion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<StepStatus>>,
}

/// Last execution of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StepStatus {
    /// Name of the step.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Why it is not done, when there is something to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Where it stands.
    #[serde(default)]
    pub status: ExecutionStatus,
}
