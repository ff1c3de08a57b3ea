//! What a pass of the engine knows of the cluster, and what it asks for.
//!
//! `advance` is called again and again within one pass: it names what it needs to see, the
//! controller looks that up; it names writes, the controller makes them and puts the answers
//! here; until it asks for nothing more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::api::interlock::Adoption;
use crate::api::kudo::PlanStatus;
use crate::api::object::{Gvk, ObjectKey};
use crate::effect::{ApiFailure, ChildWrite, Note};
use crate::plan::limits::RunLimits;

/// Whether the API server serves a kind, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindServed {
    /// Objects live in namespaces.
    Namespaced,
    /// Objects are cluster-scoped.
    Cluster,
    /// Not now, and perhaps later: there is no CustomResourceDefinition of it, or that is being
    /// deleted. What there was of it is gone, or about to be.
    Undefined,
    /// Not now, and perhaps later: its CustomResourceDefinition is there and does not serve it.
    /// What there is of it cannot be seen.
    Withheld,
    /// Not served, and never will be.
    No,
    /// Nobody can tell now.
    Unsure,
}

/// What was seen of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// It is not there.
    Absent,
    /// It is there, as the API server gave it, no field dropped.
    Present(Arc<Value>),
}

/// What a pass knows.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// Kinds that were looked up.
    pub kinds: BTreeMap<Gvk, KindServed>,
    /// Objects that were looked up, or answered by a write of this pass.
    pub objects: BTreeMap<ObjectKey, Found>,
    /// Writes and look-ups of this pass that failed, by object. The look-up that answers a
    /// [`Query`] takes its entry away, and reads past any cache where there was one.
    pub failures: BTreeMap<ObjectKey, ApiFailure>,
    /// What time it is, and how long what may take.
    pub limits: RunLimits,
    /// Whether objects that no Instance made are written.
    pub adoption: Adoption,
}

/// Something that must be looked up before the pass can go on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Query {
    /// How a kind is served.
    Kind(Gvk),
    /// An object.
    Object(ObjectKey),
    /// An object whose absence ends a task: where a cache does not have it, the API server is
    /// asked, as a cache that lags would let it live on.
    Certainly(ObjectKey),
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
    /// What tasks that finished have dealt with. Not recorded anywhere: whoever writes the state
    /// down empties it, and a new process begins with none.
    pub unsaved: BTreeSet<TaskObject>,
}

/// An object as tasks name it: group, kind and name, whatever its version and namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskObject {
    /// API group, empty for core.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name.
    pub name: String,
}

impl TaskObject {
    /// Of a kind and a name.
    pub fn new(gvk: &Gvk, name: &str) -> Self {
        Self { group: gvk.group.clone(), kind: gvk.kind.clone(), name: name.to_owned() }
    }
}

/// How far a task has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskProgress {
    /// Whether it is done.
    pub done: bool,
    /// Its writes, in order.
    pub lane: Vec<ChildWrite>,
    /// What it must see first.
    pub needs: BTreeSet<Query>,
    /// What it waits for.
    pub waiting: Vec<String>,
    /// What keeps it from ever going on, unless somebody does something.
    pub held: Option<String>,
    /// What people should hear of.
    pub notes: Vec<Note>,
    /// Kinds that it waits for, which are not served.
    pub absent: BTreeSet<Gvk>,
    /// Objects of a task that is done.
    pub dealt_with: BTreeSet<TaskObject>,
}

/// What one call of the engine leads to.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineStep {
    /// The run as it now stands.
    pub state: PlanState,
    /// Writes to make now, in lanes. Lanes are made at the same time and never touch the same
    /// object; inside a lane each write is made after the one before it succeeded, and the first
    /// that fails ends the lane.
    pub effects: Vec<Vec<ChildWrite>>,
    /// Whether the state must be written down before the effects are made: they change what a
    /// finished task has dealt with, and a process that did not know it to be finished would do
    /// that task again (create anew what was just deleted, scale back what was just scaled).
    pub save_first: bool,
    /// What must be looked up first; empty when nothing is missing.
    pub needs: BTreeSet<Query>,
    /// What unfinished tasks wait for, for people, in plan order.
    pub waiting: Vec<String>,
    /// Whether any of them waits for what may come by itself.
    pub may_pass: bool,
    /// When a limit runs out, if nothing happens before.
    pub wake: Option<Timestamp>,
    /// What keeps the first of them that it concerns from ever going on, unless somebody does
    /// something.
    pub held: Option<String>,
    /// The first error of a task that is tried again, for people.
    pub stalled: Option<String>,
    /// Kinds that tasks wait for, which are not served.
    pub absent: BTreeSet<Gvk>,
    /// The task error that ended the run: Event reason and text.
    pub fatal: Option<Fatal>,
    /// What was decided and people should hear of, such as an object that is kept; said once.
    pub notes: Vec<Note>,
}

/// An error that ended a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fatal {
    /// KUDO's event reason, such as `TaskRenderingError`.
    pub reason: String,
    /// The whole text.
    pub message: String,
}
