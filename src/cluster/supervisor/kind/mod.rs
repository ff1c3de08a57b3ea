//! One watched kind, as a pure machine: its requesters, whether it is served, the reports of its watch ->
//! whether to open or close a watch, and its watch state.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::state::{ApiVerb, Epoch, WatchState};
use super::watch_request::{KindRequester, WatchRequest, WatchScope, not_served};
use crate::cluster::crds::{Absence, Usable};
use crate::cluster::watch::{LONGEST_PAUSE, WatchBackoff};

/// How long an unneeded kind stays watched: an Instance that is deleted and created again, or a package
/// that is updated, costs no new list.
pub const UNUSED_GRACE: Duration = Duration::from_secs(60);

/// How long the watch of a kind may fail before the failure is reported.
pub const TROUBLE_GRACE: Duration = Duration::from_secs(10);

/// How long a kind that is established may be answered 404: its endpoint lags behind.
const ENDPOINT_LAG: Duration = Duration::from_secs(30);

/// First pause after a refusal; doubled up to 30 s.
const AFTER_REFUSAL: Duration = Duration::from_secs(1);

/// What the watch of a kind reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindReport {
    /// Every object has been delivered, and the watch is open.
    Opened,
    /// It failed and is being retried.
    Trouble(String),
    /// It was refused, and has ended.
    Refused(ApiVerb),
    /// The kind was not found, and the watch has ended.
    NotFound,
    /// The watch panicked, perhaps with an event half taken in: list everything again.
    Broken(String),
}

/// The next action.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum WatchAction {
    /// Open a watch under this epoch; close the open one. Cached objects stay until they are listed again.
    Open {
        /// Its number.
        epoch: Epoch,
        /// How the kind is served.
        usable: Usable,
        /// How much of it is watched.
        scope: WatchScope,
    },
    /// Close the watch. Cached objects stay, stale: unavailable is not empty.
    Close,
    /// Close the watch; the kind is gone, and every object of it with it.
    Gone,
    /// Close the watch and drop cached objects: no requester needs them.
    Forget,
}

#[derive(Clone, Debug)]
struct Open {
    epoch: Epoch,
    scope: WatchScope,
    /// One flag for each of its streams: whether its watch is open. There is one stream, or one
    /// for each namespace.
    open_streams: Vec<bool>,
    /// Whether its streams run; an ended one is reopened after a pause.
    running: bool,
}

/// The machine.
#[derive(Debug)]
pub struct WatchedKind {
    requests: BTreeMap<KindRequester, WatchRequest>,
    unused_since: Option<Instant>,
    /// How it is served, at the best requested version.
    found: Result<Usable, Absence>,
    /// Changes with the identity.
    crd_identity: Epoch,
    /// Whether all of it has been listed under this identity.
    listed: bool,
    /// Whether anything of it may be cached.
    known: bool,
    open: Option<Open>,
    refused: Option<ApiVerb>,
    failure: Option<(Instant, String)>,
    retry_at: Option<Instant>,
    refusals: u32,
    backoff: WatchBackoff,
    streams: usize,
}

impl WatchedKind {
    /// A kind without a look-up yet; `streams` is the number of its watches.
    pub fn new(streams: usize, now: Instant) -> Self {
        Self {
            requests: BTreeMap::new(),
            unused_since: Some(now),
            found: Err(Absence::Missing),
            crd_identity: Epoch(0),
            listed: false,
            known: false,
            open: None,
            refused: None,
            failure: None,
            retry_at: None,
            refusals: 0,
            backoff: WatchBackoff::new(),
            streams,
        }
    }

    /// Adds a requester.
    pub fn request(&mut self, requester: KindRequester, request: WatchRequest) {
        self.requests.insert(requester, request);
        self.unused_since = None;
    }

    /// Removes a requester.
    pub fn release(&mut self, requester: &KindRequester, now: Instant) {
        self.requests.remove(requester);
        if self.requests.is_empty() && self.unused_since.is_none() {
            self.unused_since = Some(now);
        }
    }

    pub fn requesters(&self, version: &str) -> impl Iterator<Item = &KindRequester> {
        let requests =
            self.requests.iter().filter(move |(_, request)| request.versions.iter().any(|v| v == version));
        requests.map(|(requester, _)| requester)
    }

    /// The requested versions, best first: those at which whole objects are read, the one in use, and the
    /// others.
    pub fn versions(&self) -> Vec<String> {
        let of = |whole: bool| self.requests.values().filter(move |request| request.scope.whole == whole);
        let read = of(true).flat_map(|request| &request.versions);
        let used = self.found.as_ref().ok().map(|usable| &usable.identity.version);
        let others = of(false).flat_map(|request| &request.versions);
        let mut versions: Vec<String> = Vec::new();
        for version in read.chain(used).chain(others) {
            if !versions.contains(version) {
                versions.push(version.clone());
            }
        }
        versions
    }

    /// The versions that lookups may name: the one that is or would be used, and those at which packages
    /// make objects.
    pub fn published_versions(&self) -> BTreeSet<String> {
        let used = self.found.as_ref().ok().map(|usable| usable.identity.version.clone());
        let made = self
            .requests
            .values()
            .filter(|request| !request.scope.all)
            .flat_map(|request| request.versions.clone());
        used.or_else(|| self.versions().into_iter().next()).into_iter().chain(made).collect()
    }

    /// Whether its definition is being deleted.
    pub fn is_terminating(&self) -> bool {
        self.found.as_ref().is_ok_and(|usable| usable.terminating)
    }

    /// Those of the fields of `status` that Interlock writes and that the API server would drop.
    pub fn dropped(&self) -> Vec<&'static str> {
        self.found.as_ref().map(|usable| usable.identity.dropped.clone()).unwrap_or_default()
    }

    /// Its identity, as a number.
    pub fn crd_identity(&self) -> Epoch {
        self.crd_identity
    }

    /// The result of the last look-up.
    pub fn found(&self) -> Result<Usable, Absence> {
        self.found.clone()
    }

    /// Why no requester can use it as it is served.
    fn refusal(&self, usable: &Usable) -> Option<Absence> {
        let absences =
            self.requests.values().map(|request| request.absence(usable)).collect::<Option<Vec<_>>>()?;
        absences.into_iter().next()
    }

    /// Whether whole objects are watched at a version.
    pub fn is_whole(&self, version: &str) -> bool {
        let used = self.found.as_ref().is_ok_and(|usable| usable.identity.version == version);
        used && self.open.as_ref().is_some_and(|open| open.scope.whole)
    }

    pub fn state_for(&self, requester: &KindRequester, now: Instant) -> WatchState {
        match (&self.found, self.requests.get(requester)) {
            (Err(absence), Some(request)) => WatchState::Absent(of_versions(absence, &request.versions)),
            (Err(absence), None) => WatchState::Absent(absence.clone()),
            (Ok(usable), Some(request)) => {
                request.absence(usable).map_or_else(|| self.watch_state(now), WatchState::Absent)
            }
            (Ok(_), None) => self.watch_state(now),
        }
    }

    pub fn state_at(&self, version: &str, now: Instant) -> WatchState {
        let wanted = [version.to_owned()];
        match &self.found {
            Err(absence) => WatchState::Absent(of_versions(absence, &wanted)),
            Ok(usable) if !usable.served.contains(&wanted[0]) => {
                WatchState::Absent(not_served(&wanted, &usable.served))
            }
            Ok(usable) => self.refusal(usable).map_or_else(|| self.watch_state(now), WatchState::Absent),
        }
    }

    fn watch_state(&self, now: Instant) -> WatchState {
        if let Some(verb) = self.refused {
            return WatchState::Forbidden(verb);
        }
        match &self.failure {
            Some((since, why)) if now >= *since + self.grace() => WatchState::Broken(why.clone()),
            _ if self.listed => WatchState::Synced,
            _ => WatchState::Listing,
        }
    }

    /// Right after a definition is established its endpoint lags behind.
    fn grace(&self) -> Duration {
        if self.listed { TROUBLE_GRACE } else { ENDPOINT_LAG }
    }

    /// Takes in whether it is served at one of [`Self::versions`]; returns the next action. `next` is the
    /// epoch of a watch that is opened now.
    pub fn step(&mut self, found: Result<Usable, Absence>, now: Instant, next: Epoch) -> Option<WatchAction> {
        if self.requests.is_empty() {
            let over = self.unused_since.is_some_and(|since| now >= since + UNUSED_GRACE);
            return (over && !self.is_done()).then(|| {
                self.close();
                self.known = false;
                WatchAction::Forget
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
                Some(WatchAction::Gone)
            }
            Err(_) if self.open.is_some() => {
                self.close();
                Some(WatchAction::Close)
            }
            Err(_) => None,
            Ok(usable) => {
                let identity =
                    |found: &Result<Usable, Absence>| found.as_ref().ok().map(|u| u.identity.clone());
                if identity(&before) != Some(usable.identity.clone()) {
                    self.replace_crd_identity(next);
                }
                self.open_where_needed(usable, now, next)
            }
        }
    }

    fn replace_crd_identity(&mut self, crd_identity: Epoch) {
        self.close();
        self.crd_identity = crd_identity;
    }

    fn close(&mut self) {
        self.open = None;
        self.listed = false;
        self.refused = None;
        self.failure = None;
        self.retry_at = None;
        self.refusals = 0;
    }

    fn open_where_needed(&mut self, usable: Usable, now: Instant, epoch: Epoch) -> Option<WatchAction> {
        let served = self.requests.values().filter(|request| request.absence(&usable).is_none());
        let wanted = served.map(|request| request.scope).reduce(WatchScope::union).unwrap_or_default();
        match &self.open {
            Some(open) if open.running && open.scope.covers(wanted) => return None,
            Some(open) if open.running => self.listed = false,
            _ if self.retry_at.is_some_and(|retry_at| now < retry_at) => return None,
            _ => {}
        }
        self.retry_at = None;
        self.known = true;
        let open_streams = vec![false; if usable.namespaced { self.streams } else { 1 }];
        self.open = Some(Open { epoch, scope: wanted, open_streams, running: true });
        Some(WatchAction::Open { epoch, usable, scope: wanted })
    }

    /// Takes in a report of stream `i` of the watch of that epoch.
    pub fn report(&mut self, epoch: Epoch, i: usize, report: KindReport, now: Instant) {
        let Some(open) = self.open.as_mut().filter(|open| open.epoch == epoch && open.running) else {
            return;
        };
        match report {
            KindReport::Opened => {
                if let Some(stream) = open.open_streams.get_mut(i) {
                    *stream = true;
                }
                if open.open_streams.iter().all(|stream| *stream) {
                    self.listed = true;
                    self.refused = None;
                    self.refusals = 0;
                    self.failure = None;
                }
            }
            KindReport::Trouble(why) => {
                if let Some(stream) = open.open_streams.get_mut(i) {
                    *stream = false;
                }
                self.failure.get_or_insert((now, why));
            }
            KindReport::Refused(verb) => {
                open.running = false;
                self.refused = Some(verb);
                self.refusals = self.refusals.saturating_add(1);
                let pause = AFTER_REFUSAL * 2_u32.pow((self.refusals - 1).min(5));
                self.retry_at = Some(now + pause.min(LONGEST_PAUSE));
            }
            KindReport::NotFound => {
                open.running = false;
                let why = "the API server answers 404, though its definition is established";
                self.failure.get_or_insert((now, why.to_owned()));
                self.retry_at = Some(now + self.backoff.next(now).min(ENDPOINT_LAG / 15));
            }
            KindReport::Broken(why) => {
                open.running = false;
                self.failure.get_or_insert((now, why));
                self.retry_at = Some(now + self.backoff.next(now));
            }
        }
    }

    /// When to check again, if nothing happens before.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let broken = self.failure.as_ref().map(|(since, _)| *since + self.grace());
        let unused =
            self.unused_since.filter(|_| self.known || self.open.is_some()).map(|since| since + UNUSED_GRACE);
        // An unneeded kind is not retried.
        let retry_at = self.retry_at.filter(|_| !self.requests.is_empty());
        [retry_at, broken.filter(|at| *at > now), unused].into_iter().flatten().min()
    }

    /// Whether no requester is left and nothing of it is cached.
    pub fn is_done(&self) -> bool {
        self.requests.is_empty() && self.open.is_none() && !self.known
    }
}

/// Why a requester of these versions cannot use a kind.
fn of_versions(absence: &Absence, wanted: &[String]) -> Absence {
    match absence {
        Absence::NotServed { served, .. } => not_served(wanted, served),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests;
