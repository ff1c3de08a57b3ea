//! A watched kind and the tasks that watch it.

use std::sync::Arc;

use interlock_core::api::object::Gvk;
use kube::Client;
use kube::api::ApiResource;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::event_sink;
use super::event_sink::{EpochFeed, RunningWatch, Sink, WatchSource};
use super::handle::SupervisorCommand;
use super::kind::{WatchAction, WatchedKind};
use super::watch_request::{RequestedKind, WatchScope};
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
    pub orders: mpsc::UnboundedSender<SupervisorCommand>,
}

/// A watched kind and its tasks.
pub(super) struct WatchTask {
    pub watched: WatchedKind,
    feeds: Vec<Arc<EpochFeed>>,
    running: Vec<RunningWatch>,
}

impl WatchTask {
    /// A kind without a look-up yet.
    pub(super) fn new(context: &WatchContext, now: Instant) -> Self {
        let streams = context.namespaces.len().max(1);
        let feeds = (0..streams).map(|_| Arc::default()).collect();
        Self { watched: WatchedKind::new(streams, now), feeds, running: Vec::new() }
    }

    /// Executes an action of the machine.
    pub(super) fn execute(
        &mut self,
        requested: &RequestedKind,
        execute: WatchAction,
        context: &WatchContext,
    ) {
        self.running.clear();
        let sink = context.sink.as_ref();
        match execute {
            WatchAction::Close => self.feeds.iter().for_each(|feed| feed.end(sink)),
            WatchAction::Gone => self.feeds.iter().for_each(|feed| feed.gone(sink)),
            WatchAction::Forget => {
                tracing::info!(kind = %requested.kind, group = %requested.group, "closed the watch of a kind without requesters");
                self.feeds.iter().for_each(|feed| feed.forget(sink));
            }
            WatchAction::Open { epoch, usable, scope } => {
                tracing::debug!(kind = %requested.kind, group = %requested.group, %epoch, "watch opened");
                let sources = sources(requested, &usable, scope, context);
                for (i, (feed, source)) in self.feeds.iter().zip(sources).enumerate() {
                    feed.begin(epoch, watched_as(requested, &usable));
                    let (orders, requested) = (context.orders.clone(), requested.clone());
                    let report = move |report| {
                        drop(orders.send(SupervisorCommand::Report(requested.clone(), epoch, i, report)))
                    };
                    let (client, sink) = (context.client.clone(), context.sink.clone());
                    self.running.push(event_sink::open(client, source, feed.clone(), epoch, sink, report));
                }
            }
        }
    }
}

/// The watches of a kind, one for each stream.
fn sources(
    requested: &RequestedKind,
    usable: &Usable,
    scope: WatchScope,
    context: &WatchContext,
) -> Vec<WatchSource> {
    let gvk = gvk(requested, &usable.identity.version);
    let resource = ApiResource {
        api_version: gvk.api_version(),
        group: gvk.group,
        version: gvk.version,
        kind: gvk.kind,
        plural: usable.plural.clone(),
    };
    let labels = match requested.labelled {
        Some(labelled) => Some(labelled.selector()),
        None => (!scope.all).then(|| context.labels.clone()),
    };
    let one =
        |namespace| WatchSource { resource: resource.clone(), namespace, scope, labels: labels.clone() };
    match context.namespaces.as_slice() {
        some @ [_, ..] if usable.namespaced => some.iter().cloned().map(Some).map(one).collect(),
        _ => vec![one(None)],
    }
}

/// The kind under which the sink knows the objects.
fn watched_as(requested: &RequestedKind, usable: &Usable) -> Gvk {
    let gvk = gvk(requested, &usable.identity.version);
    match requested.labelled {
        Some(labelled) => Gvk { kind: labelled.name.to_owned(), ..gvk },
        None => gvk,
    }
}

pub(super) fn gvk(requested: &RequestedKind, version: &str) -> Gvk {
    Gvk { group: requested.group.clone(), version: version.to_owned(), kind: requested.kind.clone() }
}
