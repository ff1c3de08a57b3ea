//! Runs the reconciler of a described kind ([`interlock_core::reconcile`]): gives it a view, gets what a pass lacks,
//! proves before each write that this process still leads, and writes what it wants on the versions that were seen.

use std::sync::Arc;
use std::time::Duration;

use interlock_core::admission::lister::KindListers;
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
use super::gathered::{self, GatherError, Gathered, ObjectSource as _, Sources, TooMuch};
use super::index::{Observer, Store};
use super::queue::FairnessGroup;
use super::refused::RefusedWrites;
use super::rounds::{self, Decided, Decision, Flow, Rounds};
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
    /// What the domains keep of all objects.
    pub listers: KindListers,
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

/// What a pass wants written, whether each rests on those before it, and when that was decided.
type Wanted = (Vec<Effect>, bool, Timestamp);

/// What became of the writes of one decision.
#[derive(Default)]
struct WriteResults {
    /// Effects that were carried out or refused: without one, the same decision would follow.
    tried: usize,
    /// A write that met another version.
    conflict: Option<(ObjectKey, Effect, ApiFailure)>,
    /// The reconciled object, as the last write of it was answered.
    answered: Option<Lookup>,
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

    /// What its objects are looked up in.
    pub fn sources(&self) -> Sources<'_> {
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

    /// Passes until the reconciler waits.
    async fn passes(&self, owner: &NamespacedName, epoch: LeaderEpoch) -> Result<Rest, Interrupted> {
        let key = self.key_of(owner);
        let object = present(self.sources().look_up(&key).await?)?;
        let lead = Fence { leadership: self.leadership.clone(), epoch: Some(epoch) };
        let mut gathered = Gathered::default();
        gathered.facts.listers = self.listers.clone();
        let mut passes = Passes { kind: self, owner, key, lead, object, gathered, conflicts: 0 };
        rounds::drive(&mut passes, PASSES).await?.ok_or(Interrupted::TooMuch(TooMuch {
            what: "more passes than a reconcile has",
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
}

/// The object that is reconciled.
fn present(found: Lookup) -> Result<Arc<Value>, Interrupted> {
    match found {
        Lookup::Found(object) if meta_str(&object, "deletionTimestamp").is_none() => Ok(object),
        Lookup::Found(_) | Lookup::Absent | Lookup::Forbidden => Err(Interrupted::Gone),
    }
}

/// The passes of one reconcile.
struct Passes<'k> {
    kind: &'k DescribedKind,
    owner: &'k NamespacedName,
    key: ObjectKey,
    lead: Fence,
    object: Arc<Value>,
    gathered: Gathered,
    conflicts: usize,
}

impl Rounds for Passes<'_> {
    type Lacks = Needs;
    type Writes = Wanted;
    type End = Rest;
    type Stop = Interrupted;

    fn leads(&self) -> Result<(), Interrupted> {
        if self.lead.holds() { Ok(()) } else { Err(Interrupted::NotLeading) }
    }

    async fn decide(&mut self) -> Decided<Self> {
        let decided = Timestamp::now();
        self.gathered.facts.refused = self.kind.refused.of(self.owner);
        let view = View::new(&self.object, &self.gathered.facts, decided);
        Ok(match (self.kind.reconciler.reconcile)(&view) {
            Err(needs) => Decision::Lacks(needs),
            Ok(ReconcileStep::Write(effects)) => Decision::Write((effects, false, decided)),
            Ok(ReconcileStep::InOrder(effects)) => Decision::Write((effects, true, decided)),
            Ok(ReconcileStep::Await(after)) => {
                let retry = self.kind.refused.next_retry(self.owner, decided);
                let again = [after, retry].into_iter().flatten().min();
                Decision::End(Rest { again, is_reported: false })
            }
        })
    }

    async fn read(&mut self, needs: Needs) -> Result<Flow<Rest>, Interrupted> {
        let (kind, gathered) = (self.kind, &mut self.gathered);
        gathered::serves_all(&["lists", "answers", "again", "certificate"], &needs)?;
        gathered.objects(kind.sources(), &needs).await?;
        gathered.lists(kind.sources(), needs.lists).await?;
        if needs.again {
            gathered.forget_answers();
        }
        let tls = kind.signer.client(&needs.answers).await;
        gathered.ask(needs.answers, tls, Timestamp::now()).await?;
        if let Some(request) = needs.certificate {
            self.leads()?;
            self.gathered.facts.certificate = Some(kind.signer.certify(&request).await?);
        }
        Ok(Flow::Again)
    }

    async fn write(&mut self, (effects, in_order, decided): Wanted) -> Result<Flow<Rest>, Interrupted> {
        let kind = self.kind;
        let WriteResults { tried, conflict, mut answered } = self.carry_out(effects, in_order).await?;
        if let Some((at, effect, failure)) = conflict {
            debug!(object = %at, message = failure.message, "a write was decided on an older version");
            self.conflicts += 1;
            if self.conflicts >= CONFLICTS {
                if at == self.key {
                    return Err(failure.into());
                }
                // The others are written all the same.
                kind.refused.refuse(self.owner, &at, effect, failure.clone(), Timestamp::now());
            }
            self.gathered.doubt(&at, failure);
            if at == self.key {
                answered = Some(kind.sources().read(&at).await?);
            }
        } else if tried == 0 {
            // The same decision would follow until the writes are tried again.
            kind.default_report(self.owner, &self.gathered).await;
            let again = kind.refused.next_retry(self.owner, decided);
            return Ok(Flow::End(Rest { again, is_reported: true }));
        }
        self.gathered.refresh(Timestamp::now());
        // What is kept is as new as the answer, or newer.
        let found = match (kind.sources().kept(&self.key, false).await, answered) {
            (Some(found), _) | (None, Some(found)) => found,
            (None, None) => kind.sources().read(&self.key).await?,
        };
        self.object = present(found)?;
        Ok(Flow::Again)
    }
}

impl Passes<'_> {
    /// Writes one effect after the other, while this process leads. A write that was decided on an older version ends the
    /// list. One that the API server refuses ends it where the effects are in order, or it is of the reconciled object.
    async fn carry_out(&mut self, effects: Vec<Effect>, in_order: bool) -> Result<WriteResults, Interrupted> {
        let (kind, owner) = (self.kind, self.owner);
        let executor = kind.executor.within(self.lead.clone());
        let (mut results, mut succeeded) = (WriteResults::default(), true);
        for effect in effects {
            if in_order && !succeeded {
                break;
            }
            match &effect {
                Effect::Healed { kind: healed, cause } => {
                    if succeeded {
                        kind.metrics.healed(healed, *cause);
                    }
                    continue;
                }
                Effect::Event { .. } if !succeeded => continue,
                _ => {}
            }
            let Some(key) = effect.key() else { continue };
            let is_own = key == self.key;
            let is_event = matches!(effect, Effect::Event { .. });
            let due = |refused: &&RefusedWrite| {
                refused.retry > Timestamp::now() && refused.effect.is_same_write(&effect)
            };
            if !is_event && self.gathered.facts.refused.get(&key).filter(due).is_some() {
                succeeded = false;
                continue;
            }
            self.leads()?;
            results.tried += 1;
            match executor.write(effect.clone()).await {
                Ok(Written::Published) => continue,
                Ok(Written::Now(object, _)) => {
                    kind.sources().saw(&object);
                    results.answered = is_own.then(|| Lookup::Found(object.clone())).or(results.answered);
                    self.gathered.wrote(&key, Some(object));
                }
                Ok(Written::Gone) => {
                    if let Effect::Delete { uid, .. } = &effect {
                        kind.sources().saw_gone(&key, uid);
                    }
                    self.gathered.wrote(&key, None);
                }
                Err(failure) if failure.code == 409 || failure.code == 404 && !failure.is_of_kind() => {
                    if failure.code == 404 && is_own {
                        return Err(Interrupted::Gone);
                    }
                    results.conflict = Some((key, effect, failure));
                    return Ok(results);
                }
                Err(failure) if is_own || failure.code == 0 => return Err(failure.into()),
                Err(failure) => {
                    warn!(object = %key, code = failure.code, message = Rejection::of(&failure).message, "write refused; retrying");
                    kind.refused.refuse(owner, &key, effect, failure, Timestamp::now());
                    succeeded = false;
                    continue;
                }
            }
            kind.refused.succeeded(owner, &key);
            succeeded = true;
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests;
