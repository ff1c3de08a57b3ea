//! From a watch to those who keep what is seen: differences from what is known, under one epoch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::api::{Api, ApiResource, DynamicObject, PartialObjectMeta, Resource, TypeMeta};
use kube::core::DynamicResourceScope;
use kube::{Client, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::task::AbortHandle;
use tracing::warn;

use super::kind::{Reach, Report};
use super::state::{Epoch, Verb};
use crate::api::object::Gvk;
use crate::cluster::watch::{self, Change, End, Event};

/// Who keeps what is seen.
pub trait Sink: Send + Sync + 'static {
    /// Something happened to an object of a kind, or the kind was listed. Called in order for
    /// each kind, and never for an epoch that is over.
    fn observe(&self, kind: &Gvk, epoch: Epoch, change: Change);

    /// Nobody needs a kind any more: its objects are not followed, which says nothing of them.
    fn forget(&self, kind: &Gvk);

    /// A kind is not watched now: what is known of it is out of date, and nothing follows from
    /// what is not known.
    fn end(&self, kind: &Gvk);
}

/// Namespace (empty for cluster-scoped objects) and name.
type Id = (String, String);

/// What is known by one watch and those before it.
#[derive(Debug, Default)]
pub struct Feed {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    epoch: Epoch,
    kind: Option<Gvk>,
    known: BTreeMap<Id, Arc<Value>>,
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
    pub labels: String,
}

impl Feed {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        // A sink that panicked has ended its watch; what is known is still what was delivered.
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
        let mut inner = self.inner();
        inner.epoch = Epoch::default();
        inner.kind.iter().for_each(|kind| sink.end(kind));
    }

    /// Ends the epoch: the kind is gone, and so is every object that was known.
    pub fn gone(&self, sink: &dyn Sink) {
        let mut inner = self.inner();
        let epoch = std::mem::take(&mut inner.epoch);
        let known = std::mem::take(&mut inner.known);
        if let Some(kind) = &inner.kind {
            known.into_values().for_each(|object| sink.observe(kind, epoch, Change::Deleted(object)));
        }
    }

    /// Ends the epoch and forgets.
    pub fn forget(&self, sink: &dyn Sink) {
        let mut inner = self.inner();
        inner.epoch = Epoch::default();
        inner.known.clear();
        inner.kind.iter().for_each(|kind| sink.forget(kind));
    }

    /// Takes in a change under an epoch; drops it where that is over. The lock is held while it
    /// is delivered, so that nothing of an epoch comes after its end.
    fn take(&self, epoch: Epoch, event: Event<Value>, sink: &dyn Sink) {
        let mut inner = self.inner();
        let Inner { epoch: current, kind: Some(kind), known } = &mut *inner else { return };
        if *current != epoch {
            return;
        }
        match event {
            Event::Listed(objects) => {
                let fresh: BTreeMap<_, _> =
                    objects.into_iter().map(|object| (id(&object), Arc::new(object))).collect();
                for (id, gone) in std::mem::take(known) {
                    if !fresh.contains_key(&id) {
                        sink.observe(kind, epoch, Change::Deleted(gone));
                    }
                }
                fresh.values().for_each(|object| sink.observe(kind, epoch, Change::Applied(object.clone())));
                *known = fresh;
                sink.observe(kind, epoch, Change::Synced);
            }
            Event::Applied(object) => {
                let object = Arc::new(object);
                known.insert(id(&object), object.clone());
                sink.observe(kind, epoch, Change::Applied(object));
            }
            Event::Deleted(object) => {
                known.remove(&id(&object));
                sink.observe(kind, epoch, Change::Deleted(Arc::new(object)));
            }
            Event::Flowing | Event::Trouble(_) => {}
        }
    }
}

fn id(object: &Value) -> Id {
    let text = |field| crate::api::object::meta_str(object, field).unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
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
        let end = if source.reach.whole {
            follow::<DynamicObject>(client, &source, &feed, epoch, sink.as_ref(), &report).await
        } else {
            follow::<PartialObjectMeta<DynamicObject>>(client, &source, &feed, epoch, sink.as_ref(), &report)
                .await
        };
        report(match end {
            End::ListRefused => Report::Refused(Verb::List),
            End::WatchRefused => Report::Refused(Verb::Watch),
            End::NotFound => Report::NotFound,
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

async fn follow<K>(
    client: Client,
    source: &Source,
    feed: &Feed,
    epoch: Epoch,
    sink: &dyn Sink,
    report: &(dyn Fn(Report) + Send + Sync),
) -> End
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>
        + Clone
        + Serialize
        + DeserializeOwned
        + std::fmt::Debug
        + Send
        + 'static,
{
    let api: Api<K> = match &source.namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &source.resource),
        None => Api::all_with(client, &source.resource),
    };
    let labels = (!source.reach.all).then(|| source.labels.clone());
    let value = |object| to_value(object, &source.resource);
    watch::follow(api, labels, None, |event: Event<K>| match event {
        Event::Listed(objects) => {
            let objects = objects.into_iter().filter_map(value).collect();
            feed.take(epoch, Event::Listed(objects), sink);
        }
        Event::Applied(object) => {
            value(object).into_iter().for_each(|object| feed.take(epoch, Event::Applied(object), sink));
        }
        Event::Deleted(object) => {
            value(object).into_iter().for_each(|object| feed.take(epoch, Event::Deleted(object), sink));
        }
        Event::Flowing => report(Report::Flowing),
        Event::Trouble(why) => {
            warn!(kind = %source.resource.kind, why, "a kind cannot be watched; trying again");
            report(Report::Trouble(why));
        }
    })
    .await
}

/// The object as JSON without `managedFields`, which nothing here reads.
fn to_value<K: Resource + Serialize>(mut object: K, resource: &ApiResource) -> Option<Value> {
    object.managed_fields_mut().clear();
    let types = TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() };
    match serde_json::to_value(object) {
        Ok(mut value) => {
            value["apiVersion"] = types.api_version.into();
            value["kind"] = types.kind.into();
            Some(value)
        }
        Err(error) => {
            warn!(kind = %resource.kind, %error, "an object could not be read");
            None
        }
    }
}
