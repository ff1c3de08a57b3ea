//! Runs the reconciler of a described kind ([`interlock_core::reconcile`]): reads what it names, lets it decide,
//! proves before each write that this process still leads, and writes what it wants on the versions that were
//! read.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use interlock_core::api::meta;
use interlock_core::api::object::{NamespacedName, ObjectKey, meta_str};
use interlock_core::api::resource::Resource;
use interlock_core::effect::{ApiFailure, Effect, Note, Severity};
use interlock_core::reconcile::{ReconcileStep, Reconciler};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;
use tracing::{debug, warn};

use super::certificates::CertificateSigner;
use super::controller::{Action, Controller, WorkerLimits};
use super::executor::{Executor, OfProcess};
use super::gate::LeaderEpoch;
use super::index::Store;
use super::queue::FairnessGroup;
use super::reconcile_reads::{ReadError, ReconcileReads};
use crate::cluster::lease::Leadership;
use crate::telemetry::metrics::Metrics;

/// Objects of one kind that are reconciled at once.
const WORKERS: usize = 4;
/// Of these, those of one namespace.
const NAMESPACE_SHARE: usize = 3;
/// Steps of one reconcile; each ends in reads or writes, or ends the reconcile. The longest one, which takes a DataPlane
/// over, has 24, and each conflict adds three.
const STEPS: usize = 24 + 3 * CONFLICTS;
/// Writes of one reconcile that meet another version than that which was read, or an object of that name.
const CONFLICTS: usize = 4;
/// How long running reconciles may take to end.
const DRAIN: Duration = Duration::from_secs(10);

/// The controller of a described kind.
pub struct DescribedKind {
    /// How the API server serves the kind.
    pub resource: Resource,
    /// What decides.
    pub reconciler: &'static Reconciler,
    /// Reads and writes as the user of the process.
    pub executor: Executor<OfProcess>,
    /// Has certificates in their Secrets.
    pub signer: Arc<CertificateSigner>,
    /// Its objects, as last seen.
    pub store: Arc<Store>,
    /// Whether this process leads.
    pub leadership: watch::Receiver<Leadership>,
    /// Counts what was put right.
    pub metrics: Arc<Metrics>,
    /// Objects with a published Event about a missing right; removed when a reconcile succeeds.
    pub reported: Mutex<HashSet<NamespacedName>>,
}

/// How a reconcile ended without an action of its own.
enum Interrupted {
    /// Another process may lead: it reconciles every object.
    NotLeading,
    /// The object does not exist.
    Gone,
    /// A request failed.
    Failed(ApiFailure),
    /// The reconciler wants more than a reconcile may.
    TooMuch(&'static str),
}

impl From<ApiFailure> for Interrupted {
    fn from(failure: ApiFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<ReadError> for Interrupted {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Failed(failure) => Self::Failed(failure),
            ReadError::TooMuch(what) => Self::TooMuch(what),
        }
    }
}

impl Controller for DescribedKind {
    type Key = NamespacedName;
    type Term = LeaderEpoch;

    fn name(&self) -> &'static str {
        self.reconciler.name
    }

    fn limits(&self) -> WorkerLimits {
        WorkerLimits::of(WORKERS, DRAIN)
    }

    /// Objects of one namespace leave workers to those of others.
    fn groups(&self, key: &NamespacedName) -> Vec<FairnessGroup> {
        vec![FairnessGroup { name: key.namespace.clone(), share: NAMESPACE_SHARE }]
    }

    fn keys(&self) -> Vec<(NamespacedName, Duration)> {
        let Resource { group, kind, .. } = self.resource;
        self.store.objects_of(group, kind).into_iter().map(|key| (key, Duration::ZERO)).collect()
    }

    async fn reconcile(&self, key: &NamespacedName, epoch: LeaderEpoch) -> Action {
        match self.steps(&self.key_of(key), epoch).await {
            Err(Interrupted::NotLeading | Interrupted::Gone) => Action::AwaitChange,
            Ok(after) => {
                self.reported().remove(key);
                after.map_or(Action::AwaitChange, Action::Requeue)
            }
            Err(Interrupted::TooMuch(what)) => {
                warn!(object = %key, what, "a reconcile wants more than it may; trying again later");
                Action::Retry
            }
            Err(Interrupted::Failed(failure)) => {
                self.report(key, failure).await;
                Action::Retry
            }
        }
    }
}

impl DescribedKind {
    fn key_of(&self, key: &NamespacedName) -> ObjectKey {
        let namespace = self.resource.namespaced.then(|| key.namespace.clone());
        ObjectKey { gvk: self.resource.gvk(), namespace, name: key.name.clone() }
    }

    fn reported(&self) -> MutexGuard<'_, HashSet<NamespacedName>> {
        // Changes of the set do not panic half-way.
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports a failed request: in the log, and once on the object where a right is missing.
    async fn report(&self, key: &NamespacedName, failure: ApiFailure) {
        let ApiFailure { code, message, .. } = failure;
        if !(400..500).contains(&code) {
            debug!(object = %key, code, message, "a reconcile failed; trying again later");
            return;
        }
        warn!(object = %key, code, message, "a reconcile was refused; trying again later");
        if code != 403 || !self.reported().insert(key.clone()) {
            return;
        }
        let key = self.key_of(key);
        let Ok(Some(object)) = self.executor.get(&key).await else { return };
        let uid = meta_str(&object, "uid").unwrap_or_default().to_owned();
        let reason = meta::condition::MISSING_RIGHT.to_owned();
        let message =
            format!("{message}; grant it: interlock render rbac, with the flags of this installation");
        let note = Note { severity: Severity::Warning, reason, message };
        self.executor.run(vec![vec![Effect::Event { key, uid, note }]]).await;
    }

    /// Steps until the reconciler waits; returns after which time it wants to see the object again.
    async fn steps(&self, key: &ObjectKey, epoch: LeaderEpoch) -> Result<Option<Duration>, Interrupted> {
        let mut object = self.read(key).await?;
        let (mut reads, mut conflicts) = (ReconcileReads::default(), 0);
        for _ in 0..STEPS {
            match (self.reconciler.reconcile)(&reads.input(&object, Timestamp::now())) {
                ReconcileStep::Await(after) => return Ok(after),
                ReconcileStep::Read(keys) => reads.read(&self.executor, keys).await?,
                ReconcileStep::ReadIfAllowed(keys) => reads.read_if_allowed(&self.executor, keys).await?,
                ReconcileStep::List(lists) => reads.list(&self.executor, lists).await?,
                ReconcileStep::Ask(requests) => {
                    let tls = self.signer.client(&requests).await;
                    reads.ask(requests, tls).await?;
                }
                ReconcileStep::Certify(request) => {
                    self.prove(epoch)?;
                    reads.certificate = Some(self.signer.certify(&request).await?);
                }
                ReconcileStep::Write(effects) => {
                    if let Some(conflict) = self.write(effects, epoch).await? {
                        conflicts += 1;
                        if conflicts == CONFLICTS {
                            return Err(conflict.into());
                        }
                    }
                    // What was read may have changed with it.
                    reads = reads.after_write();
                    object = self.read(key).await?;
                }
            }
        }
        Err(Interrupted::TooMuch("more than 36 steps"))
    }

    async fn read(&self, key: &ObjectKey) -> Result<Arc<Value>, Interrupted> {
        let object = self.executor.get(key).await?.ok_or(Interrupted::Gone)?;
        match meta_str(&object, "deletionTimestamp") {
            None => Ok(object),
            Some(_) => Err(Interrupted::Gone),
        }
    }

    /// Work that was begun in one leader epoch never writes in another.
    fn prove(&self, epoch: LeaderEpoch) -> Result<(), Interrupted> {
        match self.leadership.borrow().leader_epoch() == Some(epoch) {
            true => Ok(()),
            false => Err(Interrupted::NotLeading),
        }
    }

    /// Writes one effect after the other, while this process leads. A write that was decided on an older
    /// version ends the list, as everything is read again then; returns that conflict.
    async fn write(
        &self,
        effects: Vec<Effect>,
        epoch: LeaderEpoch,
    ) -> Result<Option<ApiFailure>, Interrupted> {
        for effect in effects {
            if let Effect::Healed { kind, cause } = &effect {
                self.metrics.healed(kind, *cause);
                continue;
            }
            self.prove(epoch)?;
            for (key, answer) in self.executor.run(vec![vec![effect]]).await {
                match answer {
                    Ok(_) => {}
                    Err(failure) if failure.code == 409 => {
                        debug!(object = %key, message = failure.message, "a write was decided on an older version");
                        return Ok(Some(failure));
                    }
                    Err(failure) => return Err(failure.into()),
                }
            }
        }
        Ok(None)
    }
}
