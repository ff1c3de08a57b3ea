//! What a pass of the engine decides on, and what it wants.
//!
//! The controller calls `advance` repeatedly within one pass: it gets what that lacks, makes the
//! writes and records the results here, until `advance` wants neither.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::api::interlock::{Adoption, CountedReferences};
use interlock_core::api::inventory::ObjectInventory;
use interlock_core::api::meta::condition as types;
use interlock_core::api::object::Gvk;
use interlock_core::effect::{Effect, Note};
use interlock_core::reconcile::{Facts, Needs};
use interlock_core::rejection::RejectionKind;
use jiff::{SignedDuration, Timestamp};

use crate::api::{HeldObject, PlanStatus};
use crate::package::dependencies::DependencyProblem;
use crate::package::time_limits::RunLimits;

/// What a pass of an Instance decides on.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// What was looked up of the cluster.
    pub facts: Facts,
    /// The references of pod templates that count in their hash.
    pub references: CountedReferences,
    /// Current time and time limits.
    pub limits: RunLimits,
    /// Whether tasks write objects that no Instance made.
    pub adoption: Adoption,
    /// What is wrong with the packages that the plan installs; looked up where a run starts.
    pub dependencies: Option<DependencyProblem>,
    /// Names of the Instances that the Instance owns, as last seen.
    pub children: BTreeSet<String>,
    /// Such objects that the run takes over, on request.
    pub adopts: BTreeSet<HeldObject>,
}

/// A run in progress: its entry in `planStatus`, and the tasks that are done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanState {
    /// The entry of the plan, with name, uid, phases and steps.
    pub status: PlanStatus,
    /// Finished tasks of steps that are not finished, by `phase/step`; never redone.
    pub done: BTreeMap<String, BTreeSet<String>>,
    /// When steps that are not finished began, by `phase/step`.
    pub begun: BTreeMap<String, Timestamp>,
    /// Objects of finished tasks. Never recorded: the code that saves the state empties it, and a
    /// new process begins without any.
    pub unsaved: BTreeSet<TaskObject>,
}

/// An object as tasks name it: group, kind and name, in any version and namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskObject {
    /// API group, empty for core.
    pub group: String,
    pub kind: String,
    pub name: String,
}

impl TaskObject {
    /// Of a kind and a name.
    pub fn new(gvk: &Gvk, name: &str) -> Self {
        Self { group: gvk.group.clone(), kind: gvk.kind.clone(), name: name.to_owned() }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskProgress {
    pub done: bool,
    /// Its writes, in order.
    pub lane: Vec<Effect>,
    /// What it lacks.
    pub needs: Needs,
    /// Why it waits, for people.
    pub waiting: Vec<String>,
    /// Why it cannot progress without human intervention.
    pub held: Option<String>,
    /// Which workload it waits for whose pods the API server rejects, and why.
    pub refused: Option<String>,
    /// Events to report.
    pub notes: Vec<Note>,
    /// Kinds that it waits for, which are not served.
    pub absent: BTreeSet<Gvk>,
    /// Objects of a task that is done.
    pub dealt_with: BTreeSet<TaskObject>,
}

/// Result of one call of the engine.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineStep {
    /// The run after the call.
    pub state: PlanState,
    /// Writes to make now, in batches. Batches run concurrently and never touch the same object;
    /// within a batch each write follows the success of the one before it, and the first failure
    /// ends the batch.
    pub effects: Vec<Vec<Effect>>,
    /// Whether the state must be saved before the writes: they change objects of a finished task,
    /// and a process that did not know it to be finished would repeat that task (recreate a deleted
    /// object, scale back a scaled one).
    pub save_first: bool,
    /// Whether the Instance needs our finalizer before the writes: they make cluster-scoped objects, which nothing else
    /// removes once it is gone.
    pub finalizer: bool,
    /// The inventory, where it must be saved before the writes, or before the end of the run.
    pub inventory: Option<ObjectInventory>,
    /// What it lacks, which comes first.
    pub needs: Needs,
    /// Why unfinished tasks wait, for people, in plan order.
    pub waiting: Vec<String>,
    /// Whether any of them waits for a state that may come by itself.
    pub may_pass: bool,
    /// When the next limit expires.
    pub wake: Option<Timestamp>,
    /// Why the first task that is blocked cannot progress without human intervention.
    pub held: Option<String>,
    /// The first error of a task that is tried again; one that only a person can remedy comes first.
    pub failure: Option<TaskFailure>,
    /// Kinds that tasks wait for, which are not served.
    pub absent: BTreeSet<Gvk>,
    /// The task error that ended the run: Event reason and text.
    pub fatal: Option<Fatal>,
    /// Objects that no Instance made and that ended the run: those that can be taken over.
    pub held_by: BTreeSet<HeldObject>,
    /// Events about decisions, such as an object that is kept; reported once.
    pub notes: Vec<Note>,
}

impl EngineStep {
    /// Records an error of a task that is tried again.
    pub(super) fn failed(&mut self, failure: TaskFailure) {
        let known = self
            .failure
            .as_ref()
            .is_some_and(|known| known.kind.stalls().is_some() || failure.kind.stalls().is_none());
        if !known {
            self.failure = Some(failure);
        }
    }
}

/// An error of a task that is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFailure {
    /// Whether it may pass by itself.
    pub kind: FailureKind,
    /// For people.
    pub message: String,
}

/// Whether an error may pass by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It may.
    Transient,
    /// The task was interrupted, and is nearer to its end than before.
    Interrupted,
    /// The API server rejected a request.
    Rejected(RejectionKind),
    /// The API server rejects the pods of a workload that a step waits for. Its controller creates them again, so the
    /// run goes on by itself when they are accepted.
    PodsRefused,
    /// A kind is not served: only a person can help.
    MissingDefinition,
}

/// For how long after the start of a run an interrupted task goes on soon. All keys that a task may make take less;
/// what is kept of them gives way to others, so progress alone is no bound.
const SOON_FOR: SignedDuration = SignedDuration::from_mins(10);

impl TaskFailure {
    /// Whether the task goes on soon, and not after a back-off, in a run that started then.
    pub fn goes_on_soon(&self, started: Timestamp, now: Timestamp) -> bool {
        self.kind == FailureKind::Interrupted && now.duration_since(started) < SOON_FOR
    }
}

impl FailureKind {
    /// The reason of `Stalled` where only a person can help.
    pub fn stalls(self) -> Option<&'static str> {
        match self {
            Self::Transient | Self::Interrupted => None,
            Self::Rejected(kind) => kind.needs_person().then(|| self.reason()),
            Self::PodsRefused | Self::MissingDefinition => Some(self.reason()),
        }
    }

    /// The reason of `Stalled`, at the latest after some time.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Transient | Self::Interrupted => types::TRANSIENT_ERROR,
            // Of the account of the package; a right that the process lacks is another matter.
            Self::Rejected(RejectionKind::MissingRight | RejectionKind::NotInSchema) => {
                types::REQUEST_REFUSED
            }
            Self::Rejected(kind) => kind.reason(),
            Self::PodsRefused => types::PODS_REFUSED,
            Self::MissingDefinition => types::MISSING_DEPENDENCY,
        }
    }
}

/// An error that ended a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fatal {
    /// KUDO's event reason, such as `TaskRenderingError`.
    pub reason: String,
    /// The whole text.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::young(FailureKind::Interrupted, 599, true)]
    #[case::a_search_without_end(FailureKind::Interrupted, 600, false)]
    #[case::another_failure(FailureKind::Transient, 0, false)]
    fn an_interrupted_task_goes_on_soon_for_a_time(
        #[case] kind: FailureKind,
        #[case] seconds: i64,
        #[case] expected: bool,
    ) {
        let failure = TaskFailure { kind, message: String::new() };
        let started = Timestamp::UNIX_EPOCH;
        assert_eq!(failure.goes_on_soon(started, started + SignedDuration::from_secs(seconds)), expected);
    }
}
