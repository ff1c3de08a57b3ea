//! One watched kind, as a pure machine: who needs it, whether it is served, what its watch said
//! -> whether a watch is to be opened or closed, and how the kind is seen.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::state::{Epoch, Sight, Verb};
use crate::api::object::{Gvk, NamespacedName};
use crate::api::watched::Labelled;
use crate::cluster::crds::{Absence, Usable};
use crate::cluster::watch::{LONGEST_PAUSE, Pace};

/// A kind that something needs, at the first of these versions that is served.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Want {
    /// API group, empty for core.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Versions that will do, best first.
    pub versions: Vec<String>,
    /// The labelled objects that alone are needed; `None` for all, or for what packages made.
    pub labelled: Option<&'static Labelled>,
}

impl From<&Gvk> for Want {
    fn from(gvk: &Gvk) -> Self {
        Self {
            group: gvk.group.clone(),
            kind: gvk.kind.clone(),
            versions: vec![gvk.version.clone()],
            labelled: None,
        }
    }
}

/// Who needs a kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Needer {
    /// A capability, by name.
    Capability(&'static str),
    /// What a package makes: its OperatorVersion, while Instances refer to it.
    Package(NamespacedName),
    /// What one Instance was seen to make beyond that.
    Instance(NamespacedName),
}

/// How much of a kind is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// All objects, not only those that packages made.
    pub all: bool,
    /// Whole objects, not only their metadata.
    pub whole: bool,
}

impl Reach {
    fn and(self, other: Self) -> Self {
        Self { all: self.all || other.all, whole: self.whole || other.whole }
    }

    fn covers(self, other: Self) -> bool {
        self.and(other) == self
    }
}

/// How long a kind that nobody needs any more is watched on: an Instance that is deleted and
/// made anew, or a package that is updated, costs no new list.
pub const GRACE: Duration = Duration::from_secs(60);

/// How long a kind may be in trouble before that is said.
pub const HICCUP: Duration = Duration::from_secs(10);

/// How long a kind that is established may be answered 404: its endpoint lags behind.
const LAG: Duration = Duration::from_secs(30);

/// First pause after a refusal; doubled up to 30 s.
const AFTER_REFUSAL: Duration = Duration::from_secs(1);

/// What the watch of a kind reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// All of it has been delivered, and the watch is open.
    Flowing,
    /// It is tried again.
    Trouble(String),
    /// It was refused, and has ended.
    Refused(Verb),
    /// The kind was not found, and the watch has ended.
    NotFound,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Act {
    /// Open a watch under this epoch; one that is open is closed. What is known stays known
    /// until it is listed anew.
    Open {
        /// Its number.
        epoch: Epoch,
        /// How the kind is served.
        usable: Usable,
        /// How much of it is watched.
        reach: Reach,
    },
    /// Close the watch. What is known stays, out of date: unavailable is not empty.
    Close,
    /// Close the watch; the kind is gone, and every object of it with it.
    Gone,
    /// Close the watch and forget what is known: nobody needs it.
    Forget,
}

#[derive(Clone, Debug)]
struct Open {
    epoch: Epoch,
    reach: Reach,
    /// One flag for each of its streams: whether its watch is open. There is one stream, or one
    /// for each namespace.
    flows: Vec<bool>,
    /// Whether its streams run; one that ended is opened anew after a pause.
    running: bool,
}

/// The machine.
#[derive(Debug)]
pub struct Watched {
    needers: BTreeMap<Needer, Reach>,
    unused_since: Option<Instant>,
    found: Result<Usable, Absence>,
    /// Changes with the identity.
    world: Epoch,
    /// Whether all of it has been listed in this world.
    listed: bool,
    /// Whether anything may be known of it.
    known: bool,
    open: Option<Open>,
    refused: Option<Verb>,
    trouble: Option<(Instant, String)>,
    again: Option<Instant>,
    refusals: u32,
    pace: Pace,
    streams: usize,
}

impl Watched {
    /// A kind that nobody has looked for yet; `streams` is how many watches it takes.
    pub fn new(streams: usize, now: Instant) -> Self {
        Self {
            needers: BTreeMap::new(),
            unused_since: Some(now),
            found: Err(Absence::Missing),
            world: Epoch(0),
            listed: false,
            known: false,
            open: None,
            refused: None,
            trouble: None,
            again: None,
            refusals: 0,
            pace: Pace::new(),
            streams,
        }
    }

    /// Somebody needs it.
    pub fn need(&mut self, needer: Needer, reach: Reach) {
        self.needers.insert(needer, reach);
        self.unused_since = None;
    }

    /// Somebody does not need it any more.
    pub fn release(&mut self, needer: &Needer, now: Instant) {
        self.needers.remove(needer);
        if self.needers.is_empty() && self.unused_since.is_none() {
            self.unused_since = Some(now);
        }
    }

    /// Who needs it.
    pub fn needers(&self) -> impl Iterator<Item = &Needer> {
        self.needers.keys()
    }

    /// Whether its definition is being deleted.
    pub fn is_leaving(&self) -> bool {
        self.found.as_ref().is_ok_and(|usable| usable.leaving)
    }

    /// Its identity, as a number.
    pub fn world(&self) -> Epoch {
        self.world
    }

    /// How it is served, while it is.
    pub fn usable(&self) -> Option<&Usable> {
        self.found.as_ref().ok()
    }

    /// Whether whole objects are watched.
    pub fn is_whole(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.reach.whole)
    }

    /// How it is seen.
    pub fn sight(&self, now: Instant) -> Sight {
        if let Err(absence) = &self.found {
            return Sight::Absent(absence.clone());
        }
        if let Some(verb) = self.refused {
            return Sight::Forbidden(verb);
        }
        match &self.trouble {
            Some((since, why)) if now >= *since + self.patience() => Sight::Broken(why.clone()),
            _ if self.listed => Sight::Synced,
            _ => Sight::Listing,
        }
    }

    /// Right after a definition is established its endpoint lags behind.
    fn patience(&self) -> Duration {
        if self.listed { HICCUP } else { LAG }
    }

    /// Takes in whether it is served, and says what follows. `next` is the number of what is
    /// opened now.
    pub fn look(&mut self, found: Result<Usable, Absence>, now: Instant, next: Epoch) -> Option<Act> {
        if self.needers.is_empty() {
            let over = self.unused_since.is_some_and(|since| now >= since + GRACE);
            return (over && !self.is_done()).then(|| {
                self.close();
                self.known = false;
                Act::Forget
            });
        }
        let before = std::mem::replace(&mut self.found, found);
        match self.found.clone() {
            Err(Absence::Missing) if self.open.is_some() || self.known => {
                self.close();
                self.known = false;
                Some(Act::Gone)
            }
            Err(_) if self.open.is_some() => {
                self.close();
                Some(Act::Close)
            }
            Err(_) => None,
            Ok(usable) => {
                let identity =
                    |found: &Result<Usable, Absence>| found.as_ref().ok().map(|u| u.identity.clone());
                if identity(&before) != Some(usable.identity.clone()) {
                    self.new_world(next);
                }
                self.open_where_needed(usable, now, next)
            }
        }
    }

    fn new_world(&mut self, world: Epoch) {
        self.close();
        self.world = world;
    }

    fn close(&mut self) {
        self.open = None;
        self.listed = false;
        self.refused = None;
        self.trouble = None;
        self.again = None;
        self.refusals = 0;
    }

    fn open_where_needed(&mut self, usable: Usable, now: Instant, epoch: Epoch) -> Option<Act> {
        let wanted = self.needers.values().copied().reduce(Reach::and).unwrap_or_default();
        match &self.open {
            Some(open) if open.running && open.reach.covers(wanted) => return None,
            Some(open) if open.running => self.listed = false,
            _ if self.again.is_some_and(|again| now < again) => return None,
            _ => {}
        }
        self.again = None;
        self.known = true;
        let flows = vec![false; if usable.namespaced { self.streams } else { 1 }];
        self.open = Some(Open { epoch, reach: wanted, flows, running: true });
        Some(Act::Open { epoch, usable, reach: wanted })
    }

    /// Takes in what stream `i` of the watch of that epoch reported.
    pub fn report(&mut self, epoch: Epoch, i: usize, report: Report, now: Instant) {
        let Some(open) = self.open.as_mut().filter(|open| open.epoch == epoch && open.running) else {
            return;
        };
        match report {
            Report::Flowing => {
                if let Some(flows) = open.flows.get_mut(i) {
                    *flows = true;
                }
                if open.flows.iter().all(|flows| *flows) {
                    self.listed = true;
                    self.refused = None;
                    self.refusals = 0;
                    self.trouble = None;
                }
            }
            Report::Trouble(why) => {
                if let Some(flows) = open.flows.get_mut(i) {
                    *flows = false;
                }
                self.trouble.get_or_insert((now, why));
            }
            Report::Refused(verb) => {
                open.running = false;
                self.refused = Some(verb);
                self.refusals = self.refusals.saturating_add(1);
                let pause = AFTER_REFUSAL * 2_u32.pow((self.refusals - 1).min(5));
                self.again = Some(now + pause.min(LONGEST_PAUSE));
            }
            Report::NotFound => {
                open.running = false;
                let why = "the API server answers 404, though its definition is established";
                self.trouble.get_or_insert((now, why.to_owned()));
                self.again = Some(now + self.pace.next(now).min(LAG / 6));
            }
        }
    }

    /// When it is to be looked at again, if nothing happens before.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let broken = self.trouble.as_ref().map(|(since, _)| *since + self.patience());
        let unused =
            self.unused_since.filter(|_| self.known || self.open.is_some()).map(|since| since + GRACE);
        [self.again, broken.filter(|at| *at > now), unused].into_iter().flatten().min()
    }

    /// Whether nobody needs it and nothing is left of it.
    pub fn is_done(&self) -> bool {
        self.needers.is_empty() && self.open.is_none() && !self.known
    }
}

#[cfg(test)]
mod tests;
