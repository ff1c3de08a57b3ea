//! The one watch of CustomResourceDefinitions, and whether its table is current.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use kube::Client;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::kind::TROUBLE_GRACE;
use crate::cluster::crds::{Crds, DecodedDefinition};
use crate::cluster::list::ListedResource;
use crate::cluster::watch::{self, KindEvent, LONGEST_PAUSE, WatchEnd};
use crate::telemetry::panics::{Panicked, caught};

/// First pause after the watch ended; doubled up to 30 s.
const AFTER_END: Duration = Duration::from_secs(1);

/// The table, shared with the code that looks kinds up.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    table: Arc<RwLock<Option<Crds>>>,
}

impl Definitions {
    /// Reads the table; `None` before the definitions were listed.
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

/// What the watch reports to the supervisor.
#[derive(Debug)]
pub enum DefinitionsReport {
    /// An event of the watch.
    Event(Box<KindEvent<DecodedDefinition>>),
    /// The API server refused the watch, or answered 404.
    Ended(WatchEnd),
    Broken(Panicked),
}

/// The watch and its health.
#[derive(Debug)]
pub struct DefinitionsWatch {
    definitions: Definitions,
    /// The definitions of an incomplete list.
    listing: Vec<DecodedDefinition>,
    listed: bool,
    failing_since: Option<Instant>,
    refused: bool,
    ends: u32,
    retry_at: Option<Instant>,
}

impl DefinitionsWatch {
    /// Nothing is known yet.
    pub fn new(definitions: Definitions) -> Self {
        let (listed, refused) = (false, false);
        Self {
            definitions,
            listing: Vec::new(),
            listed,
            failing_since: None,
            refused,
            ends: 0,
            retry_at: None,
        }
    }

    /// Whether the table is current.
    pub fn is_known(&self, now: Instant) -> bool {
        self.listed && !self.refused && self.failing_since.is_none_or(|since| now < since + TROUBLE_GRACE)
    }

    /// When to check again.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let late = self.failing_since.map(|since| since + TROUBLE_GRACE).filter(|at| *at > now);
        [self.retry_at, late].into_iter().flatten().min()
    }

    /// Whether to start or restart the watch.
    pub fn start(&mut self, now: Instant) -> bool {
        let start = self.retry_at.is_some_and(|retry_at| now >= retry_at);
        if start {
            self.retry_at = None;
        }
        start
    }

    /// Takes in a report of the watch.
    pub fn take(&mut self, report: DefinitionsReport, now: Instant) {
        match report {
            DefinitionsReport::Event(event) => self.event(*event, now),
            DefinitionsReport::Ended(end) => {
                tracing::warn!(
                    ?end,
                    "CustomResourceDefinitions cannot be watched: grant this process the verbs list and watch on them"
                );
                self.refused = true;
                self.reopen_later(now);
            }
            DefinitionsReport::Broken(panicked) => {
                tracing::error!(%panicked, "the watch of CustomResourceDefinitions panicked; reopening it");
                self.failing_since.get_or_insert(now);
                self.reopen_later(now);
            }
        }
    }

    fn reopen_later(&mut self, now: Instant) {
        let pause = AFTER_END * 2_u32.pow(self.ends.min(5));
        self.ends = self.ends.saturating_add(1);
        self.retry_at = Some(now + pause.min(LONGEST_PAUSE));
    }

    fn event(&mut self, event: KindEvent<DecodedDefinition>, now: Instant) {
        match event {
            KindEvent::Listing => self.listing.clear(),
            KindEvent::Listed(one) => self.listing.push(one),
            KindEvent::Synced => {
                let all = std::mem::take(&mut self.listing);
                self.definitions.change(|crds| crds.replace(all));
                self.listed = true;
            }
            KindEvent::Applied(one) => self.definitions.change(|crds| drop(crds.apply(one))),
            KindEvent::Deleted(one) => {
                let name = one.metadata.name.unwrap_or_default();
                self.definitions.change(|crds| drop(crds.remove(&name)));
            }
            KindEvent::Opened => {
                self.failing_since = None;
                self.refused = false;
                self.ends = 0;
            }
            KindEvent::Trouble(why) => {
                tracing::warn!(why, "CustomResourceDefinitions cannot be watched; retrying");
                self.failing_since.get_or_insert(now);
            }
        }
    }
}

/// Starts the watch.
pub fn open(client: Client, send: impl Fn(DefinitionsReport) + Send + Sync + 'static) -> AbortHandle {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned();
    let subject = ListedResource { path, labels: None, metadata_only: false };
    let task = async move {
        let followed =
            watch::follow(client, subject, |event| send(DefinitionsReport::Event(Box::new(event))));
        send(caught(followed).await.map_or_else(DefinitionsReport::Broken, DefinitionsReport::Ended));
    };
    tokio::spawn(task).abort_handle()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_panicked_is_opened_anew_after_a_pause() {
        let report = DefinitionsReport::Broken(caught(async { panic!("half taken in") }).await.unwrap_err());
        let (mut health, now) = (DefinitionsWatch::new(Definitions::default()), Instant::now());
        health.take(DefinitionsReport::Event(Box::new(KindEvent::Synced)), now);
        health.take(DefinitionsReport::Event(Box::new(KindEvent::Opened)), now);
        health.take(report, now);
        assert!(health.is_known(now), "for a moment that is no news");
        assert!(!health.start(now), "not at once");
        let due = health.due(now).expect("it is opened anew");
        assert!(health.start(due));
        assert!(!health.is_known(now + TROUBLE_GRACE));
        health.take(DefinitionsReport::Event(Box::new(KindEvent::Opened)), now + TROUBLE_GRACE);
        assert!(health.is_known(now + TROUBLE_GRACE));
    }
}
