//! `kudo.dev/v1beta1`: Operator, OperatorVersion, Instance.
//!
//! Fields, names and JSON keys are those of KUDO v0.19 (`pkg/apis/kudo/v1beta1`). The schema
//! requires nothing and restricts no value: it accepts whatever KUDO's CRDs accept, and admission
//! denies semantic errors, with a reason.

mod execution_status;
mod instance;
mod operator;
mod operator_version;
mod record;
mod reference;

pub use execution_status::ExecutionStatus;
pub use instance::{
    Instance, InstanceSpec, InstanceStatus, PhaseStatus, PlanExecution, PlanStatus, StepStatus,
};
pub use operator::{Maintainer, Operator, OperatorSpec};
pub use operator_version::{
    OperatorVersion, OperatorVersionSpec, Parameter, Phase, PipeSpec, Plan, Step, Task, TaskSpec,
};
pub use record::{
    Baseline, CarriedOutRun, Detail, Earlier, HeldObject, PackageHash, Pause, PendingPlan, Progress,
    RunRequests, ShortHash,
};
pub use reference::ObjectReference;
