//! What the next step can be.

use std::collections::BTreeMap;

use crate::api::object::NamespacedName;

/// Why admission would have refused what it never saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriftRefusal {
    /// Rule id.
    pub rule: String,
    /// The refusal's text.
    pub message: String,
    /// Whether it may pass without an edit of the Instance, so that it is asked about again.
    pub passes: bool,
}

/// Which spec a run is carried out on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecSource {
    /// The one in the stamp.
    Stamp,
    /// The one on the object; the stamp is set to it.
    Spec,
}

/// What a request leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestAnswer {
    /// The run of this plan ends, begun or not.
    Abort {
        /// Plan.
        plan: String,
    },
    /// The plan is scheduled, under the uid of that retry.
    Retry {
        /// Plan.
        plan: String,
    },
    /// The finished execution is taken out of `planExecution`, and the spec goes back to what
    /// last was carried out in full.
    Revert,
    /// The run was aborted, and the spec does not go back: somebody edited it since, and the newer
    /// edit holds. The request is taken away.
    Overtaken,
    /// The request is taken away: it was carried out, or cannot be (then why).
    Forget(Option<String>),
}

impl Next {
    /// Which spec it leads to a run of.
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
    /// Nothing is to be done.
    Idle,
    /// These running entries end as FATAL_ERROR, each with its message.
    End(BTreeMap<String, String>),
    /// `planExecution` names this running execution again.
    PutBack {
        /// Plan.
        plan: String,
        /// Id of the execution.
        uid: String,
    },
    /// `planExecution` is set to this plan with a fresh uid.
    Schedule {
        /// Plan.
        plan: String,
        /// Spec that it runs on.
        source: SpecSource,
    },
    /// Finalizer, defaults of immutable parameters, `deploy`, stamp: as a creation through
    /// admission would have done.
    Create,
    /// The scheduled plan starts.
    Start {
        /// Spec that it runs on.
        source: SpecSource,
    },
    /// The scheduled plan starts where the run failed that it retries.
    Retry {
        /// Spec that it runs on.
        source: SpecSource,
    },
    /// The running plan goes on.
    Continue {
        /// Spec that it runs on.
        source: SpecSource,
    },
    /// The finished execution is taken out of `planExecution`.
    Clear,
    /// A request leads to this.
    Answer(RequestAnswer),
    /// The trigger is dropped: there is no spec that it could run on.
    Drop,
    /// Basis and stamp are set to the spec, without a rollout.
    Adopt,
    /// The stamp is set to the spec, which is that of the basis.
    Restamp,
    /// The difference is reported, neither carried out nor reverted.
    Report(DriftRefusal),
    /// The OperatorVersion of the spec to run is not there.
    Await(String),
    /// Before anything runs, the API server is asked whether packages may use this OperatorVersion
    /// of another namespace.
    Ask(NamespacedName),
    /// The finalizer comes off.
    Release {
        /// Text of the Warning Event, when it comes off without a cleanup.
        warning: Option<String>,
    },
    /// `cleanup` failed and is scheduled again after a back-off.
    RetryCleanup {
        /// How many runs have failed.
        failures: usize,
    },
}
