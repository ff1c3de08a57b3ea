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
use crate::cluster::strip_managed_fields::{Stripped, Whole};
use crate::cluster::watch::{self, KindEvent, WatchChange, WatchEnd, Watchable};
use crate::telemetry::panics::caught;

/// Receives watched objects.
pub trait Sink: Send + Sync + 'static {
    /// An object of a kind has changed, or the kind was listed. Called in order for each kind, and never
    /// for an ended epoch.
    fn observe(&self, kind: &Gvk, epoch: Epoch, change: WatchChange);

    /// A kind is gone, and with it every object of it.
    fn gone(&self, kind: &Gvk);

    /// No requester needs a kind any more: its objects are no longer watched, but may still exist.
    fn forget(&self, kind: &Gvk);

    /// The watch of a kind is closed: its cached objects are stale, and a missing object proves nothing.
    fn end(&self, kind: &Gvk);
}

/// The events of one stream of a kind: one watch after another.
#[derive(Debug, Default)]
pub struct EpochFeed {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    epoch: Epoch,
    kind: Option<Gvk>,
}

#[derive(Clone, Debug)]
pub struct WatchSource {
    /// The kind.
    pub resource: ApiResource,
    /// One namespace; `None` for all.
    pub namespace: Option<String>,
    /// All objects or those of packages, whole or metadata only.
    pub scope: WatchScope,
    /// Label selector; `None` for all objects.
    pub labels: Option<String>,
}

impl EpochFeed {
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
        self.end_with(|kind| sink.end(kind));
    }

    /// Ends the epoch: the kind is gone, with every cached object.
    pub fn gone(&self, sink: &dyn Sink) {
        self.end_with(|kind| sink.gone(kind));
    }

    /// Ends the epoch and drops the cached objects.
    pub fn forget(&self, sink: &dyn Sink) {
        self.end_with(|kind| sink.forget(kind));
    }

    fn end_with(&self, send: impl Fn(&Gvk)) {
        let mut inner = self.inner();
        inner.epoch = Epoch::default();
        inner.kind.iter().for_each(send);
    }

    /// Delivers an event of the current epoch; drops others. Holds the lock during delivery, so that no
    /// event of an epoch follows its end.
    fn take(&self, epoch: Epoch, event: KindEvent<impl Into<Value>>, source: &WatchSource, sink: &dyn Sink) {
        let inner = self.inner();
        let Inner { epoch: current, kind: Some(kind) } = &*inner else { return };
        if *current != epoch {
            return;
        }
        let namespace = || source.namespace.as_deref().unwrap_or_default().into();
        let change = match event {
            KindEvent::Listing => WatchChange::Listing(namespace()),
            KindEvent::Listed(object) => WatchChange::Listed(source.with_type_meta(object)),
            KindEvent::Synced => WatchChange::Synced(namespace()),
            KindEvent::Applied(object) => WatchChange::Applied(source.with_type_meta(object)),
            KindEvent::Deleted(object) => WatchChange::Deleted(source.with_type_meta(object)),
            KindEvent::Opened | KindEvent::Trouble(_) => return,
        };
        sink.observe(kind, epoch, change);
    }
}

impl WatchSource {
    fn listed_resource(&self) -> ListedResource {
        ListedResource {
            path: DynamicObject::url_path(&self.resource, self.namespace.as_deref()),
            labels: self.labels.clone(),
            metadata_only: !self.scope.whole,
        }
    }

    /// The object with its apiVersion and kind, which list items of built-in kinds and
    /// PartialObjectMetadata lack.
    fn with_type_meta(&self, object: impl Into<Value>) -> Arc<Value> {
        let mut object: Value = object.into();
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
    feed: Arc<EpochFeed>,
    epoch: Epoch,
    sink: Arc<dyn Sink>,
    report: impl Fn(KindReport) + Send + Sync + 'static,
) -> RunningWatch {
    let task = async move {
        let ended = match source.scope.managed_fields {
            true => caught(follow::<Whole>(client, &source, &feed, epoch, sink.as_ref(), &report)).await,
            false => caught(follow::<Stripped>(client, &source, &feed, epoch, sink.as_ref(), &report)).await,
        };
        report(match ended {
            Ok(WatchEnd::ListRefused) => KindReport::Refused(ApiVerb::List),
            Ok(WatchEnd::WatchRefused) => KindReport::Refused(ApiVerb::Watch),
            Ok(WatchEnd::NotFound) => KindReport::NotFound,
            Err(panicked) => {
                error!(kind = %source.resource.kind, %panicked, "a watch panicked; reopening it");
                KindReport::Broken(panicked.to_string())
            }
        });
    };
    RunningWatch(tokio::spawn(task).abort_handle())
}

async fn follow<K: Watchable + Into<Value>>(
    client: Client,
    source: &WatchSource,
    feed: &EpochFeed,
    epoch: Epoch,
    sink: &dyn Sink,
    report: &(impl Fn(KindReport) + Send + Sync),
) -> WatchEnd {
    let emit = |event: KindEvent<K>| match event {
        KindEvent::Opened => report(KindReport::Opened),
        KindEvent::Trouble(why) => {
            warn!(kind = %source.resource.kind, why, "a kind cannot be watched; retrying");
            report(KindReport::Trouble(why));
        }
        with_type_meta => feed.take(epoch, with_type_meta, source, sink),
    };
    watch::follow(client, source.listed_resource(), emit).await
}

/// A watch that is stopped when this is dropped.
#[derive(Debug)]
pub struct RunningWatch(AbortHandle);

impl Drop for RunningWatch {
    fn drop(&mut self) {
        self.0.abort();
    }
}
