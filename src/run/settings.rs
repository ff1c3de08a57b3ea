//! The settings: every replica follows them, and the leader reports on them.

use std::sync::Arc;

use interlock_core::api::object::NamespacedName;
use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Parts, Process, RunError, restarted};
use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::binding::BindingState;
use crate::cluster::events::EventPublisher;
use crate::cluster::lease::Leadership;
use crate::cluster::supervisor::{CapabilitySnapshot, Modes};
use crate::controllers::flavor_sources::Labeller;
use crate::controllers::interlock::{Reporter, SettingsContext};
use crate::controllers::live_specs::Archive;
use crate::controllers::rollout_backfill::Finder;
use crate::runtime::index::Interlocks;
use crate::runtime::queue::Queue;

impl Process {
    /// Follows the Interlock objects, which the supervisor's watch delivers; rules and modes change with
    /// the honoured one.
    pub(super) fn follow_settings(
        &self,
        objects: Arc<Interlocks>,
        queue: Option<Arc<Queue<NamespacedName>>>,
        modes: watch::Sender<Modes>,
        snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
        parts: &mut Parts,
    ) {
        let context = SettingsContext { objects, store: self.store.clone(), queue, modes, snapshot };
        let follow = async move {
            context.follow().await;
            Ok("the settings")
        };
        parts.spawn_on(follow, &self.runtimes.watching);
    }

    /// Labels the sources of gateways' flavors, while this process leads.
    pub(super) fn label_flavor_sources(
        &self,
        books: &Client,
        snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
        leadership: watch::Receiver<Leadership>,
        parts: &mut Parts,
    ) {
        let labeller = Labeller {
            store: self.store.clone(),
            snapshot,
            leadership,
            bookkeeping: Bookkeeping::new(books.clone()),
            events: EventPublisher::new(books.clone()),
            secrets: self.options.flavor_secrets,
        };
        self.control("labels of flavor sources", labeller, |labeller, stop| labeller.run(stop), parts);
    }

    /// Archives the live specs of DataPlanes that are too large for the stamp, while this process leads.
    pub(super) fn keep_live_specs(
        &self,
        books: &Client,
        snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
        leadership: watch::Receiver<Leadership>,
        parts: &mut Parts,
    ) {
        let archive = Archive {
            store: self.store.clone(),
            snapshot,
            leadership,
            client: books.clone(),
            bookkeeping: Bookkeeping::new(books.clone()),
            events: EventPublisher::new(books.clone()),
        };
        self.control("archive of live specs", archive, |archive, stop| archive.run(stop), parts);
    }

    /// Finds the previous templates of rollouts that were in progress when this process started.
    pub(super) fn find_rollouts(&self, books: &Client, parts: &mut Parts) {
        let finder = Finder { store: self.store.clone(), client: books.clone() };
        let (stop, metrics) = (self.shutdown.lingering_token(), self.metrics.clone());
        let running = async move {
            restarted("search for rollouts", &metrics, || finder.clone().run(stop.clone())).await;
            std::future::pending::<Result<&str, RunError>>().await
        };
        parts.spawn_on(running, &self.runtimes.watching);
    }

    /// Reports on the settings, while this process leads.
    pub(super) fn report_settings(
        &self,
        books: &Client,
        objects: Arc<Interlocks>,
        snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
        binding: watch::Receiver<BindingState>,
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
            events: EventPublisher::new(books.clone()),
        };
        self.control("report on the settings", reporter, |reporter, stop| reporter.run(stop), parts);
    }

    /// Runs a controller on the controllers' runtime, until the process stops; restarts it after a panic.
    fn control<C, W>(
        &self,
        name: &'static str,
        controller: C,
        run: impl Fn(C, CancellationToken) -> W + Send + Sync + 'static,
        parts: &mut Parts,
    ) where
        C: Clone + Send + Sync + 'static,
        W: Future<Output = ()> + Send + 'static,
    {
        let (stop, metrics) = (self.shutdown.lingering_token(), self.metrics.clone());
        let running = async move {
            restarted(name, &metrics, || run(controller.clone(), stop.clone())).await;
            std::future::pending::<Result<&str, RunError>>().await
        };
        parts.spawn_on(running, &self.runtimes.reconciling);
    }
}
