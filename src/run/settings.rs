//! The settings: every replica follows them, and the leader reports on them.

use std::sync::{Arc, Mutex};

use interlock_core::api::object::NamespacedName;
use kube::Client;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Parts, Process, RunError, restarted};
use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::binding::BindingState;
use crate::cluster::events::EventPublisher;
use crate::cluster::failure_reports::FailureReports;
use crate::cluster::lease::Leadership;
use crate::cluster::supervisor::{CapabilitySnapshot, Modes};
use crate::controllers::flavor_sources::{AllSources, Labeller};
use crate::controllers::interlock::{Reporter, SettingsContext};
use crate::controllers::rollout_backfill::Finder;
use crate::controllers::route_patterns;
use crate::runtime::controller::{Controller, Gate};
use crate::runtime::gate::LeaderGate;
use crate::runtime::index::Interlocks;
use crate::runtime::queue::Queue;
use crate::runtime::runner;

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
        process_client: &Client,
        snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
        leadership: watch::Receiver<Leadership>,
        parts: &mut Parts,
    ) {
        let queue = Arc::<Queue<AllSources>>::default();
        let labeller = Arc::new(Labeller {
            store: self.store.clone(),
            snapshot,
            queue: queue.clone(),
            client: process_client.clone(),
            bookkeeping: Bookkeeping::new(process_client.clone()),
            events: EventPublisher::new(process_client.clone()),
            reports: FailureReports::new(EventPublisher::new(process_client.clone())),
            secrets: self.options.flavor_secrets,
            labelled_secrets: Mutex::default(),
        });
        let gate = move || LeaderGate::new(leadership.clone());
        self.control_by_queue("labels of flavor sources", labeller, queue, gate, parts);
    }

    /// Finds the previous templates of rollouts that were in progress when this process started.
    pub(super) fn find_rollouts(&self, process_client: &Client, parts: &mut Parts) {
        let finder = Finder { store: self.store.clone(), client: process_client.clone() };
        let (stop, metrics) = (self.shutdown.lingering_token(), self.metrics.clone());
        let running = async move {
            restarted("search for rollouts", &metrics, || finder.clone().run(stop.clone())).await;
            std::future::pending::<Result<&str, RunError>>().await
        };
        parts.spawn_on(running, &self.runtimes.watching);
    }

    /// Compiles the patterns of routes when they arrive.
    pub(super) fn compile_patterns(&self, parts: &mut Parts) {
        let (store, stop, metrics) =
            (self.store.clone(), self.shutdown.lingering_token(), self.metrics.clone());
        let running = async move {
            let run = || route_patterns::run(store.clone(), stop.clone());
            restarted("patterns of routes", &metrics, run).await;
            std::future::pending::<Result<&str, RunError>>().await
        };
        parts.spawn_on(running, &self.runtimes.watching);
    }

    /// Reports on the settings, while this process leads.
    pub(super) fn report_settings(
        &self,
        process_client: &Client,
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
            bookkeeping: Bookkeeping::new(process_client.clone()),
            events: EventPublisher::new(process_client.clone()),
            reports: Arc::new(FailureReports::new(EventPublisher::new(process_client.clone()))),
        };
        self.control("report on the settings", reporter, |reporter, stop| reporter.run(stop), parts);
    }

    /// Runs a client of the runtime on the controllers' runtime, until the process stops.
    fn control_by_queue<C, G>(
        &self,
        name: &'static str,
        controller: Arc<C>,
        queue: Arc<Queue<C::Key>>,
        gate: impl Fn() -> G + Clone + Send + Sync + 'static,
        parts: &mut Parts,
    ) where
        C: Controller,
        G: Gate<Term = C::Term> + 'static,
    {
        let metrics = self.metrics.clone();
        let run = move |controller: Arc<C>, stop| {
            runner::run(controller, queue.clone(), gate(), metrics.clone(), stop)
        };
        self.control(name, controller, run, parts);
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
