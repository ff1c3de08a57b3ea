//! Runs the reconciler of a described kind ([`interlock_core::reconcile`]): gives it a view, gets what a pass lacks,
//! proves before each write that this process still leads, and writes what it wants on the versions that were seen.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::api::meta::event;
use interlock_core::api::object::{NamespacedName, ObjectKey, meta_str};
use interlock_core::api::resource::Resource;
use interlock_core::effect::{ApiFailure, Effect};
use interlock_core::reconcile::{Lookup, Needs, ReconcileStep, Reconciler, RefusedWrite, View};
use interlock_core::rejection::Rejection;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::watch;
use tracing::{debug, warn};

use super::certificates::CertificateSigner;
use super::controller::{Action, Controller, WorkerLimits};
use super::executor::{Executor, OfProcess, Written};
use super::gate::LeaderEpoch;
use super::gathered::{GatherError, Gathered, ObjectSource as _, Sources, TooMuch};
use super::index::{Observer, Store};
use super::queue::FairnessGroup;
use super::refused::RefusedWrites;
use crate::cluster::failure_reports::{self, FailureReports};
use crate::cluster::lease::Leadership;
use crate::cluster::requests::Fence;
use crate::telemetry::metrics::Metrics;

/// Objects of one kind that are reconciled at once.
const WORKERS: usize = 4;
const NAMESPACE_SHARE: usize = 3;
/// Passes of one reconcile; each ends in what it lacks or in writes, or ends the reconcile. The longest one, which takes a
/// DataPlane over, has 24, and each conflict adds three.
const PASSES: usize = 24 + 3 * CONFLICTS;
/// Writes of one reconcile that meet another version than that which was seen, or an object of that name.
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
    /// The watched objects.
    pub store: Arc<Store>,
    /// Wakes what an answer of the API server affects.
    pub observer: Arc<Observer>,
    /// Whether this process leads.
    pub leadership: watch::Receiver<Leadership>,
    /// Counts what was put right.
    pub metrics: Arc<Metrics>,
    /// Writes that the API server refused.
    pub refused: Arc<RefusedWrites>,
    /// Events about failed requests; settled when a reconcile succeeds.
    pub reports: FailureReports,
}

/// How a reconcile ended without an action of its own.
enum Interrupted {
    /// Another process may lead: it reconciles every object.
    NotLeading,
    /// The object does not exist.
    Gone,
    /// A request failed.
    Failed(ApiFailure),
    /// The reconciler wants more than a reconcile may: how much, and what to do.
    TooMuch(TooMuch),
}

impl From<ApiFailure> for Interrupted {
    fn from(failure: ApiFailure) -> Self {
        Self::Failed(failure)
    }
}

impl From<GatherError> for Interrupted {
    fn from(error: GatherError) -> Self {
        match error {
            GatherError::Failed(failure) => Self::Failed(failure),
            GatherError::TooMuch(what) => Self::TooMuch(what),
        }
    }
}

/// How a reconcile came to its end.
struct Rest {
    /// When it wants to see the object again, if no event comes first.
    again: Option<Duration>,
    /// Whether an Event says what holds it up.
    is_reported: bool,
}

/// What became of the writes of one decision.
#[derive(Default)]
struct WriteResults {
    /// Effects that were carried out or refused: without one, the same decision would follow.
    tried: usize,
    /// A write that met another version.
    conflict: Option<(ObjectKey, Effect, ApiFailure)>,
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

    fn begin(&self, _term: LeaderEpoch) {
        self.refused.clear();
    }

    fn keys(&self) -> Vec<(NamespacedName, Duration)> {
        let Resource { group, kind, .. } = self.resource;
        self.store.objects_of(group, kind).into_iter().map(|key| (key, Duration::ZERO)).collect()
    }

    async fn reconcile(&self, key: &NamespacedName, epoch: LeaderEpoch) -> Action {
        self.metrics.kept_objects(self.store.kept_totals());
        match self.passes(key, epoch).await {
            Err(Interrupted::NotLeading) => Action::AwaitChange,
            Err(Interrupted::Gone) => {
                self.refused.forget(key);
                self.reports.settle(&self.key_of(key));
                Action::AwaitChange
            }
            Ok(Rest { again, is_reported }) => {
                if !is_reported {
                    self.reports.settle(&self.key_of(key));
                }
                again.map_or(Action::AwaitChange, Action::Requeue)
            }
            Err(Interrupted::TooMuch(TooMuch { what, remedy })) => {
                warn!(object = %key, what, "reconcile exceeded a limit; retrying");
                let message = format!("its reconcile needs {what}{remedy}");
                self.report(key, event::LIMIT_EXCEEDED, message).await;
                Action::Retry
            }
            Err(Interrupted::Failed(failure)) => {
                self.report_failure(key, &failure).await;
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

    fn sources(&self) -> Sources<'_> {
        Sources { executor: &self.executor, store: &self.store, observer: &self.observer }
    }

    /// Reports a failed request: in the log, and on the object where people can do something about it.
    async fn report_failure(&self, key: &NamespacedName, failure: &ApiFailure) {
        let (reason, message) = failure_reports::text("", failure);
        warn!(object = %key, code = failure.code, message, "reconcile failed; retrying");
        // Where the API server does not answer, it takes no Event either.
        if failure.code != 0 {
            self.report(key, reason, message).await;
        }
    }

    /// Publishes an Event on the object, once for each text.
    async fn report(&self, key: &NamespacedName, reason: &str, message: String) {
        let key = self.key_of(key);
        let Ok(Lookup::Found(object)) = self.sources().look_up(&key).await else { return };
        self.reports.report(&key, meta_str(&object, "uid").unwrap_or_default(), reason, message).await;
    }

    /// Passes until the reconciler waits; returns after which time it wants to see the object again.
    async fn passes(&self, owner: &NamespacedName, epoch: LeaderEpoch) -> Result<Rest, Interrupted> {
        let key = self.key_of(owner);
        let mut object = self.look_up(&key).await?;
        let (mut gathered, mut conflicts) = (Gathered::default(), 0);
        for _ in 0..PASSES {
            let now = Timestamp::now();
            gathered.facts.refused = self.refused.of(owner);
            let step = (self.reconciler.reconcile)(&View::new(&object, &gathered.facts, now));
            let (effects, in_order) = match step {
                Err(needs) => {
                    self.gather(&mut gathered, needs, epoch).await?;
                    continue;
                }
                Ok(ReconcileStep::Await(after)) => {
                    let retry = self.refused.next_retry(owner, now);
                    let again = [after, retry].into_iter().flatten().min();
                    return Ok(Rest { again, is_reported: false });
                }
                Ok(ReconcileStep::Write(effects)) => (effects, false),
                Ok(ReconcileStep::InOrder(effects)) => (effects, true),
            };
            let results = self.write(owner, (effects, in_order), epoch, &mut gathered).await?;
            if let Some((at, effect, failure)) = results.conflict {
                debug!(object = %at, message = failure.message, "a write was decided on an older version");
                conflicts += 1;
                if conflicts >= CONFLICTS {
                    if at == key {
                        return Err(failure.into());
                    }
                    // The others are written all the same.
                    self.refused.refuse(owner, &at, effect, failure.clone(), Timestamp::now());
                }
                gathered.doubt(&at, failure);
                if at == key {
                    self.sources().read(&key).await?;
                }
            } else if results.tried == 0 {
                // The same decision would follow until the writes are tried again.
                self.default_report(owner, &gathered).await;
                return Ok(Rest { again: self.refused.next_retry(owner, now), is_reported: true });
            }
            gathered.refresh(Timestamp::now());
            object = self.look_up(&key).await?;
        }
        let what = "more passes than a reconcile has";
        Err(Interrupted::TooMuch(TooMuch {
            what,
            remedy: ": something changes its children again and again",
        }))
    }

    /// What a kind does about refused writes whose reconciler does nothing: an Event says so.
    async fn default_report(&self, owner: &NamespacedName, gathered: &Gathered) {
        if let Some((key, refused)) = gathered.facts.refused.iter().next() {
            let rejection = Rejection::of(&refused.failure);
            let message = format!("{} {}: {}", key.gvk.kind, key.name, rejection.message);
            self.report(owner, rejection.kind.reason(), message).await;
        }
    }

    /// The object that is reconciled.
    async fn look_up(&self, key: &ObjectKey) -> Result<Arc<Value>, Interrupted> {
        let Lookup::Found(object) = self.sources().look_up(key).await? else {
            return Err(Interrupted::Gone);
        };
        match meta_str(&object, "deletionTimestamp") {
            None => Ok(object),
            Some(_) => Err(Interrupted::Gone),
        }
    }

    /// Gets what a pass lacks.
    async fn gather(
        &self,
        gathered: &mut Gathered,
        needs: Needs,
        epoch: LeaderEpoch,
    ) -> Result<(), Interrupted> {
        gathered.objects(self.sources(), &needs).await?;
        gathered.lists(self.sources(), needs.lists).await?;
        if needs.again {
            gathered.forget_answers();
        }
        let tls = self.signer.client(&needs.answers).await;
        gathered.ask(needs.answers, tls, Timestamp::now()).await?;
        if let Some(request) = needs.certificate {
            self.prove(epoch)?;
            gathered.facts.certificate = Some(self.signer.certify(&request).await?);
        }
        Ok(())
    }

    /// Work that was begun in one leader epoch never writes in another.
    fn prove(&self, epoch: LeaderEpoch) -> Result<(), Interrupted> {
        match self.leadership.borrow().leader_epoch() == Some(epoch) {
            true => Ok(()),
            false => Err(Interrupted::NotLeading),
        }
    }

    /// Writes one effect after the other, while this process leads. A write that was decided on an older version ends the
    /// list. One that the API server refuses ends it where the effects are in order, or it is of the reconciled object.
    async fn write(
        &self,
        owner: &NamespacedName,
        (effects, in_order): (Vec<Effect>, bool),
        epoch: LeaderEpoch,
        gathered: &mut Gathered,
    ) -> Result<WriteResults, Interrupted> {
        let executor = self.executor.within(Fence { leadership: self.leadership.clone(), epoch });
        let (own, mut results, mut succeeded) = (self.key_of(owner), WriteResults::default(), true);
        for effect in effects {
            if in_order && !succeeded {
                break;
            }
            match &effect {
                Effect::Healed { kind, cause } => {
                    if succeeded {
                        self.metrics.healed(kind, *cause);
                    }
                    continue;
                }
                Effect::Event { .. } if !succeeded => continue,
                _ => {}
            }
            let Some(key) = effect.key() else { continue };
            let is_event = matches!(effect, Effect::Event { .. });
            let due = |refused: &&RefusedWrite| {
                refused.retry > Timestamp::now() && refused.effect.is_same_write(&effect)
            };
            if !is_event && gathered.facts.refused.get(&key).filter(due).is_some() {
                succeeded = false;
                continue;
            }
            self.prove(epoch)?;
            results.tried += 1;
            let answer = executor.run(vec![vec![effect.clone()]]).await.pop();
            match answer.map(|(_, answer)| answer) {
                None | Some(Ok(Written::Published)) => {}
                Some(Ok(Written::Now(object, _))) => {
                    self.sources().saw(&object);
                    gathered.wrote(&key, Some(object));
                    self.refused.succeeded(owner, &key);
                    succeeded = true;
                }
                Some(Ok(Written::Gone)) => {
                    if let Effect::Delete { uid, .. } = &effect {
                        self.sources().saw_gone(&key, uid);
                    }
                    gathered.wrote(&key, None);
                    self.refused.succeeded(owner, &key);
                    succeeded = true;
                }
                Some(Err(failure)) if failure.code == 409 || failure.code == 404 && !failure.is_of_kind() => {
                    if failure.code == 404 && key == own {
                        return Err(Interrupted::Gone);
                    }
                    results.conflict = Some((key, effect, failure));
                    return Ok(results);
                }
                Some(Err(failure)) if key == own || failure.code == 0 => return Err(failure.into()),
                Some(Err(failure)) => {
                    warn!(object = %key, code = failure.code, message = Rejection::of(&failure).message, "write refused; retrying");
                    self.refused.refuse(owner, &key, effect, failure, Timestamp::now());
                    succeeded = false;
                }
            }
        }
        Ok(results)
    }
}
