//! A watched kind and the tasks that watch it.

use std::sync::Arc;

use interlock_core::api::object::Gvk;
use kube::Client;
use kube::api::ApiResource;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::event_sink;
use super::event_sink::{Feed, Running, Sink, WatchSource};
use super::handle::Order;
use super::kind::{WatchAction, WatchedKind};
use super::watch_request::{KindWant, WatchScope};
use crate::cluster::crds::Usable;

/// The configuration of watches.
pub(super) struct WatchContext {
    pub client: Client,
    /// The only watched namespaces; empty means all.
    pub namespaces: Vec<String>,
    /// Label selector of objects that packages make.
    pub labels: String,
    pub sink: Arc<dyn Sink>,
    /// The channel for reports of the watches.
    pub orders: mpsc::UnboundedSender<Order>,
}

/// A watched kind and its tasks.
pub(super) struct WatchTask {
    pub watched: WatchedKind,
    feeds: Vec<Arc<Feed>>,
    running: Vec<Running>,
}

impl WatchTask {
    /// A kind without a look-up yet.
    pub(super) fn new(ground: &WatchContext, now: Instant) -> Self {
        let streams = ground.namespaces.len().max(1);
        let feeds = (0..streams).map(|_| Arc::default()).collect();
        Self { watched: WatchedKind::new(streams, now), feeds, running: Vec::new() }
    }

    /// Executes an action of the machine.
    pub(super) fn execute(&mut self, want: &KindWant, execute: WatchAction, ground: &WatchContext) {
        self.running.clear();
        let sink = ground.sink.as_ref();
        match execute {
            WatchAction::Close => self.feeds.iter().for_each(|feed| feed.end(sink)),
            WatchAction::Gone => self.feeds.iter().for_each(|feed| feed.gone(sink)),
            WatchAction::Forget => {
                tracing::info!(kind = %want.kind, group = %want.group, "nobody needs a kind any more");
                self.feeds.iter().for_each(|feed| feed.forget(sink));
            }
            WatchAction::Open { epoch, usable, reach } => {
                tracing::debug!(kind = %want.kind, group = %want.group, %epoch, "a watch is opened");
                let sources = sources(want, &usable, reach, ground);
                for (i, (feed, source)) in self.feeds.iter().zip(sources).enumerate() {
                    feed.begin(epoch, watched_as(want, &usable));
                    let (orders, want) = (ground.orders.clone(), want.clone());
                    let report =
                        move |report| drop(orders.send(Order::Report(want.clone(), epoch, i, report)));
                    let (client, sink) = (ground.client.clone(), ground.sink.clone());
                    self.running.push(event_sink::open(client, source, feed.clone(), epoch, sink, report));
                }
            }
        }
    }
}

/// The watches of a kind, one for each stream.
fn sources(want: &KindWant, usable: &Usable, reach: WatchScope, ground: &WatchContext) -> Vec<WatchSource> {
    let gvk = gvk(want, &usable.identity.version);
    let resource = ApiResource {
        api_version: gvk.api_version(),
        group: gvk.group,
        version: gvk.version,
        kind: gvk.kind,
        plural: usable.plural.clone(),
    };
    let labels = match want.labelled {
        Some(labelled) => Some(labelled.selector()),
        None => (!reach.all).then(|| ground.labels.clone()),
    };
    let one =
        |namespace| WatchSource { resource: resource.clone(), namespace, reach, labels: labels.clone() };
    match ground.namespaces.as_slice() {
        some @ [_, ..] if usable.namespaced => some.iter().cloned().map(Some).map(one).collect(),
        _ => vec![one(None)],
    }
}

/// The kind under which the sink knows the objects.
fn watched_as(want: &KindWant, usable: &Usable) -> Gvk {
    let gvk = gvk(want, &usable.identity.version);
    match want.labelled {
        Some(labelled) => Gvk { kind: labelled.name.to_owned(), ..gvk },
        None => gvk,
    }
}

/// A requested kind at a version.
pub(super) fn gvk(want: &KindWant, version: &str) -> Gvk {
    Gvk { group: want.group.clone(), version: version.to_owned(), kind: want.kind.clone() }
}
