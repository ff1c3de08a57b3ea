//! A capability and its machine.

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

use super::capability::{Capability, Kind, Mode};
use super::handle::Assignment;
use super::need::{Need, Reach, Shape, Want};
use super::state::{ANSWER_DEADLINE, Sight, State};
use super::step::{Facts, Machine, START_DEADLINE, Seen, Turn, Work};

/// A capability and its machine.
pub(super) struct Tracked {
    pub declared: &'static Capability,
    /// Its kinds, and whether it cannot do without them.
    pub wants: Vec<(Want, &'static Kind, bool)>,
    pub machine: Machine,
    pub mode: Mode,
    /// What its controller does, as far as is known.
    pub at_work: Work,
    /// What its controller is told to do.
    pub told: Assignment,
    pub work: watch::Sender<Assignment>,
    pub since: Instant,
    pub since_wall: Timestamp,
}

/// Its controller starts or stops.
pub(super) struct Turned {
    pub turn: Turn,
    /// The definition that it is about.
    pub kind: String,
    /// What is with that.
    pub why: String,
}

impl Tracked {
    pub(super) fn new(declared: &'static Capability) -> Self {
        let want = |kind: &'static Kind, required| {
            let (group, name) = (kind.group.to_owned(), kind.kind.to_owned());
            (Want { group, kind: name, labelled: kind.labelled }, kind, required)
        };
        let required = declared.required.iter().map(|kind| want(kind, true));
        let optional = declared.optional.iter().map(|kind| want(kind, false));
        Self {
            declared,
            wants: required.chain(optional).collect(),
            machine: Machine::default(),
            mode: Mode::Auto,
            at_work: Work::None,
            told: Assignment::default(),
            work: watch::channel(Assignment::default()).0,
            since: Instant::now(),
            since_wall: Timestamp::now(),
        }
    }

    /// One look; whether anything changed, and whether its controller is to hear of it.
    pub(super) fn look(&mut self, facts: &Facts, controlled: bool, now: Instant) -> (bool, Option<Turned>) {
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
                "a capability turned"
            );
        }
        let told = step.work != self.told.work;
        if told {
            self.told = Assignment { work: step.work, epoch: facts.next_epoch };
            // Until the controller says otherwise it does what it did, or what it is told.
            if step.work == Work::Full || !controlled {
                self.at_work = step.work;
            }
        }
        let turned = step.turn.map(|turn| {
            let (kind, why) = culprit(facts);
            Turned { turn, kind, why }
        });
        (changed || told, turned)
    }

    /// When the time alone changes something.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let timed = matches!(self.machine.state(), State::Starting(_) | State::Unknown(None));
        let moments = [self.since + ANSWER_DEADLINE, self.since + START_DEADLINE];
        moments.into_iter().find(|at| timed && *at > now)
    }
}

/// What a capability needs of a kind.
pub(super) fn need(kind: &Kind) -> Need {
    Need {
        versions: kind.versions.iter().map(|version| (*version).to_owned()).collect(),
        shape: Some(Shape { plural: kind.plural, namespaced: kind.namespaced }),
        reach: Reach { all: true, whole: true },
    }
}

/// The definition that a turn is about, and what is with it.
fn culprit(facts: &Facts) -> (String, String) {
    let bad = facts.required.iter().find(|kind| kind.leaving || kind.sight != Sight::Synced);
    let name = |kind: &Seen| kind.name.clone();
    let why = |kind: &Seen| match &kind.sight {
        Sight::Listing => "was made anew".to_owned(),
        Sight::Synced => "is being deleted".to_owned(),
        sight => sight.to_string(),
    };
    match bad.or(facts.required.first()) {
        Some(kind) if bad.is_some() => (name(kind), why(kind)),
        Some(kind) if facts.mode == Some(Mode::Off) => (name(kind), "is not used: switched off".to_owned()),
        Some(kind) => (name(kind), "can be used".to_owned()),
        None => Default::default(),
    }
}
