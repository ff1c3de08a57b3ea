//! Watches: a kind's objects as JSON values, from the first list on, also over broken watches.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::api::{Api, ApiResource, DynamicObject, TypeMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Error};
use serde_json::Value;
use tokio::time::Instant;
use tracing::{debug, warn};

/// Namespace (empty for cluster-scoped objects) and name, the order of deliveries.
pub type Id = (String, String);

/// What happened to an object of a watched kind.
#[derive(Clone, Debug)]
pub enum Change {
    /// It is there, as given.
    Applied(Arc<Value>),
    /// It is gone; its last known state.
    Deleted(Arc<Value>),
    /// Every object of the kind has been delivered once; again after a broken watch.
    Synced,
}

/// What to watch.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The kind.
    pub resource: ApiResource,
    /// Label selector, where only some objects concern us.
    pub labels: Option<String>,
    /// One namespace; `None` for all.
    pub namespace: Option<String>,
}

/// Watches until the task is dropped; the kind's changes go to `sink` in order.
///
/// Objects that vanished while the watch was broken are delivered as deleted with the next
/// complete list; a partial list never reads as "none".
pub async fn run(client: Client, scope: Scope, mut sink: impl FnMut(Change) + Send) {
    let api: Api<DynamicObject> = match &scope.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &scope.resource),
        None => Api::all_with(client, &scope.resource),
    };
    let mut config = watcher::Config::default();
    if let Some(labels) = &scope.labels {
        config = config.labels(labels);
    }
    let mut stream = std::pin::pin!(watcher(api, config).backoff(Pace::new()));
    let mut known: BTreeMap<Id, Arc<Value>> = BTreeMap::new();
    let mut listing: Option<BTreeMap<Id, Arc<Value>>> = None;
    while let Some(event) = stream.next().await {
        match event {
            Ok(Event::Init) => listing = Some(BTreeMap::new()),
            Ok(Event::InitApply(object)) => {
                if let (Some(listing), Some((id, value))) = (&mut listing, to_value(object, &scope.resource))
                {
                    listing.insert(id, value);
                }
            }
            Ok(Event::InitDone) => {
                let fresh = listing.take().unwrap_or_default();
                relist(&mut known, fresh, &mut sink);
            }
            Ok(Event::Apply(object)) => {
                if let Some((id, value)) = to_value(object, &scope.resource) {
                    known.insert(id, value.clone());
                    sink(Change::Applied(value));
                }
            }
            Ok(Event::Delete(object)) => {
                if let Some((id, value)) = to_value(object, &scope.resource) {
                    known.remove(&id);
                    sink(Change::Deleted(value));
                }
            }
            Err(error) => report(&scope, &error),
        }
    }
}

/// Pause before a broken watch is taken up again: 50 ms, doubled at each failure up to 30 s,
/// short again after 30 s without one.
///
/// A watch is refused two or three times in the second after its CRD was created ("storage is
/// (re)initializing", then "too old resource version"), and an Instance that follows its
/// OperatorVersion back to back is waited for no longer than 2 s; kube's default starts at 0.8 s.
struct Pace {
    pause: Duration,
    last: Option<Instant>,
}

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Pace {
    fn new() -> Self {
        Self { pause: FIRST_PAUSE, last: None }
    }
}

impl Iterator for Pace {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if self.last.is_some_and(|last| now - last > self.pause + LONGEST_PAUSE) {
            self.pause = FIRST_PAUSE;
        }
        self.last = Some(now);
        let pause = self.pause;
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        Some(pause)
    }
}

impl Backoff for Pace {
    /// Called at every success. Nothing: where each list succeeds and each watch is refused, the
    /// server would be asked for lists at full speed.
    fn reset(&mut self) {}
}

fn relist(
    known: &mut BTreeMap<Id, Arc<Value>>,
    fresh: BTreeMap<Id, Arc<Value>>,
    sink: &mut (impl FnMut(Change) + Send),
) {
    for (id, gone) in std::mem::take(known) {
        if !fresh.contains_key(&id) {
            sink(Change::Deleted(gone));
        }
    }
    fresh.values().for_each(|value| sink(Change::Applied(value.clone())));
    *known = fresh;
    sink(Change::Synced);
}

/// A watch that ends is normal; one that is refused or finds no kind is said once per try.
fn report(scope: &Scope, error: &watcher::Error) {
    let kind = &scope.resource.kind;
    match error {
        watcher::Error::WatchFailed(Error::ReadEvents(_)) => debug!(%kind, %error, "watch ended"),
        _ => warn!(%kind, %error, "watch failed; trying again"),
    }
}

/// The object as JSON without `managedFields`, which nothing here reads.
fn to_value(mut object: DynamicObject, resource: &ApiResource) -> Option<(Id, Arc<Value>)> {
    object.metadata.managed_fields = None;
    let id = (
        object.metadata.namespace.clone().unwrap_or_default(),
        object.metadata.name.clone().unwrap_or_default(),
    );
    object.types = Some(TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() });
    match serde_json::to_value(object) {
        Ok(value) => Some((id, Arc::new(value))),
        Err(error) => {
            warn!(kind = %resource.kind, %error, "an object could not be read");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_broken_watch_is_taken_up_again_five_times_within_the_wait_for_a_version() {
        let mut pace = Pace::new();
        assert!(pace.by_ref().take(5).sum::<Duration>() < Duration::from_secs(2));
        pace.reset();
        assert_eq!(pace.next(), Some(FIRST_PAUSE * 32), "a success in between is no reason to hurry");
        assert_eq!(pace.nth(20), Some(LONGEST_PAUSE));
        tokio::time::advance(LONGEST_PAUSE * 3).await;
        assert_eq!(pace.next(), Some(FIRST_PAUSE));
    }
}
