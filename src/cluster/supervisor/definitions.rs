//! The one watch of CustomResourceDefinitions, and whether its table can be relied on.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use kube::Client;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::kind::HICCUP;
use crate::cluster::crds::{Crds, Definition};
use crate::cluster::list::Subject;
use crate::cluster::watch::{self, End, Event, LONGEST_PAUSE};

/// First pause after a refusal; doubled up to 30 s.
const AFTER_REFUSAL: Duration = Duration::from_secs(1);

/// The table, shared with those who ask how a kind is served.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    table: Arc<RwLock<Option<Crds>>>,
}

impl Definitions {
    /// What the table says; `None` before the definitions were listed.
    pub fn read<T>(&self, ask: impl FnOnce(&Crds) -> T) -> Option<T> {
        self.guard().as_ref().map(ask)
    }

    fn guard(&self) -> RwLockReadGuard<'_, Option<Crds>> {
        // Changes of the table do not panic half-way.
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Crds)) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        change(table.get_or_insert_default());
    }
}

/// What the watch tells the supervisor.
#[derive(Debug)]
pub enum Said {
    /// Something happened.
    Event(Box<Event<Definition>>),
    /// It was refused, or found nothing.
    Ended(End),
}

/// The watch and its health.
#[derive(Debug)]
pub struct Health {
    definitions: Definitions,
    /// Those of a list that is not complete yet.
    listing: Vec<Definition>,
    listed: bool,
    trouble: Option<Instant>,
    refused: bool,
    refusals: u32,
    again: Option<Instant>,
}

impl Health {
    /// Nothing is known.
    pub fn new(definitions: Definitions) -> Self {
        let (listed, refused) = (false, false);
        Self { definitions, listing: Vec::new(), listed, trouble: None, refused, refusals: 0, again: None }
    }

    /// Whether the table can be relied on.
    pub fn is_known(&self, now: Instant) -> bool {
        self.listed && !self.refused && self.trouble.is_none_or(|since| now < since + HICCUP)
    }

    /// When it is to be looked at again.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let late = self.trouble.map(|since| since + HICCUP).filter(|at| *at > now);
        [self.again, late].into_iter().flatten().min()
    }

    /// Whether the watch is to be started, again.
    pub fn start(&mut self, now: Instant) -> bool {
        let start = self.again.is_some_and(|again| now >= again);
        if start {
            self.again = None;
        }
        start
    }

    /// Takes in what the watch says.
    pub fn take(&mut self, said: Said, now: Instant) {
        match said {
            Said::Event(event) => self.event(*event, now),
            Said::Ended(end) => {
                tracing::warn!(
                    ?end,
                    "CustomResourceDefinitions cannot be watched: this process needs the verbs list and watch on them"
                );
                self.refused = true;
                let pause = AFTER_REFUSAL * 2_u32.pow(self.refusals.min(5));
                self.refusals = self.refusals.saturating_add(1);
                self.again = Some(now + pause.min(LONGEST_PAUSE));
            }
        }
    }

    fn event(&mut self, event: Event<Definition>, now: Instant) {
        match event {
            Event::Listing => self.listing.clear(),
            Event::Listed(one) => self.listing.push(one),
            Event::Synced => {
                let all = std::mem::take(&mut self.listing);
                self.definitions.change(|crds| crds.replace(all));
                self.listed = true;
            }
            Event::Applied(one) => self.definitions.change(|crds| drop(crds.apply(one))),
            Event::Deleted(one) => {
                let name = one.metadata.name.unwrap_or_default();
                self.definitions.change(|crds| drop(crds.remove(&name)));
            }
            Event::Flowing => {
                self.trouble = None;
                self.refused = false;
                self.refusals = 0;
            }
            Event::Trouble(why) => {
                tracing::warn!(why, "CustomResourceDefinitions cannot be watched; trying again");
                self.trouble.get_or_insert(now);
            }
        }
    }
}

/// Starts the watch.
pub fn open(client: Client, tell: impl Fn(Said) + Send + Sync + 'static) -> AbortHandle {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned();
    let subject = Subject { path, labels: None, metadata_only: false };
    let task = async move {
        let end = watch::follow(client, subject, |event| tell(Said::Event(Box::new(event)))).await;
        tell(Said::Ended(end));
    };
    tokio::spawn(task).abort_handle()
}
