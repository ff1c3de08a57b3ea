//! Instance: a deployment of a package, and the status of its plans.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::execution_status::ExecutionStatus;
use super::record;
use super::record::{Baseline, Progress, RunRequests};
use super::reference::ObjectReference;

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
    category = "all",
    doc = "A deployment of an OperatorVersion.",
    namespaced,
    status = "InstanceStatus",
    schema = "derived",
    printcolumn = r#"{"name": "OperatorVersion", "type": "string", "description": "The OperatorVersion to run.", "jsonPath": ".spec.operatorVersion.name"}"#,
    printcolumn = r#"{"name": "Plan", "type": "string", "description": "The plan that is scheduled or runs now.", "jsonPath": ".spec.planExecution.planName"}"#,
    printcolumn = r#"{"name": "Status", "type": "string", "description": "Why it is ready or not, among it how its plan stands.", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name": "Ready", "type": "string", "description": "Whether everything that the Instance asks for is there.", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name": "Reconciling", "type": "string", "description": "Whether a plan is scheduled or runs.", "jsonPath": ".status.conditions[?(@.type==\"Reconciling\")].status", "priority": 1}"#,
    printcolumn = r#"{"name": "Drift", "type": "string", "description": "Whether the spec differs from what was carried out.", "jsonPath": ".status.conditions[?(@.type==\"SpecDrift\")].status", "priority": 1}"#,
    printcolumn = r#"{"name": "Stalled", "type": "string", "description": "Whether only a person can help.", "jsonPath": ".status.conditions[?(@.type==\"Stalled\")].status", "priority": 1}"#,
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
    /// The generation of the Instance that the status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions: `Ready`; while a plan runs `Reconciling`; where only a person can help `Stalled`; where the
    /// spec differs from what was carried out `SpecDrift`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The spec that is being, or was last, carried out.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "record::record")]
    pub last_applied: Option<Baseline>,
    /// The progress of the run, while there is one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "record::record")]
    pub progress: Option<Progress>,
    /// What plan requests have changed about the run.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "record::record")]
    pub requests: Option<RunRequests>,
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
