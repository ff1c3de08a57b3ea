//! One watched kind, as a pure machine: who needs it, whether it is served, what its watch said
//! -> whether a watch is to be opened or closed, and how the kind is seen.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::need::{Need, Needer, Reach, not_served};
use super::state::{Epoch, Sight, Verb};
use crate::cluster::crds::{Absence, Usable};
use crate::cluster::watch::{LONGEST_PAUSE, Pace};

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
    /// The watch has ended by itself, perhaps with an event half taken in: all of it is to be
    /// listed again.
    Broken(String),
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
    needs: BTreeMap<Needer, Need>,
    unused_since: Option<Instant>,
    /// How it is served, at the best version that anybody needs.
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
            needs: BTreeMap::new(),
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
    pub fn need(&mut self, needer: Needer, need: Need) {
        self.needs.insert(needer, need);
        self.unused_since = None;
    }

    /// Somebody does not need it any more.
    pub fn release(&mut self, needer: &Needer, now: Instant) {
        self.needs.remove(needer);
        if self.needs.is_empty() && self.unused_since.is_none() {
            self.unused_since = Some(now);
        }
    }

    /// Who needs it at a version.
    pub fn needers(&self, version: &str) -> impl Iterator<Item = &Needer> {
        let needs = self.needs.iter().filter(move |(_, need)| need.versions.iter().any(|v| v == version));
        needs.map(|(needer, _)| needer)
    }

    /// The versions that will do, best first: those that whole objects are read at, the one that is
    /// used, and the others.
    pub fn versions(&self) -> Vec<String> {
        let of = |whole: bool| self.needs.values().filter(move |need| need.reach.whole == whole);
        let read = of(true).flat_map(|need| &need.versions);
        let used = self.found.as_ref().ok().map(|usable| &usable.identity.version);
        let others = of(false).flat_map(|need| &need.versions);
        let mut versions: Vec<String> = Vec::new();
        for version in read.chain(used).chain(others) {
            if !versions.contains(version) {
                versions.push(version.clone());
            }
        }
        versions
    }

    /// The versions that somebody may ask about: the one that is used or would be, and those at
    /// which packages make objects.
    pub fn spoken_of(&self) -> BTreeSet<String> {
        let used = self.found.as_ref().ok().map(|usable| usable.identity.version.clone());
        let made = self.needs.values().filter(|need| !need.reach.all).flat_map(|need| need.versions.clone());
        used.or_else(|| self.versions().into_iter().next()).into_iter().chain(made).collect()
    }

    /// Whether its definition is being deleted.
    pub fn is_leaving(&self) -> bool {
        self.found.as_ref().is_ok_and(|usable| usable.leaving)
    }

    /// Its identity, as a number.
    pub fn world(&self) -> Epoch {
        self.world
    }

    /// How it was last found to be served.
    pub fn found(&self) -> Result<Usable, Absence> {
        self.found.clone()
    }

    /// Why it does for nobody as it is served.
    fn refusal(&self, usable: &Usable) -> Option<Absence> {
        let lacks = self.needs.values().map(|need| need.lack(usable)).collect::<Option<Vec<_>>>()?;
        lacks.into_iter().next()
    }

    /// Whether whole objects are watched at a version.
    pub fn is_whole(&self, version: &str) -> bool {
        let used = self.found.as_ref().is_ok_and(|usable| usable.identity.version == version);
        used && self.open.as_ref().is_some_and(|open| open.reach.whole)
    }

    /// How somebody sees it.
    pub fn sight_of(&self, needer: &Needer, now: Instant) -> Sight {
        match (&self.found, self.needs.get(needer)) {
            (Err(absence), Some(need)) => Sight::Absent(of_versions(absence, &need.versions)),
            (Err(absence), None) => Sight::Absent(absence.clone()),
            (Ok(usable), Some(need)) => need.lack(usable).map_or_else(|| self.sight(now), Sight::Absent),
            (Ok(_), None) => self.sight(now),
        }
    }

    /// How it is seen at a version.
    pub fn sight_at(&self, version: &str, now: Instant) -> Sight {
        let wanted = [version.to_owned()];
        match &self.found {
            Err(absence) => Sight::Absent(of_versions(absence, &wanted)),
            Ok(usable) if !usable.served.contains(&wanted[0]) => {
                Sight::Absent(not_served(&wanted, &usable.served))
            }
            Ok(usable) => self.refusal(usable).map_or_else(|| self.sight(now), Sight::Absent),
        }
    }

    /// How its watch is.
    fn sight(&self, now: Instant) -> Sight {
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

    /// Takes in whether it is served at one of [`Self::versions`], and says what follows. `next` is
    /// the number of what is opened now.
    pub fn look(&mut self, found: Result<Usable, Absence>, now: Instant, next: Epoch) -> Option<Act> {
        if self.needs.is_empty() {
            let over = self.unused_since.is_some_and(|since| now >= since + GRACE);
            return (over && !self.is_done()).then(|| {
                self.close();
                self.known = false;
                Act::Forget
            });
        }
        let before = std::mem::replace(&mut self.found, found);
        let refused = |usable: Usable| match self.refusal(&usable) {
            Some(absence) => Err(absence),
            None => Ok(usable),
        };
        match self.found.clone().and_then(refused) {
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
        let served = self.needs.values().filter(|need| need.lack(&usable).is_none());
        let wanted = served.map(|need| need.reach).reduce(Reach::and).unwrap_or_default();
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
                self.again = Some(now + self.pace.next(now).min(LAG / 15));
            }
            Report::Broken(why) => {
                open.running = false;
                self.trouble.get_or_insert((now, why));
                self.again = Some(now + self.pace.next(now));
            }
        }
    }

    /// When it is to be looked at again, if nothing happens before.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let broken = self.trouble.as_ref().map(|(since, _)| *since + self.patience());
        let unused =
            self.unused_since.filter(|_| self.known || self.open.is_some()).map(|since| since + GRACE);
        // While nobody needs it, nothing is tried again.
        let again = self.again.filter(|_| !self.needs.is_empty());
        [again, broken.filter(|at| *at > now), unused].into_iter().flatten().min()
    }

    /// Whether nobody needs it and nothing is left of it.
    pub fn is_done(&self) -> bool {
        self.needs.is_empty() && self.open.is_none() && !self.known
    }
}

/// Why a kind cannot be used by who needs these of its versions.
fn of_versions(absence: &Absence, wanted: &[String]) -> Absence {
    match absence {
        Absence::NotServed { served, .. } => not_served(wanted, served),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
