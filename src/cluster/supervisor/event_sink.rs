//! Delivers events of a watch to the sink, under one epoch. Stores nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use interlock_core::api::object::Gvk;
use kube::Client;
use kube::api::{ApiResource, DynamicObject, Resource as _};
use serde_json::Value;
use tokio::task::AbortHandle;
use tracing::{error, warn};

use super::kind::KindReport;
use super::state::{ApiVerb, Epoch};
use super::watch_request::WatchScope;
use crate::cluster::list::ListedResource;
use crate::cluster::strip_managed_fields::Stripped;
use crate::cluster::watch::{self, KindEvent, WatchChange, WatchEnd};
use crate::telemetry::panics::caught;

/// Receives watched objects.
pub trait Sink: Send + Sync + 'static {
    /// An object of a kind has changed, or the kind was listed. Called in order for each kind, and never
    /// for an ended epoch.
    fn observe(&self, kind: &Gvk, epoch: Epoch, change: WatchChange);

    /// A kind is gone, and with it every object of it.
    fn gone(&self, kind: &Gvk);

    /// No requester needs a kind any more: its objects are not followed, but may still exist.
    fn forget(&self, kind: &Gvk);

    /// The watch of a kind is closed: its cached objects are stale, and a missing object proves nothing.
    fn end(&self, kind: &Gvk);
}

/// The events of one stream of a kind: one watch after another.
#[derive(Debug, Default)]
pub struct Feed {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    epoch: Epoch,
    kind: Option<Gvk>,
}

/// The source of a watch.
#[derive(Clone, Debug)]
pub struct WatchSource {
    /// The kind.
    pub resource: ApiResource,
    /// One namespace; `None` for all.
    pub namespace: Option<String>,
    /// All objects or those of packages, whole or metadata only.
    pub reach: WatchScope,
    /// Label selector; `None` for all objects.
    pub labels: Option<String>,
}

impl Feed {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // A sink that panicked has ended its watch; this state is still valid.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an epoch: events of earlier ones are dropped.
    pub fn begin(&self, epoch: Epoch, kind: Gvk) {
        let mut inner = self.inner();
        inner.epoch = epoch;
        inner.kind = Some(kind);
    }

    /// Ends the epoch; cached objects stay.
    pub fn end(&self, sink: &dyn Sink) {
        self.over(|kind| sink.end(kind));
    }

    /// Ends the epoch: the kind is gone, with every cached object.
    pub fn gone(&self, sink: &dyn Sink) {
        self.over(|kind| sink.gone(kind));
    }

    /// Ends the epoch and drops the cached objects.
    pub fn forget(&self, sink: &dyn Sink) {
        self.over(|kind| sink.forget(kind));
    }

    fn over(&self, send: impl Fn(&Gvk)) {
        let mut inner = self.inner();
        inner.epoch = Epoch::default();
        inner.kind.iter().for_each(send);
    }

    /// Delivers an event of the current epoch; drops others. Holds the lock during delivery, so that no
    /// event of an epoch follows its end.
    fn take(&self, epoch: Epoch, event: KindEvent<Stripped>, source: &WatchSource, sink: &dyn Sink) {
        let inner = self.inner();
        let Inner { epoch: current, kind: Some(kind) } = &*inner else { return };
        if *current != epoch {
            return;
        }
        let namespace = || source.namespace.as_deref().unwrap_or_default().into();
        let change = match event {
            KindEvent::Listing => WatchChange::Listing(namespace()),
            KindEvent::Listed(object) => WatchChange::Listed(source.told(object)),
            KindEvent::Synced => WatchChange::Synced(namespace()),
            KindEvent::Applied(object) => WatchChange::Applied(source.told(object)),
            KindEvent::Deleted(object) => WatchChange::Deleted(source.told(object)),
            KindEvent::Flowing | KindEvent::Trouble(_) => return,
        };
        sink.observe(kind, epoch, change);
    }
}

impl WatchSource {
    fn subject(&self) -> ListedResource {
        ListedResource {
            path: DynamicObject::url_path(&self.resource, self.namespace.as_deref()),
            labels: self.labels.clone(),
            metadata_only: !self.reach.whole,
        }
    }

    /// The object with its apiVersion and kind, which list items of built-in kinds and
    /// PartialObjectMetadata lack.
    fn told(&self, Stripped(mut object): Stripped) -> Arc<Value> {
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
    source: WatchSource,
    feed: Arc<Feed>,
    epoch: Epoch,
    sink: Arc<dyn Sink>,
    report: impl Fn(KindReport) + Send + Sync + 'static,
) -> Running {
    let task = async move {
        let followed = watch::follow(client, source.subject(), |event: KindEvent<Stripped>| match event {
            KindEvent::Flowing => report(KindReport::Flowing),
            KindEvent::Trouble(why) => {
                warn!(kind = %source.resource.kind, why, "a kind cannot be watched; trying again");
                report(KindReport::Trouble(why));
            }
            told => feed.take(epoch, told, &source, sink.as_ref()),
        });
        report(match caught(followed).await {
            Ok(WatchEnd::ListRefused) => KindReport::Refused(ApiVerb::List),
            Ok(WatchEnd::WatchRefused) => KindReport::Refused(ApiVerb::Watch),
            Ok(WatchEnd::NotFound) => KindReport::NotFound,
            Err(panicked) => {
                error!(kind = %source.resource.kind, %panicked, "a watch has ended; it is opened anew");
                KindReport::Broken(panicked.to_string())
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
