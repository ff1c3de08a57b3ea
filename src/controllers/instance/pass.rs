//! One pass of a run: look up, decide, prove that the run is current, write, until the engine
//! asks for nothing more.
//!
//! A child is written only on what was seen no later than the last proof: a conditional write of
//! the Instance's status by this process, or a read of the Instance. So neither a leader that was
//! suspended nor a cache that lags can put an old state back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use tracing::{debug, warn};

use super::context::Context;
use super::record::{self, Phase};
use super::subject::Subject;
use super::{asked, writes};
use crate::api::condition;
use crate::api::meta::condition as types;
use crate::api::object::{Gvk, ObjectKey, meta_str};
use crate::api::stamp::Applied;
use crate::cluster::apply::{Objects, Written};
use crate::cluster::kinds::{self, Known};
use crate::cluster::watch::Change;
use crate::effect::{ApiFailure, ChildWrite, Note};
use crate::plan::advance::advance;
use crate::plan::health::{self, Health};
use crate::plan::observe::{Need, Observed, PlanState, Seen, Served, Step};
use crate::plan::package::Package;
use crate::plan::rendered::Rendered;
use crate::plan::run::{InstanceId, Run};

/// Rounds of one pass; a plan needs a few for each of its steps.
const ROUNDS: usize = 2_000;
/// Conflicts on the Instance itself before the pass gives way to the next.
const CONFLICTS: usize = 5;

/// How a pass ended.
#[derive(Debug)]
pub enum Ended {
    /// The run waits for objects; a watch will tell.
    Waiting,
    /// The run waits for something that no watch tells, or for a retry.
    Retry,
    /// The run is over; its end is recorded.
    Finished,
    /// The run is not current any more; ask again what is.
    Superseded,
    /// The Instance is gone.
    Gone,
    /// The API server could not be asked.
    Failed(ApiFailure),
}

/// Where a run begins that is not recorded yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At its first step.
    First,
    /// Where the run failed that it retries.
    WhereItFailed,
}

/// A run to carry on.
pub struct Pass<'a> {
    ctx: &'a Context,
    objects: Objects,
    subject: Subject,
    spec: &'a Applied<'static>,
    package: &'a Package,
    instance: InstanceId,
    plan: String,
    uid: String,
    state: PlanState,
    /// Whether the run's start is recorded in status.
    started: bool,
    /// Whether people were told of the start.
    announced: bool,
    observed: Observed,
    rendered: Rendered,
    seen: BTreeMap<ObjectKey, u64>,
    clock: u64,
    proof: u64,
    /// Whether a kind could not be looked up, or went while it was written to: no watch tells when
    /// that is over.
    kind_unsure: bool,
    /// Whether a task failed in a way that is tried again.
    tried_again: bool,
}

enum Stop {
    Superseded,
    Gone,
    Failed(ApiFailure),
}

impl From<ApiFailure> for Stop {
    fn from(failure: ApiFailure) -> Self {
        if failure.code == 404 { Self::Gone } else { Self::Failed(failure) }
    }
}

impl<'a> Pass<'a> {
    /// A pass of the execution that `planExecution` names, on this spec and package; its effects
    /// are made through `objects`.
    pub fn new(
        ctx: &'a Context,
        objects: Objects,
        subject: Subject,
        spec: &'a Applied<'static>,
        package: &'a Package,
        begin: Begin,
    ) -> Self {
        let (plan, uid) = (subject.plan().to_owned(), subject.plan_uid().to_owned());
        let found = subject.entries().get(&plan).cloned();
        let started = found.as_ref().is_some_and(|e| e.uid == uid);
        let state = match found {
            Some(failed) if !started && begin == Begin::WhereItFailed => {
                PlanState::retry(&failed, package, &plan, &uid)
            }
            Some(status) if started => {
                let progress = subject.progress.as_ref().filter(|p| p.uid == uid);
                PlanState {
                    status,
                    done: progress.map(|p| p.done.clone()).unwrap_or_default(),
                    ..PlanState::default()
                }
            }
            _ => PlanState::start(package, &plan, &uid),
        };
        let instance = InstanceId {
            namespace: subject.key.namespace.clone(),
            name: subject.key.name.clone(),
            uid: subject.uid().to_owned(),
        };
        Self {
            ctx,
            objects,
            subject,
            spec,
            package,
            instance,
            plan,
            uid,
            state,
            started,
            announced: started,
            observed: Observed::default(),
            rendered: Rendered::default(),
            seen: BTreeMap::new(),
            clock: 0,
            proof: 0,
            kind_unsure: false,
            tried_again: false,
        }
    }

    /// Carries the run on as far as it goes.
    pub async fn run(mut self) -> Ended {
        match self.rounds().await {
            Ok(ended) => ended,
            Err(Stop::Superseded) => Ended::Superseded,
            Err(Stop::Gone) => {
                self.ctx.store.forget_instance(&self.subject.key);
                Ended::Gone
            }
            Err(Stop::Failed(failure)) => Ended::Failed(failure),
        }
    }

    async fn rounds(&mut self) -> Result<Ended, Stop> {
        for _ in 0..ROUNDS {
            let step = self.advance(self.state.clone());
            if !step.needs.is_empty() {
                self.look_up(&step.needs).await;
                continue;
            }
            if let Some(phase) = self.take(step).await? {
                return self.settle(phase).await;
            }
        }
        warn!(instance = %self.subject.key, plan = %self.plan, "a pass took too many rounds and gives way");
        Ok(Ended::Retry)
    }

    /// Takes one step; where it asks for no write, how the run stands.
    async fn take(&mut self, step: Step) -> Result<Option<Phase>, Stop> {
        for note in step.notes {
            self.publish(note).await;
        }
        self.state = step.state;
        if self.state.status.status.is_terminal() {
            return Ok(Some(Phase::Over { fatal: step.fatal, aborted: false }));
        }
        if step.effects.is_empty() {
            self.tried_again = step.stalled.is_some();
            let stalled = step.stalled.or_else(|| absent(&step.absent));
            return Ok(Some(Phase::Waiting { stalled, held: step.held, waits: step.waiting }));
        }
        let covered = self.covers(&step.effects);
        if !covered {
            self.survey().await;
        }
        if !covered || step.save_first {
            self.prove(step.save_first).await?;
        }
        self.write(step.effects).await;
        Ok(None)
    }

    fn advance(&self, state: PlanState) -> Step {
        advance(&self.engine_run(), state, &self.observed)
    }

    fn engine_run(&self) -> Run<'_> {
        Run {
            package: self.package,
            instance: &self.instance,
            plan: &self.plan,
            uid: &self.uid,
            values: &self.spec.parameters,
            rendered: &self.rendered,
        }
    }

    /// Records where the run stands, when that has changed, and says how the pass ended.
    async fn settle(&mut self, phase: Phase) -> Result<Ended, Stop> {
        let ended = match &phase {
            Phase::Over { .. } => Ended::Finished,
            Phase::Waiting { .. } if !self.tried_again && self.is_told() => Ended::Waiting,
            _ => Ended::Retry,
        };
        self.record(phase).await?;
        if !self.announced && !matches!(ended, Ended::Finished) {
            self.publish(record::started(&self.state)).await;
        }
        Ok(ended)
    }

    /// Whether a watch tells when the run can go on: it waits for nothing that is not watched.
    fn is_told(&self) -> bool {
        let waits_for = |(key, seen): (&ObjectKey, &Seen)| match seen {
            Seen::Present(object) if !self.ctx.is_watched(&key.gvk) => {
                meta_str(object, "deletionTimestamp").is_some() || health::of(object) != Health::Healthy
            }
            _ => false,
        };
        !self.kind_unsure && !self.observed.objects.iter().any(waits_for)
    }

    async fn look_up(&mut self, needs: &BTreeSet<Need>) {
        for need in needs {
            match need {
                Need::Kind(gvk) => {
                    let served = self.served(gvk).await;
                    self.observed.kinds.insert(gvk.clone(), served);
                }
                Need::Object(key) => self.look_at(key, false).await,
                Need::Certainly(key) => self.look_at(key, true).await,
            }
        }
    }

    async fn served(&mut self, gvk: &Gvk) -> Served {
        self.ctx.watches.instance_makes(&self.subject.key, &self.package.key, gvk);
        match self.ctx.kinds.get(&self.ctx.client, gvk).await {
            Ok(Known::Served(kind)) if kind.namespaced => Served::Namespaced,
            Ok(Known::Served(_)) => Served::Cluster,
            Ok(Known::Awaited) => Served::Pending,
            Ok(Known::Never) => Served::No,
            Ok(Known::Unsure) => self.unsure(),
            Err(error) => {
                debug!(%gvk, %error, "a kind could not be looked up");
                self.unsure()
            }
        }
    }

    /// A failed look-up never reads as "none": it is asked again.
    fn unsure(&mut self) -> Served {
        self.kind_unsure = true;
        Served::Unsure
    }

    /// Looks at an object: in the store where its kind is watched, unless a write of it failed
    /// or its absence must be certain.
    async fn look_at(&mut self, key: &ObjectKey, certainly: bool) {
        let again = self.observed.failures.remove(key).is_some();
        self.clock += 1;
        if !again && let Some(watching) = self.ctx.watched_soon(&key.gvk).await {
            let found = self.ctx.store.get_child(key);
            match found {
                None if !certainly => return self.saw(key.clone(), Seen::Absent),
                // A merge needs more than metadata.
                Some(object) if watching.whole => return self.saw(key.clone(), Seen::Present(object)),
                _ => {}
            }
        }
        match self.objects.get(key).await {
            Ok(Some(object)) => {
                self.ctx.saw(&self.subject.key, &Change::Applied(object.clone()));
                self.saw(key.clone(), Seen::Present(object));
            }
            Ok(None) => self.saw(key.clone(), Seen::Absent),
            Err(failure) => {
                self.observed.failures.insert(key.clone(), failure);
                self.saw(key.clone(), Seen::Absent);
            }
        }
    }

    fn saw(&mut self, key: ObjectKey, seen: Seen) {
        self.seen.insert(key.clone(), self.clock);
        self.observed.objects.insert(key, seen);
    }

    /// Whether every write was decided on what was seen before the last proof.
    fn covers(&self, lanes: &[Vec<ChildWrite>]) -> bool {
        self.started
            && self.proof > 0
            && lanes
                .iter()
                .flatten()
                .filter_map(ChildWrite::key)
                .all(|key| self.seen.get(&key).is_some_and(|at| *at <= self.proof))
    }

    /// Looks at whatever the run can reach if all goes well, so that one proof covers it.
    async fn survey(&mut self) {
        let mut state = self.state.clone();
        let mut imagined = self.observed.clone();
        for _ in 0..ROUNDS {
            let step = advance(&self.engine_run(), state.clone(), &imagined);
            if !step.needs.is_empty() {
                self.look_up(&step.needs).await;
                for need in &step.needs {
                    match need {
                        Need::Kind(gvk) => {
                            let served = self.observed.kinds.get(gvk).copied().unwrap_or(Served::Unsure);
                            imagined.kinds.insert(gvk.clone(), served);
                        }
                        Need::Object(key) | Need::Certainly(key) => {
                            imagined.failures.remove(key);
                            if let Some(seen) = self.observed.objects.get(key) {
                                imagined.objects.insert(key.clone(), seen.clone());
                            }
                            if let Some(failure) = self.observed.failures.get(key) {
                                imagined.failures.insert(key.clone(), failure.clone());
                            }
                        }
                    }
                }
                continue;
            }
            if step.effects.is_empty() || step.state.status.status.is_terminal() {
                return;
            }
            state = step.state;
            step.effects.into_iter().flatten().for_each(|write| imagine(&mut imagined, write));
        }
    }

    /// Proves that the run is current: by recording how it stands where that has changed, else
    /// by reading the Instance. What a stalled run says stays until a try has gone well, unless
    /// something must be saved before the write.
    async fn prove(&mut self, save: bool) -> Result<(), Stop> {
        let keeps = !save && self.started && condition::is_true(&self.subject.conditions(), types::STALLED);
        if !keeps && self.record(Phase::Running).await? {
            return Ok(());
        }
        let found = self.ctx.bookkeeping.instance(&self.subject.key).await?.ok_or(Stop::Gone)?;
        self.adopt(found)?;
        self.proved();
        Ok(())
    }

    fn proved(&mut self) {
        self.clock += 1;
        self.proof = self.clock;
    }

    /// Takes the Instance as it now is, if it still names this run.
    fn adopt(&mut self, object: Arc<Value>) -> Result<(), Stop> {
        self.ctx.saw(&self.subject.key, &Change::Applied(object.clone()));
        let subject = Subject::read(&self.subject.key, object).map_err(|error| {
            warn!(%error, "an Instance could not be read");
            Stop::Superseded
        })?;
        let named = subject.plan() == self.plan && subject.plan_uid() == self.uid;
        let same = subject.uid() == self.subject.uid();
        let entries = subject.entries();
        let entry = entries.get(&self.plan);
        let recorded = entry.is_some_and(|e| e.uid == self.uid && !e.status.is_terminal());
        let deleted = subject.deleted_at().is_some() && self.plan != crate::api::meta::plan::CLEANUP;
        let aborted = asked::aborts(self.ctx, &subject, &self.uid);
        if !named || !same || deleted || aborted || (self.started && !recorded) {
            return Err(Stop::Superseded);
        }
        drop(entries);
        self.subject = subject;
        Ok(())
    }

    /// Writes the status when it differs; whether it was written, which is a proof.
    async fn record(&mut self, phase: Phase) -> Result<bool, Stop> {
        for _ in 0..CONFLICTS {
            let view = record::View {
                subject: &self.subject,
                package: self.package,
                spec: self.spec,
                state: &self.state,
                started: self.started,
            };
            let now = Timestamp::now();
            let Some(status) = writes::status(&self.subject, record::change(&view, &phase, now), now) else {
                return Ok(false);
            };
            let version = self.subject.resource_version();
            match self.ctx.bookkeeping.patch_status(&self.subject.key, version, status).await {
                Ok(object) => {
                    self.recorded(object, &phase).await;
                    return Ok(true);
                }
                Err(failure) if failure.code == 409 => {
                    let key = &self.subject.key;
                    let found = self.ctx.bookkeeping.instance(key).await?.ok_or(Stop::Gone)?;
                    self.adopt(found)?;
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        Err(Stop::Superseded)
    }

    async fn recorded(&mut self, object: Arc<Value>, phase: &Phase) {
        self.ctx.saw(&self.subject.key, &Change::Applied(object.clone()));
        if let Ok(subject) = Subject::read(&self.subject.key, object) {
            self.ctx.books.note(&subject);
            self.subject = subject;
        }
        self.started = true;
        self.state.unsaved.clear();
        self.proved();
        for note in record::notes(&self.state, phase) {
            self.publish(note).await;
        }
        if let Phase::Over { .. } = phase {
            self.ctx.metrics.plan_ended(self.state.status.status.as_str());
        }
    }

    async fn publish(&self, note: Note) {
        self.ctx.events.publish(&self.subject.key, self.subject.uid(), note).await;
    }

    /// Whether a write failed because its kind is going or gone, which the table of definitions
    /// may not show yet: while a definition is being deleted new objects are answered 405, and
    /// then there is nothing at their path, not even an API that would give a reason.
    fn has_left(&mut self, gvk: &Gvk, failure: &ApiFailure) -> bool {
        let nothing_there = failure.code == 404 && failure.reason != "NotFound";
        let left = !kinds::is_built_in(&gvk.group) && (failure.code == 405 || nothing_there);
        if left {
            self.ctx.kinds.forget(gvk);
            self.kind_unsure = true;
        }
        left
    }

    async fn write(&mut self, lanes: Vec<Vec<ChildWrite>>) {
        for (key, answer) in self.objects.run(lanes).await {
            match answer {
                Ok(Written::Now(object)) => {
                    self.ctx.saw(&self.subject.key, &Change::Applied(object.clone()));
                    self.observed.failures.remove(&key);
                    self.observed.objects.insert(key, Seen::Present(object));
                }
                Ok(Written::Gone) => {
                    if let Some(Seen::Present(object)) = self.observed.objects.get(&key) {
                        self.ctx.saw(&self.subject.key, &Change::Deleted(object.clone()));
                    }
                    self.observed.failures.remove(&key);
                    self.observed.objects.insert(key, Seen::Absent);
                }
                Err(failure) => {
                    debug!(object = %key, code = failure.code, message = %failure.message, "a write was refused");
                    if self.has_left(&key.gvk, &failure) {
                        self.observed.kinds.insert(key.gvk.clone(), Served::Pending);
                    } else {
                        self.observed.failures.insert(key, failure);
                    }
                }
            }
        }
    }
}

/// What people read while kinds are not served.
fn absent(kinds: &BTreeSet<Gvk>) -> Option<String> {
    let names: Vec<String> = kinds.iter().map(Gvk::to_string).collect();
    (!names.is_empty()).then(|| {
        format!(
            "waiting for the CustomResourceDefinition of {}; install it, or abort the plan",
            names.join(" and ")
        )
    })
}

/// The answer that a write would have if all goes well.
fn imagine(observed: &mut Observed, write: ChildWrite) {
    let Some(key) = write.key() else { return };
    let seen = match write {
        ChildWrite::Create { object } => Seen::Present(Arc::new(object)),
        ChildWrite::MergePatch { patch, .. } => match observed.objects.get(&key) {
            Some(Seen::Present(current)) => {
                let mut object = Value::clone(current);
                json_patch::merge(&mut object, &patch);
                Seen::Present(Arc::new(object))
            }
            _ => Seen::Absent,
        },
        ChildWrite::Delete { .. } => Seen::Absent,
    };
    observed.objects.insert(key, seen);
}
