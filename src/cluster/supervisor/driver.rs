//! The task around the pure machines: it takes in events, steps the machines, executes their actions, and
//! publishes their states.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use interlock_core::api::object::Gvk;
use interlock_core::api::watched::BuiltIn;
use kube::Client;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::capability::{Capability, CapabilityKinds, Mode, Modes};
use super::capability_state;
use super::capability_state::{ReportedTransition, TrackedCapability};
use super::definitions::{self, Definitions, DefinitionsReport, DefinitionsWatch};
use super::event_sink::Sink;
use super::handle::{Handle, SupervisorCommand, Watches};
use super::kind::{WatchAction, WatchedKind};
use super::machine::{CapabilityFacts, CapabilityTransition, RequiredKind};
use super::optional::Optional;
use super::state::{CapabilitySnapshot, Epoch, WatchState};
use super::watch_request::{KindRequester, RequestedKind, WatchRequest, WatchScope};
use super::watch_task::{WatchContext, WatchTask};
use crate::cluster::crds::{Absence, Identity, Usable};
use crate::telemetry::metrics::Metrics;

/// The configuration of a supervisor.
pub struct Setup {
    /// The client whose rights decide which kinds can be watched.
    pub client: Client,
    /// The only watched namespaces; empty means all.
    pub namespaces: Vec<String>,
    /// The declared capabilities.
    pub capabilities: Vec<CapabilityKinds>,
    /// Capabilities whose controllers run in this process; they report their work.
    pub controlled: Vec<&'static str>,
    /// Built-in kinds that can be watched on demand.
    pub built_in: &'static [BuiltIn],
    /// Label selector of objects that packages make.
    pub labels: String,
    /// Modes from the settings.
    pub modes: watch::Receiver<Modes>,
    /// The capability whose objects hold the settings: it always runs, and the others wait for it.
    pub settings: &'static str,
    /// Receives watched objects.
    pub sink: Arc<dyn Sink>,
    /// Receives capability events, and optional kinds that came or went.
    pub listener: Arc<dyn Listener>,
    /// Counts.
    pub metrics: Arc<Metrics>,
}

/// Receives the changes that matter to people or to waiting work.
pub trait Listener: Send + Sync + 'static {
    /// A capability's controller starts or stops. `kind` is the definition that caused it.
    fn transitioned(&self, capability: &'static str, transition: CapabilityTransition, kind: &str, why: &str);

    /// An optional kind of a capability came or went.
    fn kind_changed(&self, capability: &'static str, kind: &str, watch_state: &WatchState);

    /// The watch state of a kind has changed; its requesters may proceed.
    fn changed(&self, kind: &Gvk, requesters: Vec<KindRequester>);
}

/// The supervisor; [`Supervisor::run`] is its task.
pub struct Supervisor {
    pub(super) setup: Setup,
    context: WatchContext,
    inbox: mpsc::UnboundedReceiver<SupervisorCommand>,
    orders: mpsc::UnboundedSender<SupervisorCommand>,
    definitions: Definitions,
    health: DefinitionsWatch,
    pub(super) kinds: BTreeMap<RequestedKind, WatchTask>,
    pub(super) capabilities: Vec<TrackedCapability>,
    pub(super) optional: Optional,
    epochs: u64,
    pub(super) snapshot: watch::Sender<Arc<CapabilitySnapshot>>,
    pub(super) watches: watch::Sender<Arc<Watches>>,
}

impl Supervisor {
    /// A supervisor that has observed nothing.
    pub fn new(setup: Setup) -> (Self, Handle) {
        let (orders, inbox) = mpsc::unbounded_channel();
        let definitions = Definitions::default();
        let capabilities: Vec<TrackedCapability> =
            setup.capabilities.iter().map(TrackedCapability::new).collect();
        let works = capabilities.iter().map(|c| (c.declared.name, c.work.subscribe())).collect();
        let (snapshot, snapshots) = watch::channel(Arc::default());
        let (watches, required_kinds) = watch::channel(Arc::default());
        let handle = Handle {
            orders: orders.clone(),
            snapshot: snapshots,
            watches: required_kinds,
            works: Arc::new(works),
            definitions: definitions.clone(),
        };
        let health = DefinitionsWatch::new(definitions.clone());
        let context = WatchContext {
            client: setup.client.clone(),
            namespaces: setup.namespaces.clone(),
            labels: setup.labels.clone(),
            sink: setup.sink.clone(),
            orders: orders.clone(),
        };
        let mut supervisor = Self {
            setup,
            context,
            inbox,
            orders,
            definitions,
            health,
            kinds: BTreeMap::new(),
            capabilities,
            optional: Optional::default(),
            epochs: 0,
            snapshot,
            watches,
        };
        supervisor.publish(Instant::now());
        (supervisor, handle)
    }

    /// Runs for as long as the process does.
    pub async fn run(mut self) {
        let mut modes = self.setup.modes.clone();
        let mut definitions = self.watch_definitions();
        loop {
            let now = Instant::now();
            if self.health.start(now) {
                definitions.abort();
                definitions = self.watch_definitions();
            }
            self.run_until_stable(now);
            let due = self.due(Instant::now());
            tokio::select! {
                command = self.inbox.recv() => match command {
                    Some(command) => self.take_all(command),
                    None => return,
                },
                Ok(()) = modes.changed() => {}
                () = sleep_until(due) => {}
            }
        }
    }

    fn watch_definitions(&self) -> tokio::task::AbortHandle {
        let orders = self.orders.clone();
        let send = move |report: DefinitionsReport| drop(orders.send(SupervisorCommand::Definitions(report)));
        definitions::open(self.setup.client.clone(), send)
    }

    /// Applies a command and all queued ones, so that a burst steps the machines once.
    fn take_all(&mut self, first: SupervisorCommand) {
        self.take(first);
        while let Ok(command) = self.inbox.try_recv() {
            self.take(command);
        }
    }

    fn take(&mut self, command: SupervisorCommand) {
        let now = Instant::now();
        match command {
            SupervisorCommand::Need(requester, kinds) => self.request(&requester, &kinds, now),
            SupervisorCommand::Definitions(report) => self.health.take(report, now),
            SupervisorCommand::Report(requested, epoch, i, report) => {
                if let Some(kind) = self.kinds.get_mut(&requested) {
                    kind.watched.report(epoch, i, report, now);
                }
            }
            SupervisorCommand::AtWork(name, assignment, current) => {
                let mut all = self.capabilities.iter_mut();
                // A report under an earlier assignment is stale.
                if let Some(tracked) = all.find(|c| c.declared.name == name && c.assignment == assignment) {
                    tracked.at_work = current;
                }
            }
        }
    }

    /// Registers the kinds that a requester needs, and releases its others.
    fn request(&mut self, requester: &KindRequester, kinds: &BTreeSet<Gvk>, now: Instant) {
        let mut wanted: BTreeMap<RequestedKind, Vec<String>> = BTreeMap::new();
        for Gvk { group, version, kind } in kinds.iter().cloned() {
            wanted.entry(RequestedKind { group, kind, labelled: None }).or_default().push(version);
        }
        for (requested, kind) in &mut self.kinds {
            if !wanted.contains_key(requested) {
                kind.watched.release(requester, now);
            }
        }
        for (requested, versions) in wanted {
            let whole = self.built_in(&requested, &versions).is_some();
            let request =
                WatchRequest { versions, names: None, scope: WatchScope { whole, ..WatchScope::default() } };
            self.watched_kind(requested, now).request(requester.clone(), request);
        }
    }

    fn watched_kind(&mut self, requested: RequestedKind, now: Instant) -> &mut WatchedKind {
        let kind = self.kinds.entry(requested).or_insert_with(|| WatchTask::new(&self.context, now));
        &mut kind.watched
    }

    /// Steps every machine until none changes, and publishes.
    fn run_until_stable(&mut self, now: Instant) {
        let modes = self.setup.modes.borrow().clone();
        self.request_watches(&modes, now);
        self.step_kinds(now);
        self.step_capabilities(&modes, now);
        self.publish(now);
    }

    /// Enabled capabilities request their kinds, whether these exist or not; capabilities whose mode is
    /// unknown list nothing. A disabled one requests its required kinds once a definition waits for objects
    /// that carry our finalizer.
    fn request_watches(&mut self, modes: &Modes, now: Instant) {
        let mut requests = Vec::new();
        let settings = self.setup.settings;
        let holding: Vec<bool> = self.capabilities.iter().map(|c| self.holds_up_definition(c)).collect();
        for (tracked, holds_up_definition) in self.capabilities.iter_mut().zip(holding) {
            let Some(mode) = mode(settings, modes, tracked.declared) else { continue };
            tracked.mode = mode;
            let requester = KindRequester::Capability(tracked.declared.name);
            requests.extend(tracked.requested.iter().map(|(requested, kind, required)| {
                let needed = mode != Mode::Off || (*required && holds_up_definition);
                (requested.clone(), *kind, requester.clone(), needed)
            }));
        }
        for (requested, kind, requester, needed) in requests {
            if needed {
                self.watched_kind(requested, now).request(requester, capability_state::watch_request(&kind));
            } else if let Some(kind) = self.kinds.get_mut(&requested) {
                kind.watched.release(&requester, now);
            }
        }
    }

    /// Whether a definition is being deleted whose objects carry the finalizer of a capability.
    fn holds_up_definition(&self, tracked: &TrackedCapability) -> bool {
        let mut requested = tracked.requested.iter();
        let finalized = requested.find(|(_, kind, _)| tracked.declared.finalizes == Some(kind.kind));
        finalized.is_some_and(|(requested, kind, _)| {
            let versions = capability_state::watch_request(kind).versions;
            let found = self.definitions.read(|crds| crds.find(&requested.group, &requested.kind, &versions));
            matches!(found, Some(Ok(usable)) if usable.terminating)
        })
    }

    fn built_in(&self, requested: &RequestedKind, versions: &[String]) -> Option<Usable> {
        let declared = self.capabilities.iter().flat_map(|c| &c.requested);
        let declared = declared.filter(|(w, kind, _)| kind.built_in && w == requested).map(|(_, kind, _)| {
            (kind.versions.first().copied().unwrap_or_default(), kind.plural, kind.namespaced)
        });
        let on_demand = self.setup.built_in.iter().filter_map(|kind| {
            let same =
                kind.group == requested.group && kind.kind == requested.kind && requested.labelled.is_none();
            same.then_some((kind.version, kind.plural, kind.namespaced))
        });
        let mut all = declared.chain(on_demand);
        let (version, plural, namespaced) =
            all.find(|(version, ..)| versions.iter().any(|v| v == version))?;
        Some(Usable {
            identity: Identity { uid: String::new(), version: version.to_owned(), dropped: Vec::new() },
            plural: plural.to_owned(),
            namespaced,
            served: vec![version.to_owned()],
            terminating: false,
            status_fields: None,
        })
    }

    /// How a kind is served, at the first served version of these; `None` while that is unknown.
    fn find(
        &self,
        requested: &RequestedKind,
        versions: &[String],
        now: Instant,
    ) -> Option<Result<Usable, Absence>> {
        if let Some(usable) = self.built_in(requested, versions) {
            return Some(Ok(usable));
        }
        let known = self.health.is_known(now);
        let found = self.definitions.read(|crds| crds.find(&requested.group, &requested.kind, versions));
        let fields = self.status_fields(requested);
        found.filter(|_| known).map(|found| found.map(|usable| usable.with_status_of(fields)))
    }

    /// The fields of `status` that Interlock writes in objects of a kind.
    fn status_fields(&self, requested: &RequestedKind) -> &'static [&'static str] {
        let mut kinds = self.setup.capabilities.iter().flat_map(CapabilityKinds::all);
        let of = kinds.find(|kind| kind.group == requested.group && kind.kind == requested.kind);
        of.map_or(&[], |kind| kind.status_fields)
    }

    fn step_kinds(&mut self, now: Instant) {
        let each =
            |(requested, kind): (&RequestedKind, &WatchTask)| (requested.clone(), kind.watched.versions());
        let requested: Vec<(RequestedKind, Vec<String>)> = self.kinds.iter().map(each).collect();
        for (requested, versions) in requested {
            let found = self.find(&requested, &versions, now);
            let next = Epoch(self.epochs + 1);
            let Some(kind) = self.kinds.get_mut(&requested) else { continue };
            // While discovery is unknown, the last result stays.
            let found = found.unwrap_or_else(|| kind.watched.found());
            let Some(execute) = kind.watched.step(found, now, next) else { continue };
            self.epochs += 1;
            if matches!(execute, WatchAction::Open { .. }) {
                self.setup.metrics.watch_started();
            }
            kind.execute(&requested, execute, &self.context);
        }
        self.kinds.retain(|_, kind| !kind.watched.is_done());
    }

    fn step_capabilities(&mut self, modes: &Modes, now: Instant) {
        let known = self.health.is_known(now);
        let mut capabilities = std::mem::take(&mut self.capabilities);
        for tracked in &mut capabilities {
            let controlled = self.setup.controlled.contains(&tracked.declared.name);
            // Each step makes one transition; the longest chain is drain, idle, start, run.
            for _ in 0..8 {
                let facts = CapabilityFacts {
                    mode: mode(self.setup.settings, modes, tracked.declared),
                    definitions_known: known,
                    required: self.required_kinds(tracked, now),
                    at_work: tracked.at_work,
                    waited: now - tracked.since,
                    next_epoch: Epoch(self.epochs + 1),
                };
                let (changed, transitioned) = tracked.step(&facts, controlled, now);
                if let Some(ReportedTransition { transition, kind, why }) = transitioned {
                    self.setup.listener.transitioned(tracked.declared.name, transition, &kind, &why);
                }
                if !changed {
                    break;
                }
                self.epochs += 1;
            }
        }
        self.capabilities = capabilities;
    }

    fn required_kinds(&self, tracked: &TrackedCapability, now: Instant) -> Vec<RequiredKind> {
        let requester = KindRequester::Capability(tracked.declared.name);
        let required = tracked.requested.iter().filter(|(.., required)| *required);
        required
            .map(|(requested, kind, _)| {
                let watched = self.kinds.get(requested).map(|kind| &kind.watched);
                RequiredKind {
                    name: kind.name(),
                    finalized: tracked.declared.finalizes == Some(kind.kind),
                    watch_state: watched.map_or(WatchState::Listing, |w| w.state_for(&requester, now)),
                    terminating: watched.is_some_and(WatchedKind::is_terminating),
                    dropped: watched.map(WatchedKind::dropped).unwrap_or_default(),
                    crd_identity: watched.map(WatchedKind::crd_identity).unwrap_or_default(),
                }
            })
            .collect()
    }

    /// When to check again without a command.
    fn due(&self, now: Instant) -> Option<Instant> {
        let kinds = self.kinds.values().filter_map(|kind| kind.watched.due(now));
        let capabilities = self.capabilities.iter().flat_map(|c| c.due(now));
        kinds.chain(capabilities).chain(self.health.due(now)).min()
    }
}

/// The mode of a capability, once it is known.
fn mode(settings: &str, modes: &Modes, declared: &Capability) -> Option<Mode> {
    if declared.name == settings { Some(Mode::Auto) } else { modes.of(declared) }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
