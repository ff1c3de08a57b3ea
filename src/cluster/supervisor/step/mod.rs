//! One look at a capability, as a pure function: how its kinds are seen -> where it stands and
//! what runs.
//!
//! It looks at what is there and not at what happened, so that no order of events and no lost
//! event can leave it in a wrong state: [`Machine::step`] is asked again whenever anything has
//! changed, until it answers the same.
//!
//! ```text
//! Disabled, Waiting, Forbidden, Unknown(None) ──► Starting(e) ──all synced──► Running(e)
//!        ▲                                            │ 60 s        ▲            │ broken
//!        │                                            └──────► Degraded(e) ◄─────┤
//!        └──── nothing of e runs any more ── Draining(e) ◄── missing, leaving, refused, off,
//!                                                            another world
//! ```

use std::time::Duration;

use super::capability::Mode;
use super::state::{Epoch, Lack, Missing, Refused, Sight, State};

/// How long the kinds of a capability may take to be listed before that is a fault.
pub const START_DEADLINE: Duration = Duration::from_secs(60);

/// What the controller of a capability shall do, or does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// Nothing.
    #[default]
    None,
    /// Only to say on objects that nothing is done for them, and why.
    Say,
    /// Besides, what lets objects go that are being deleted: our finalizers come off.
    Deletions,
    /// Everything.
    Full,
}

/// How a required kind is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Name of its definition.
    pub name: String,
    /// Whether its objects carry our finalizer.
    pub finalized: bool,
    /// How it is seen.
    pub sight: Sight,
    /// Whether its definition is being deleted.
    pub leaving: bool,
    /// Changes with the definition's uid and the version that is used.
    pub world: Epoch,
}

/// All that a look takes in.
#[derive(Clone, Debug)]
pub struct Facts {
    /// What its users want; `None` while that is not known: then it does not start.
    pub mode: Option<Mode>,
    /// Whether the definitions can be watched.
    pub definitions_known: bool,
    /// Its required kinds.
    pub required: Vec<Seen>,
    /// What its controller does now.
    pub at_work: Work,
    /// How long the capability has stood where it stands.
    pub waited: Duration,
    /// The epoch of a start that is decided now.
    pub next_epoch: Epoch,
}

/// What an Event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Its controller starts to work.
    Started,
    /// Its controller stops.
    Stopped,
}

/// What is to be done.
#[must_use]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// What its controller shall do from now on.
    pub work: Work,
    /// What people should hear of.
    pub turn: Option<Turn>,
}

/// A capability and what it remembers.
#[derive(Clone, Debug)]
pub struct Machine {
    state: State,
    /// Whether its controller has worked in full in this epoch: never before all is known.
    started: bool,
    /// Worlds of the kinds that this epoch is about.
    worlds: Vec<Epoch>,
    mode: Mode,
    /// Whether it may start under [`Mode::Manual`].
    invited: bool,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            state: State::Unknown(None),
            started: false,
            worlds: Vec::new(),
            mode: Mode::Auto,
            invited: true,
        }
    }
}

/// What the facts come to, the first that applies.
enum Verdict {
    Off,
    Unknown,
    Missing(Vec<Missing>),
    /// Nothing is missing, and these are about to be.
    Leaving(Vec<Missing>),
    Refused(Refused),
    Listing,
    Broken(String),
    Whole,
}

impl Machine {
    /// Where the capability stands.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Looks, and goes at most one step.
    pub fn step(&mut self, facts: &Facts) -> Step {
        self.invite(facts);
        let (verdict, worked) = (self.verdict(facts), self.started);
        self.state = self.next(&verdict, facts);
        if let State::Starting(_) = self.state {
            self.worlds = worlds(facts);
        }
        self.started = match &self.state {
            State::Running(_) => true,
            State::Degraded(..) | State::Unknown(Some(_)) => worked,
            _ => false,
        };
        let turn = match (worked, self.started) {
            (false, true) => Some(Turn::Started),
            (true, false) => Some(Turn::Stopped),
            _ => None,
        };
        Step { work: self.work(facts), turn }
    }

    /// Under [`Mode::Manual`], a kind that is missing takes the right to start away; setting the
    /// mode gives it back.
    fn invite(&mut self, facts: &Facts) {
        let Some(mode) = facts.mode else { return };
        if mode != self.mode || mode == Mode::Auto {
            self.invited = true;
        }
        self.mode = mode;
        if mode == Mode::Manual && facts.definitions_known && !missing(facts, absent).is_empty() {
            self.invited = false;
        }
    }

    fn verdict(&self, facts: &Facts) -> Verdict {
        if facts.mode == Some(Mode::Off) {
            return Verdict::Off;
        }
        if !facts.definitions_known {
            return Verdict::Unknown;
        }
        if facts.mode.is_none() {
            return Verdict::Listing;
        }
        let gone = missing(facts, absent);
        if !gone.is_empty() {
            return Verdict::Missing(missing(facts, |kind| absent(kind).or_else(|| leaving(kind))));
        }
        let going = missing(facts, leaving);
        if !going.is_empty() {
            return Verdict::Leaving(going);
        }
        if !self.invited {
            return Verdict::Missing(missing(facts, |_| Some(Lack::Manual)));
        }
        let of = |find: fn(&Seen) -> Option<Verdict>| facts.required.iter().find_map(find);
        let refused = of(|kind| match kind.sight {
            Sight::Forbidden(verb) => Some(Verdict::Refused(Refused { name: kind.name.clone(), verb })),
            _ => None,
        });
        let listing = || of(|kind| matches!(kind.sight, Sight::Listing).then_some(Verdict::Listing));
        let broken = || {
            of(|kind| match &kind.sight {
                Sight::Broken(why) => Some(Verdict::Broken(format!("{}: {why}", kind.name))),
                _ => None,
            })
        };
        refused.or_else(broken).or_else(listing).unwrap_or(Verdict::Whole)
    }

    fn next(&self, verdict: &Verdict, facts: &Facts) -> State {
        match self.state.clone() {
            State::Draining(epoch)
                if facts.at_work == Work::Full || matches!(verdict, Verdict::Leaving(_)) =>
            {
                State::Draining(epoch)
            }
            State::Starting(epoch) => self.starting(epoch, verdict, facts),
            State::Running(epoch) | State::Degraded(epoch, _) | State::Unknown(Some(epoch)) => {
                self.running(epoch, verdict, facts)
            }
            State::Disabled
            | State::Waiting(_)
            | State::Forbidden(_)
            | State::Unknown(None)
            | State::Draining(_) => at_rest(verdict, facts),
        }
    }

    fn starting(&self, epoch: Epoch, verdict: &Verdict, facts: &Facts) -> State {
        let late = facts.waited >= START_DEADLINE;
        match verdict {
            Verdict::Unknown => State::Starting(epoch),
            _ if self.worlds != worlds(facts) => at_rest(verdict, facts),
            Verdict::Whole => State::Running(epoch),
            Verdict::Broken(why) if late => State::Degraded(epoch, why.clone()),
            Verdict::Listing if late => {
                let why = format!("not every kind was listed within {} s", START_DEADLINE.as_secs());
                State::Degraded(epoch, why)
            }
            Verdict::Listing | Verdict::Broken(_) => State::Starting(epoch),
            _ => at_rest(verdict, facts),
        }
    }

    /// From a state in which the controller works, or would if everything had been listed.
    fn running(&self, epoch: Epoch, verdict: &Verdict, facts: &Facts) -> State {
        let same_world = self.worlds == worlds(facts);
        match verdict {
            Verdict::Unknown if self.started => State::Unknown(Some(epoch)),
            Verdict::Whole if same_world => State::Running(epoch),
            Verdict::Broken(why) if same_world => State::Degraded(epoch, why.clone()),
            // What has been listed once is known for as long as its world lasts.
            Verdict::Listing if same_world => self.state.clone(),
            _ if self.started => State::Draining(epoch),
            _ => at_rest(verdict, facts),
        }
    }

    fn work(&self, facts: &Facts) -> Work {
        if self.started {
            return Work::Full;
        }
        let Some(finalized) = facts.required.iter().find(|kind| kind.finalized) else { return Work::None };
        // What is being listed does not read as "none": a package that is not seen yet is not gone.
        let listed = facts.required.iter().all(|kind| kind.sight != Sight::Listing);
        let deprived = facts.required.iter().any(|kind| absent(kind).is_some() || kind.leaving);
        // Switched off, nothing is done but for a definition that would never go.
        let lets_go = if facts.mode == Some(Mode::Off) { finalized.leaving } else { deprived };
        match self.state {
            _ if finalized.sight != Sight::Synced => Work::None,
            State::Draining(_) | State::Waiting(_) | State::Disabled if lets_go && listed => Work::Deletions,
            State::Waiting(_) | State::Forbidden(_) | State::Disabled | State::Degraded(..) => Work::Say,
            _ => Work::None,
        }
    }
}

/// Where a capability goes of which nothing runs.
fn at_rest(verdict: &Verdict, facts: &Facts) -> State {
    match verdict {
        Verdict::Off => State::Disabled,
        Verdict::Unknown => State::Unknown(None),
        Verdict::Missing(missing) => State::Waiting(missing.clone()),
        Verdict::Leaving(going) => {
            let ours = facts.required.iter().any(|kind| kind.leaving && kind.finalized);
            if ours { State::Draining(facts.next_epoch) } else { State::Waiting(going.clone()) }
        }
        Verdict::Refused(refused) => State::Forbidden(refused.clone()),
        Verdict::Listing | Verdict::Broken(_) | Verdict::Whole => State::Starting(facts.next_epoch),
    }
}

fn worlds(facts: &Facts) -> Vec<Epoch> {
    facts.required.iter().map(|kind| kind.world).collect()
}

fn missing(facts: &Facts, lack: impl Fn(&Seen) -> Option<Lack>) -> Vec<Missing> {
    let named = |kind: &Seen| Some(Missing { name: kind.name.clone(), why: lack(kind)? });
    facts.required.iter().filter_map(named).collect()
}

fn absent(kind: &Seen) -> Option<Lack> {
    match &kind.sight {
        Sight::Absent(absence) => Some(Lack::Absent(absence.clone())),
        _ => None,
    }
}

fn leaving(kind: &Seen) -> Option<Lack> {
    kind.leaving.then_some(Lack::Leaving)
}

#[cfg(test)]
mod tests;
