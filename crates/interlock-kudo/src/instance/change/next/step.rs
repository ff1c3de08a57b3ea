//! The possible next steps.

use std::collections::BTreeMap;

use interlock_core::api::object::NamespacedName;

/// Why admission would have denied an edit that bypassed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriftRefusal {
    /// Rule id.
    pub rule: String,
    /// Text of the denial.
    pub message: String,
    /// Whether it may pass without an edit of the Instance, so that it is evaluated again.
    pub passes: bool,
}

/// Source of the spec that a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecSource {
    /// The last-applied spec.
    Stamp,
    /// The spec of the object, which becomes the last-applied one.
    Spec,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestAnswer {
    /// End the run of this plan, begun or not.
    Abort { plan: String },
    /// Schedule the plan under the uid of that retry.
    Retry { plan: String },
    /// End the run of this plan, begun or not, and schedule the plan under the uid of that restart: one
    /// write, so that no edit comes between the two.
    Restart { plan: String },
    /// Pause the run of this plan.
    Pause { plan: String },
    /// Let the paused run of this plan go on.
    Resume { plan: String },
    /// Remove the finished execution from `planExecution`, and revert the spec to the one last
    /// carried out in full.
    Revert,
    /// The run was aborted, but a user has edited the spec since, and the newer edit wins: remove
    /// the request.
    Superseded,
    /// Remove the request: it has been executed, or cannot be (then why).
    Remove(Option<String>),
}

impl Next {
    /// Source of the spec that it runs.
    pub(super) fn source(&self) -> Option<SpecSource> {
        match self {
            Self::Schedule { source, .. }
            | Self::Start { source }
            | Self::Retry { source }
            | Self::Continue { source } => Some(*source),
            Self::Create => Some(SpecSource::Spec),
            _ => None,
        }
    }
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Do nothing.
    Idle,
    /// End these running entries as FATAL_ERROR, each with its message.
    End(BTreeMap<String, String>),
    /// Name this running execution in `planExecution` again.
    Restore {
        plan: String,
        /// Id of the execution.
        uid: String,
    },
    /// Set `planExecution` to this plan with a fresh uid.
    Schedule {
        plan: String,
        /// Spec that it runs on.
        source: SpecSource,
    },
    /// Add finalizer, defaults of immutable parameters, `deploy` and last-applied spec, as
    /// admission does at creation.
    Create,
    /// Start the scheduled plan.
    Start {
        /// Spec that it runs on.
        source: SpecSource,
    },
    /// Start the scheduled plan at the failed step of the run that it retries.
    Retry {
        /// Spec that it runs on.
        source: SpecSource,
    },
    /// Continue the running plan.
    Continue {
        /// Spec that it runs on.
        source: SpecSource,
    },
    /// Carry out nothing of the running plan: it is paused.
    AwaitResume,
    /// Remove the finished execution from `planExecution`.
    Clear,
    Answer(RequestAnswer),
    /// Drop the trigger: there is no spec that it could run on.
    DropTrigger,
    /// Set baseline and last-applied spec to the spec, without a rollout.
    Adopt,
    /// Set the last-applied spec to the spec, which is that of the baseline.
    Restamp,
    /// Report the difference; neither carry it out nor revert it.
    Report(DriftRefusal),
    /// Wait for the OperatorVersion of the spec to run.
    AwaitVersion(String),
    /// Before any run, query the API server whether packages may use this OperatorVersion of
    /// another namespace.
    CheckAccess(NamespacedName),
    RemoveFinalizer {
        /// Text of the Warning Event, when it is removed without a cleanup.
        warning: Option<String>,
    },
    /// `cleanup` failed: schedule it again after a back-off.
    RetryCleanup {
        /// Number of failed runs.
        failures: usize,
    },
}
