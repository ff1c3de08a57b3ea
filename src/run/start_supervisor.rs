//! The supervisor of the process, and readiness by its snapshot.

use std::sync::Arc;

use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::watched::BUILT_IN;
use kube::Client;
use tokio::sync::watch;

use super::{Parts, Process, RunError};
use crate::cluster::api_writer::Bookkeeping;
use crate::cluster::events::EventPublisher;
use crate::cluster::supervisor::{
    ANSWER_DEADLINE, CapabilityPhase, CapabilitySnapshot, CapabilityStatus, Handle, Modes, Setup, Supervisor,
    UnavailableAnswer, WatchState,
};
use crate::controllers::capabilities::{self, FLAVORS, INSTANCES, ROUTES, SETTINGS};
use crate::controllers::capability_events::CapabilityTurns;
use crate::runtime::index::{Interlocks, Observer, reread};
use crate::runtime::queue::Queue;
use crate::telemetry::readyz::Check;

impl Process {
    /// Starts the supervisor: it fills the store, and the queue where controllers run.
    pub(super) fn supervise(
        &self,
        process_client: &Client,
        queue: Option<Arc<Queue<NamespacedName>>>,
        modes: watch::Receiver<Modes>,
        settings: Arc<Interlocks>,
        parts: &mut Parts,
    ) -> (Handle, Arc<Observer>) {
        let controllers = self.options.roles.controllers;
        let observer = Observer::new(self.store.clone(), settings, queue, self.metrics.clone());
        let events = controllers.then(|| EventPublisher::new(process_client.clone()));
        let (supervisor, handle) = Supervisor::new(Setup {
            client: process_client.clone(),
            namespaces: self.options.watch_namespaces.clone(),
            capabilities: capabilities::of(self.options.kinds)
                .into_iter()
                .filter(|of| controllers || of.declared.answers)
                .collect(),
            controlled: if controllers { vec![INSTANCES] } else { Vec::new() },
            built_in: BUILT_IN,
            labels: format!("{}={}", meta::HERITAGE, meta::HERITAGE_VALUE),
            modes,
            settings: SETTINGS,
            sink: observer.clone(),
            listener: Arc::new(CapabilityTurns::new(observer.clone(), events)),
            metrics: self.metrics.clone(),
        });
        observer.ask(handle.clone());
        let running = async {
            supervisor.run().await;
            Ok("the supervisor")
        };
        parts.spawn_on(running, &self.runtimes.watching);
        let (store, reader) = (self.store.clone(), Bookkeeping::new(process_client.clone()));
        let reading = async {
            reread::follow(store, reader).await;
            Ok("the search for missing OperatorVersions")
        };
        parts.spawn_on(reading, &self.runtimes.watching);
        let answers = self.readiness.gate(INSTANCES);
        let listed = self.readiness.check(format!("{INSTANCES}-listed"));
        parts.spawn(follow(handle.snapshot(), answers, listed));
        parts.spawn(await_first_listing(handle.snapshot(), self.readiness.gate(FLAVORS)));
        (handle, observer)
    }
}

/// Delays the first answer until the kinds that affect flavors are listed, but no longer than a caller can
/// be asked to wait; afterwards answers name the kinds that are missing.
async fn await_first_listing(
    mut snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
    gate: Check,
) -> Result<&'static str, RunError> {
    gate.fail("the kinds that affect router flavors are being listed".to_owned());
    let looked = |status: &CapabilityStatus| {
        let begins = matches!(status.state, CapabilityPhase::Starting(_) | CapabilityPhase::Unknown(None));
        !begins && status.kinds.iter().all(|kind| kind.watch_state != WatchState::Listing)
    };
    let all = |snapshot: &Arc<CapabilitySnapshot>| {
        [FLAVORS, ROUTES].iter().all(|name| snapshot.get(name).is_none_or(looked))
    };
    let _ = tokio::time::timeout(ANSWER_DEADLINE, snapshot.wait_for(all)).await;
    gate.pass();
    std::future::pending().await
}

/// Readiness never depends on optional or absent kinds: a process that has nothing to guard is ready. It is
/// unready while the kinds it guards are being listed.
async fn follow(
    mut snapshot: watch::Receiver<Arc<CapabilitySnapshot>>,
    answers: Check,
    listed: Check,
) -> Result<&'static str, RunError> {
    loop {
        if let Some(status) = snapshot.borrow_and_update().get(INSTANCES) {
            match status.answer {
                UnavailableAnswer::NotYet => answers.fail(status.state.message()),
                UnavailableAnswer::Judge
                | UnavailableAnswer::InObjectOnly(_)
                | UnavailableAnswer::Allow(_) => answers.pass(),
            }
            match status.state {
                CapabilityPhase::Starting(_) | CapabilityPhase::Unknown(None) => {
                    listed.fail(status.state.message())
                }
                _ => listed.pass(),
            }
        }
        if snapshot.changed().await.is_err() {
            return Ok("the supervisor");
        }
    }
}
