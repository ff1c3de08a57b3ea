//! From a watch to those who keep what is seen, under one epoch. Nothing is kept here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_core::api::object::Gvk;
use kube::Client;
use kube::api::{ApiResource, DynamicObject, Resource as _};
use serde_json::Value;
use tokio::task::AbortHandle;
use tracing::{error, warn};

use super::kind::Report;
use super::need::Reach;
use super::state::{Epoch, Verb};
use crate::cluster::bare::Bare;
use crate::cluster::list::Subject;
use crate::cluster::watch::{self, Change, End, Event};
use crate::telemetry::panics::caught;

/// Who keeps what is seen.
pub trait Sink: Send + Sync + 'static {
    /// Something happened to an object of a kind, or the kind was listed. Called in order for
    /// each kind, and never for an epoch that is over.
    fn observe(&self, kind: &Gvk, epoch: Epoch, change: Change);

    /// A kind is gone, and with it every object of it.
    fn gone(&self, kind: &Gvk);

    /// Nobody needs a kind any more: its objects are not followed, which says nothing of them.
    fn forget(&self, kind: &Gvk);

    /// A kind is not watched now: what is known of it is out of date, and nothing follows from
    /// what is not known.
    fn end(&self, kind: &Gvk);
}

/// What one stream of a kind tells: one watch after another.
#[derive(Debug, Default)]
pub struct Feed {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    epoch: Epoch,
    kind: Option<Gvk>,
}

/// What is watched, and where.
#[derive(Clone, Debug)]
pub struct Source {
    /// The kind.
    pub resource: ApiResource,
    /// One namespace; `None` for all.
    pub namespace: Option<String>,
    /// How much of it.
    pub reach: Reach,
    /// Label selector where not all objects are wanted.
    pub labels: Option<String>,
}

impl Feed {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // A sink that panicked has ended its watch; what is told here is still true.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an epoch: nothing of an earlier one is delivered any more.
    pub fn begin(&self, epoch: Epoch, kind: Gvk) {
        let mut inner = self.inner();
        inner.epoch = epoch;
        inner.kind = Some(kind);
    }

    /// Ends the epoch; what is known stays.
    pub fn end(&self, sink: &dyn Sink) {
        self.over(|kind| sink.end(kind));
    }

    /// Ends the epoch: the kind is gone, and so is every object that was known.
    pub fn gone(&self, sink: &dyn Sink) {
        self.over(|kind| sink.gone(kind));
    }

    /// Ends the epoch and forgets.
    pub fn forget(&self, sink: &dyn Sink) {
        self.over(|kind| sink.forget(kind));
    }

    fn over(&self, tell: impl Fn(&Gvk)) {
        let mut inner = self.inner();
        inner.epoch = Epoch::default();
        inner.kind.iter().for_each(tell);
    }

    /// Hands on an event under an epoch; drops it where that is over. The lock is held while it
    /// is delivered, so that nothing of an epoch comes after its end.
    fn take(&self, epoch: Epoch, event: Event<Bare>, source: &Source, sink: &dyn Sink) {
        let inner = self.inner();
        let Inner { epoch: current, kind: Some(kind) } = &*inner else { return };
        if *current != epoch {
            return;
        }
        let namespace = || source.namespace.as_deref().unwrap_or_default().into();
        let change = match event {
            Event::Listing => Change::Listing(namespace()),
            Event::Listed(object) => Change::Listed(source.told(object)),
            Event::Synced => Change::Synced(namespace()),
            Event::Applied(object) => Change::Applied(source.told(object)),
            Event::Deleted(object) => Change::Deleted(source.told(object)),
            Event::Flowing | Event::Trouble(_) => return,
        };
        sink.observe(kind, epoch, change);
    }
}

impl Source {
    fn subject(&self) -> Subject {
        Subject {
            path: DynamicObject::url_path(&self.resource, self.namespace.as_deref()),
            labels: self.labels.clone(),
            metadata_only: !self.reach.whole,
        }
    }

    /// The object with its kind, which the items of a list of a built-in kind and mere metadata do
    /// not tell.
    fn told(&self, Bare(mut object): Bare) -> Arc<Value> {
        if let Some(object) = object.as_object_mut() {
            object.insert("apiVersion".to_owned(), self.resource.api_version.clone().into());
            object.insert("kind".to_owned(), self.resource.kind.clone().into());
        }
        Arc::new(object)
    }
}

/// Opens a watch into a feed; it runs until it ends or the handle is dropped.
pub fn open(
    client: Client,
    source: Source,
    feed: Arc<Feed>,
    epoch: Epoch,
    sink: Arc<dyn Sink>,
    report: impl Fn(Report) + Send + Sync + 'static,
) -> Running {
    let task = async move {
        let followed = watch::follow(client, source.subject(), |event: Event<Bare>| match event {
            Event::Flowing => report(Report::Flowing),
            Event::Trouble(why) => {
                warn!(kind = %source.resource.kind, why, "a kind cannot be watched; trying again");
                report(Report::Trouble(why));
            }
            told => feed.take(epoch, told, &source, sink.as_ref()),
        });
        report(match caught(followed).await {
            Ok(End::ListRefused) => Report::Refused(Verb::List),
            Ok(End::WatchRefused) => Report::Refused(Verb::Watch),
            Ok(End::NotFound) => Report::NotFound,
            Err(panicked) => {
                error!(kind = %source.resource.kind, %panicked, "a watch has ended; it is opened anew");
                Report::Broken(panicked.to_string())
            }
        });
    };
    Running(tokio::spawn(task).abort_handle())
}

/// A watch that is stopped when this is dropped.
#[derive(Debug)]
pub struct Running(AbortHandle);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}
