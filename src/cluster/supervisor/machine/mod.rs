//! One step of a capability, as a pure function: the watch states of its kinds -> its state and the work of
//! its controller.
//!
//! It is level-based, so that no order of events and no lost event can leave it in a wrong state: the
//! driver calls [`Machine::step`] after every change, until the result is stable.
//!
//! ```text
//! Disabled, Waiting, Forbidden, Unknown(None) ──► Starting(e) ──all synced──► Running(e)
//!        ▲                                            │ 60 s        ▲            │ broken
//!        │                                            └──────► Degraded(e) ◄─────┤
//!        └──── nothing of e runs any more ── Draining(e) ◄── missing, leaving, refused, off,
//!                                                            another CRD identity
//! Starting(e) ──a definition lacks fields that we write──► Outdated(e) ──► Running(e)
//! ```

use std::time::Duration;

use super::capability::Mode;
use super::state::{CapabilityPhase, Epoch, Missing, NotReadyReason, RefusedKind, WatchState};

/// How long listing the kinds of a capability may take before it counts as a fault.
pub const START_DEADLINE: Duration = Duration::from_secs(60);

/// The work of a capability's controller, as assigned or reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// Nothing.
    #[default]
    None,
    /// Status only: report on objects that they are not reconciled, and why.
    StatusOnly,
    /// Also remove our finalizers from objects that are being deleted.
    Deletions,
    /// Everything.
    Full,
}

/// A required kind of a capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredKind {
    /// Name of its definition.
    pub name: String,
    /// Whether its objects carry our finalizer.
    pub finalized: bool,
    pub watch_state: WatchState,
    /// Whether its definition is being deleted.
    pub terminating: bool,
    /// The fields of `status` that we write and that its definition lacks.
    pub dropped: Vec<&'static str>,
    /// Changes with the definition's uid and the version in use.
    pub crd_identity: Epoch,
}

/// The input of a step.
#[derive(Clone, Debug)]
pub struct CapabilityFacts {
    /// Its mode; `None` while that is unknown: then it does not start.
    pub mode: Option<Mode>,
    /// Whether the definitions can be watched.
    pub definitions_known: bool,
    pub required: Vec<RequiredKind>,
    /// The current work of its controller.
    pub at_work: Work,
    /// How long the capability has been in its state.
    pub waited: Duration,
    /// The epoch for a start that is decided now.
    pub next_epoch: Epoch,
}

/// A transition that an Event reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapabilityTransition {
    /// Its controller starts to work.
    Started,
    /// Its controller stops.
    Stopped,
}

/// The result of a step.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CapabilityStep {
    /// The assigned work of its controller.
    pub work: Work,
    /// The transition to report.
    pub transition: Option<CapabilityTransition>,
}

/// A capability and its memory.
#[derive(Clone, Debug)]
pub struct Machine {
    state: CapabilityPhase,
    /// Whether its controller has had full work in this epoch: never before all kinds are synced.
    started: bool,
    /// CRD identities of the kinds of this epoch.
    crd_identities: Vec<Epoch>,
    mode: Mode,
    /// Whether it may start under [`Mode::Manual`].
    may_start: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            state: CapabilityPhase::Unknown(None),
            started: false,
            crd_identities: Vec::new(),
            mode: Mode::Auto,
            may_start: true,
        }
    }
}

/// The evaluation of the facts: the first that applies.
enum Availability {
    Off,
    Unknown,
    Missing(Vec<Missing>),
    /// No kind is missing, and the definitions of these are being deleted.
    Terminating(Vec<Missing>),
    Refused(RefusedKind),
    Listing,
    Broken(String),
    /// A definition lacks fields that we write.
    Outdated(String),
    Whole,
}

impl Machine {
    pub fn state(&self) -> &CapabilityPhase {
        &self.state
    }

    /// Makes at most one transition.
    pub fn step(&mut self, facts: &CapabilityFacts) -> CapabilityStep {
        self.grant_start(facts);
        let (availability, worked) = (self.availability(facts), self.started);
        self.state = self.next(&availability, facts);
        if let CapabilityPhase::Starting(_) = self.state {
            self.crd_identities = crd_identities(facts);
        }
        self.started = match &self.state {
            CapabilityPhase::Running(_) => true,
            CapabilityPhase::Degraded(..) | CapabilityPhase::Unknown(Some(_)) => worked,
            _ => false,
        };
        let transition = match (worked, self.started) {
            (false, true) => Some(CapabilityTransition::Started),
            (true, false) => Some(CapabilityTransition::Stopped),
            _ => None,
        };
        CapabilityStep { work: self.work(facts), transition }
    }

    /// Under [`Mode::Manual`], a missing kind revokes the permission to start; setting the mode grants it
    /// again.
    fn grant_start(&mut self, facts: &CapabilityFacts) {
        let Some(mode) = facts.mode else { return };
        if mode != self.mode || mode == Mode::Auto {
            self.may_start = true;
        }
        self.mode = mode;
        if mode == Mode::Manual && facts.definitions_known && !missing(facts, absent).is_empty() {
            self.may_start = false;
        }
    }

    fn availability(&self, facts: &CapabilityFacts) -> Availability {
        if facts.mode == Some(Mode::Off) {
            return Availability::Off;
        }
        if !facts.definitions_known {
            return Availability::Unknown;
        }
        if facts.mode.is_none() {
            return Availability::Listing;
        }
        let gone = missing(facts, absent);
        if !gone.is_empty() {
            return Availability::Missing(missing(facts, |kind| absent(kind).or_else(|| terminating(kind))));
        }
        let terminating_kinds = missing(facts, terminating);
        if !terminating_kinds.is_empty() {
            return Availability::Terminating(terminating_kinds);
        }
        if !self.may_start {
            return Availability::Missing(missing(facts, |_| Some(NotReadyReason::Manual)));
        }
        let of = |find: fn(&RequiredKind) -> Option<Availability>| facts.required.iter().find_map(find);
        let refused = of(|kind| match kind.watch_state {
            WatchState::Forbidden(verb) => {
                Some(Availability::Refused(RefusedKind { name: kind.name.clone(), verb }))
            }
            _ => None,
        });
        let listing =
            || of(|kind| matches!(kind.watch_state, WatchState::Listing).then_some(Availability::Listing));
        let broken = || {
            of(|kind| match &kind.watch_state {
                WatchState::Broken(why) => Some(Availability::Broken(format!("{}: {why}", kind.name))),
                _ => None,
            })
        };
        let outdated = || of(|kind| outdated(kind).map(Availability::Outdated));
        refused.or_else(broken).or_else(listing).or_else(outdated).unwrap_or(Availability::Whole)
    }

    fn next(&self, availability: &Availability, facts: &CapabilityFacts) -> CapabilityPhase {
        match self.state.clone() {
            CapabilityPhase::Draining(epoch)
                if facts.at_work == Work::Full || matches!(availability, Availability::Terminating(_)) =>
            {
                CapabilityPhase::Draining(epoch)
            }
            CapabilityPhase::Starting(epoch) => self.starting(epoch, availability, facts),
            CapabilityPhase::Running(epoch)
            | CapabilityPhase::Degraded(epoch, _)
            | CapabilityPhase::Outdated(epoch, _)
            | CapabilityPhase::Unknown(Some(epoch)) => self.running(epoch, availability, facts),
            CapabilityPhase::Disabled
            | CapabilityPhase::Waiting(_)
            | CapabilityPhase::Forbidden(_)
            | CapabilityPhase::Unknown(None)
            | CapabilityPhase::Draining(_) => idle(availability, facts),
        }
    }

    fn starting(
        &self,
        epoch: Epoch,
        availability: &Availability,
        facts: &CapabilityFacts,
    ) -> CapabilityPhase {
        let late = facts.waited >= START_DEADLINE;
        match availability {
            Availability::Unknown => CapabilityPhase::Starting(epoch),
            _ if self.crd_identities != crd_identities(facts) => idle(availability, facts),
            Availability::Whole => CapabilityPhase::Running(epoch),
            Availability::Outdated(why) => CapabilityPhase::Outdated(epoch, why.clone()),
            Availability::Broken(why) if late => CapabilityPhase::Degraded(epoch, why.clone()),
            Availability::Listing if late => {
                let why = format!("not every kind was listed within {} s", START_DEADLINE.as_secs());
                CapabilityPhase::Degraded(epoch, why)
            }
            Availability::Listing | Availability::Broken(_) => CapabilityPhase::Starting(epoch),
            _ => idle(availability, facts),
        }
    }

    /// The next state from one in which the controller works, or would if every kind had been listed.
    fn running(&self, epoch: Epoch, availability: &Availability, facts: &CapabilityFacts) -> CapabilityPhase {
        let same_identities = self.crd_identities == crd_identities(facts);
        match availability {
            Availability::Unknown if self.started => CapabilityPhase::Unknown(Some(epoch)),
            Availability::Whole if same_identities => CapabilityPhase::Running(epoch),
            Availability::Broken(why) if same_identities => CapabilityPhase::Degraded(epoch, why.clone()),
            Availability::Outdated(why) if same_identities && !self.started => {
                CapabilityPhase::Outdated(epoch, why.clone())
            }
            // A listed kind stays known under the same CRD identity.
            Availability::Listing if same_identities => self.state.clone(),
            _ if self.started => CapabilityPhase::Draining(epoch),
            _ => idle(availability, facts),
        }
    }

    fn work(&self, facts: &CapabilityFacts) -> Work {
        if self.started {
            return Work::Full;
        }
        let Some(finalized) = facts.required.iter().find(|kind| kind.finalized) else { return Work::None };
        // A kind that is being listed is not empty: a package not listed yet is not gone.
        let listed = facts.required.iter().all(|kind| kind.watch_state != WatchState::Listing);
        let kinds_missing = facts.required.iter().any(|kind| absent(kind).is_some() || kind.terminating);
        // A disabled capability only works for a definition that would stay terminating.
        let finalizes = if facts.mode == Some(Mode::Off) { finalized.terminating } else { kinds_missing };
        match self.state {
            _ if finalized.watch_state != WatchState::Synced => Work::None,
            CapabilityPhase::Draining(_) | CapabilityPhase::Waiting(_) | CapabilityPhase::Disabled
                if finalizes && listed =>
            {
                Work::Deletions
            }
            CapabilityPhase::Waiting(_)
            | CapabilityPhase::Forbidden(_)
            | CapabilityPhase::Disabled
            | CapabilityPhase::Outdated(..)
            | CapabilityPhase::Degraded(..) => Work::StatusOnly,
            _ => Work::None,
        }
    }
}

/// The next state of a capability without running work.
fn idle(availability: &Availability, facts: &CapabilityFacts) -> CapabilityPhase {
    match availability {
        Availability::Off => CapabilityPhase::Disabled,
        Availability::Unknown => CapabilityPhase::Unknown(None),
        Availability::Missing(missing) => CapabilityPhase::Waiting(missing.clone()),
        Availability::Terminating(terminating_kinds) => {
            let ours = facts.required.iter().any(|kind| kind.terminating && kind.finalized);
            if ours {
                CapabilityPhase::Draining(facts.next_epoch)
            } else {
                CapabilityPhase::Waiting(terminating_kinds.clone())
            }
        }
        Availability::Refused(refused) => CapabilityPhase::Forbidden(refused.clone()),
        Availability::Listing | Availability::Broken(_) | Availability::Outdated(_) | Availability::Whole => {
            CapabilityPhase::Starting(facts.next_epoch)
        }
    }
}

fn crd_identities(facts: &CapabilityFacts) -> Vec<Epoch> {
    facts.required.iter().map(|kind| kind.crd_identity).collect()
}

fn missing(
    facts: &CapabilityFacts,
    reason: impl Fn(&RequiredKind) -> Option<NotReadyReason>,
) -> Vec<Missing> {
    let named = |kind: &RequiredKind| Some(Missing { name: kind.name.clone(), why: reason(kind)? });
    facts.required.iter().filter_map(named).collect()
}

fn absent(kind: &RequiredKind) -> Option<NotReadyReason> {
    match &kind.watch_state {
        WatchState::Absent(absence) => Some(NotReadyReason::Absent(absence.clone())),
        _ => None,
    }
}

/// What a definition lacks, and the remedy.
fn outdated(kind: &RequiredKind) -> Option<String> {
    let fields: Vec<String> = kind.dropped.iter().map(|field| format!("status.{field}")).collect();
    (!fields.is_empty()).then(|| {
        format!(
            "CustomResourceDefinition {} lacks {}, so that the API server would drop what is recorded there: \
             apply the definitions of this version (`interlock render crds | kubectl apply --server-side \
             --force-conflicts -f -`)",
            kind.name,
            fields.join(", ")
        )
    })
}

fn terminating(kind: &RequiredKind) -> Option<NotReadyReason> {
    kind.terminating.then_some(NotReadyReason::Terminating)
}

#[cfg(test)]
mod tests;
