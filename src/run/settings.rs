//! The settings: followed by every replica, reported on by the one that leads.

use std::sync::Arc;

use kube::Client;
use tokio::sync::watch;

use super::{Parts, Process, RunError};
use crate::api::object::NamespacedName;
use crate::cluster::apply::Bookkeeping;
use crate::cluster::binding::Sight;
use crate::cluster::events::Events;
use crate::cluster::lease::Leadership;
use crate::cluster::queue::Queue;
use crate::cluster::supervisor::{Modes, Snapshot};
use crate::controllers::flavor_sources::Labeller;
use crate::controllers::interlock::{Context, Reporter};
use crate::controllers::observe::Interlocks;
use crate::controllers::rollouts::Finder;

impl Process {
    /// Follows the Interlock objects, which the supervisor's watch fills in; rules and modes change
    /// with the one that is honoured.
    pub(super) fn follow_settings(
        &self,
        objects: Arc<Interlocks>,
        queue: Option<Arc<Queue<NamespacedName>>>,
        modes: watch::Sender<Modes>,
        snapshot: watch::Receiver<Arc<Snapshot>>,
        parts: &mut Parts,
    ) {
        let context = Context { objects, store: self.store.clone(), queue, modes, snapshot };
        parts.spawn(async move {
            context.follow().await;
            Ok("the settings")
        });
    }

    /// Labels what flavors of gateways come from, while this process leads.
    pub(super) fn label_flavor_sources(
        &self,
        books: &Client,
        snapshot: watch::Receiver<Arc<Snapshot>>,
        leadership: watch::Receiver<Leadership>,
        parts: &mut Parts,
    ) {
        let labeller = Labeller {
            store: self.store.clone(),
            snapshot,
            leadership,
            bookkeeping: Bookkeeping::new(books.clone()),
            events: Events::new(books.clone()),
        };
        let stop = self.shutdown.lingering_token();
        parts.spawn(async move {
            labeller.run(stop).await;
            std::future::pending::<Result<&str, RunError>>().await
        });
    }

    /// Finds what Deployments ran before rollouts that were under way when this process came.
    pub(super) fn find_rollouts(&self, books: &Client, parts: &mut Parts) {
        let finder = Finder { store: self.store.clone(), client: books.clone() };
        let stop = self.shutdown.lingering_token();
        parts.spawn(async move {
            finder.run(stop).await;
            std::future::pending::<Result<&str, RunError>>().await
        });
    }

    /// Tells what became of the settings, while this process leads.
    pub(super) fn report_settings(
        &self,
        books: &Client,
        objects: Arc<Interlocks>,
        snapshot: watch::Receiver<Arc<Snapshot>>,
        binding: watch::Receiver<Sight>,
        leadership: watch::Receiver<Leadership>,
        parts: &mut Parts,
    ) {
        let reporter = Reporter {
            objects,
            store: self.store.clone(),
            snapshot,
            binding,
            leadership,
            bookkeeping: Bookkeeping::new(books.clone()),
            events: Events::new(books.clone()),
        };
        let stop = self.shutdown.lingering_token();
        parts.spawn(async move {
            reporter.run(stop).await;
            std::future::pending::<Result<&str, RunError>>().await
        });
    }
}
