//! A capability and its machine.

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

use super::capability::{Capability, CapabilityKind, CapabilityKinds, Mode};
use super::handle::Assignment;
use super::machine::{CapabilityFacts, CapabilityTransition, Machine, RequiredKind, START_DEADLINE, Work};
use super::state::{ANSWER_DEADLINE, CapabilityPhase, WatchState};
use super::watch_request::{RequestedKind, ResourceNames, WatchRequest, WatchScope};

/// A capability and its machine.
pub(super) struct TrackedCapability {
    pub declared: &'static Capability,
    /// Its kinds, and whether each is required.
    pub requested: Vec<(RequestedKind, CapabilityKind, bool)>,
    pub machine: Machine,
    pub mode: Mode,
    /// The last reported work of its controller.
    pub at_work: Work,
    /// The assigned work of its controller.
    pub assignment: Assignment,
    pub work: watch::Sender<Assignment>,
    pub since: Instant,
    pub since_wall: Timestamp,
}

/// A transition of its controller.
pub(super) struct ReportedTransition {
    pub transition: CapabilityTransition,
    /// The definition that caused it.
    pub kind: String,
    /// The state of that definition.
    pub why: String,
}

impl TrackedCapability {
    pub(super) fn new(kinds: &CapabilityKinds) -> Self {
        let requested = |kind: &CapabilityKind, required| {
            let (group, name) = (kind.group.to_owned(), kind.kind.to_owned());
            (RequestedKind { group, kind: name, labelled: kind.labelled }, *kind, required)
        };
        let required = kinds.required.iter().map(|kind| requested(kind, true));
        let optional = kinds.optional.iter().map(|kind| requested(kind, false));
        Self {
            declared: kinds.declared,
            requested: required.chain(optional).collect(),
            machine: Machine::default(),
            mode: Mode::Auto,
            at_work: Work::None,
            assignment: Assignment::default(),
            work: watch::channel(Assignment::default()).0,
            since: Instant::now(),
            since_wall: Timestamp::now(),
        }
    }

    /// One step; returns whether anything changed, and the transition to report.
    pub(super) fn step(
        &mut self,
        facts: &CapabilityFacts,
        controlled: bool,
        now: Instant,
    ) -> (bool, Option<ReportedTransition>) {
        let before = self.machine.state().clone();
        let step = self.machine.step(facts);
        let changed = *self.machine.state() != before;
        if changed {
            (self.since, self.since_wall) = (now, Timestamp::now());
            let state = self.machine.state();
            tracing::info!(
                capability = self.declared.name,
                from = before.name(),
                to = state.name(),
                why = state.message(),
                "capability state changed"
            );
        }
        let assignment = step.work != self.assignment.work;
        if assignment {
            self.assignment = Assignment { work: step.work, epoch: facts.next_epoch };
            // Until the controller reports, its last work counts, or its assignment.
            if step.work == Work::Full || !controlled {
                self.at_work = step.work;
            }
        }
        let transitioned = step.transition.map(|transition| {
            let (kind, why) = cause(facts);
            ReportedTransition { transition, kind, why }
        });
        (changed || assignment, transitioned)
    }

    /// When a deadline alone changes the state.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let timed =
            matches!(self.machine.state(), CapabilityPhase::Starting(_) | CapabilityPhase::Unknown(None));
        let moments = [self.since + ANSWER_DEADLINE, self.since + START_DEADLINE];
        moments.into_iter().find(|at| timed && *at > now)
    }
}

/// The watch request of a capability for a kind.
pub(super) fn watch_request(kind: &CapabilityKind) -> WatchRequest {
    WatchRequest {
        versions: kind.versions.iter().map(|version| (*version).to_owned()).collect(),
        names: Some(ResourceNames { plural: kind.plural, namespaced: kind.namespaced }),
        scope: WatchScope { all: true, whole: true, managed_fields: kind.managed_fields },
    }
}

/// The definition that caused a transition, and its state.
fn cause(facts: &CapabilityFacts) -> (String, String) {
    let bad = facts.required.iter().find(|kind| kind.terminating || kind.watch_state != WatchState::Synced);
    let name = |kind: &RequiredKind| kind.name.clone();
    let why = |kind: &RequiredKind| match &kind.watch_state {
        WatchState::Listing => "was created anew".to_owned(),
        WatchState::Synced => "is being deleted".to_owned(),
        watch_state => watch_state.to_string(),
    };
    match bad.or(facts.required.first()) {
        Some(kind) if bad.is_some() => (name(kind), why(kind)),
        Some(kind) if facts.mode == Some(Mode::Off) => (name(kind), "is not used: switched off".to_owned()),
        Some(kind) => (name(kind), "can be used".to_owned()),
        None => Default::default(),
    }
}
