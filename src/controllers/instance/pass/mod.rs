//! One pass of a run: look up, decide, prove that the run is current, write, until the engine
//! requests no more.
//!
//! A write of a child depends only on objects read no later than the last proof: a conditional write of the
//! Instance's status by this process, or a read of the Instance. So neither a leader that was suspended nor
//! a stale cache can restore an old state.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use interlock_core::api::interlock::{Adoption, CountedReferences};
use interlock_core::api::inventory::ObjectInventory;
use interlock_core::api::meta;
use interlock_core::api::meta::plan;
use interlock_core::api::object::{Gvk, annotation};
use interlock_core::api::stamp::Applied;
use interlock_core::effect::{ApiFailure, Note};
use interlock_core::reconcile::Needs;
use interlock_kudo::api::HeldObject;
use interlock_kudo::engine::advance::advance;
use interlock_kudo::engine::api_warnings;
use interlock_kudo::engine::lookup::{EngineStep, FailureKind, Observed, PlanState, TaskFailure};
use interlock_kudo::package::Package;
use interlock_kudo::package::time_limits::{Cleanup, RunLimits, Words};
use jiff::Timestamp;
use tracing::{debug, warn};

use self::read_set::ReadSet;
use super::context::InstanceContext;
use super::engine::Engine;
use super::inventory_cache::KeptInventory;
use super::patches::InstanceChange;
use super::record::{self, RecordPhase};
use super::view::InstanceView;
use super::{inventory, patches, plan_intent};
use crate::runtime::controller::Action;
use crate::runtime::executor::Executor;
use crate::runtime::gathered;
use crate::runtime::index::KeptInstance;
use crate::runtime::pool::{Deadline, Hold, NotDone};
use crate::runtime::rounds::{self, Decided, Decision, Flow, Rounds};

mod proof;
mod read_set;
mod survey;

/// Rounds of one pass; a plan needs a few for each of its steps.
const ROUNDS: usize = 2_000;
/// Conflicts on the Instance itself before the pass gives way to the next.
const CONFLICTS: usize = 5;

/// Pause before a pass for which no thread was free; it has waited for one already.
const BUSY: Duration = Duration::from_secs(2);

/// Pause before an interrupted task goes on: shorter than a back-off, and long enough for others to get a thread.
const SOON: Duration = Duration::from_millis(250);

/// Where an unrecorded run begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At its first step.
    First,
    /// At the failed step of the run that it retries.
    WhereItFailed,
}

/// A run to continue.
pub struct Pass<'a> {
    ctx: &'a InstanceContext,
    subject: InstanceView,
    spec: &'a Applied<'static>,
    package: &'a Package,
    engine: Arc<Engine>,
    hold: Hold,
    plan: String,
    uid: String,
    state: PlanState,
    /// Whether the run's start is recorded in status.
    started: bool,
    /// Whether this pass recorded the start and no Event tells of it yet.
    untold: bool,
    /// Objects that no Instance made and that it takes over.
    adopts: BTreeSet<HeldObject>,
    watch_state: ReadSet<'a>,
    /// The inventory as it was last read or written.
    inventory: KeptInventory,
    /// Whether a request asked for the run: it goes once the run has begun, as no event comes to remove it while the run
    /// waits.
    answers: bool,
    /// Whether a task failed with a retriable error.
    tried_again: bool,
    /// When a limit runs out, if nothing happens before.
    wake: Option<Timestamp>,
}

/// Why a pass stops before its end.
pub enum Stop {
    Superseded,
    Gone,
    NotDone(NotDone),
    Failed(ApiFailure),
}

impl From<NotDone> for Stop {
    fn from(why: NotDone) -> Self {
        Self::NotDone(why)
    }
}

impl From<ApiFailure> for Stop {
    fn from(failure: ApiFailure) -> Self {
        if failure.code == 404 { Self::Gone } else { Self::Failed(failure) }
    }
}

impl<'a> Pass<'a> {
    /// A pass of the execution that `planExecution` names, on this spec and package; its effects use
    /// `objects`, treat objects that no Instance made as `adoption` says, and count these references of pods.
    pub fn new(
        ctx: &'a InstanceContext,
        (objects, adoption, references): (Executor, Adoption, CountedReferences),
        subject: InstanceView,
        spec: &'a Applied<'static>,
        package: &'a Arc<Package>,
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
                    begun: progress.map(|p| p.begun.clone()).unwrap_or_default(),
                    ..PlanState::default()
                }
            }
            _ => PlanState::start(package, &plan, &uid),
        };
        let engine = Arc::new(Engine::new(&subject, spec, package, (&plan, &uid), ctx.draws()));
        let hold = ctx.pool.hold(&subject.key.namespace);
        let limits = limits(&subject, package, started);
        let dependencies = if started { None } else { ctx.dependencies(package, &plan) };
        let adopts = plan_intent::adopts(ctx, &subject, &uid);
        let answers = plan_intent::asked(ctx, &subject).is_some_and(|asked| asked.new_run == uid);
        let children = ctx.store.child_instances(&subject.key);
        let observed = Observed {
            limits,
            adoption,
            references,
            dependencies,
            children,
            adopts: adopts.clone(),
            ..Observed::default()
        };
        let watch_state = ReadSet::new(ctx, objects, subject.key.clone(), package.key.clone(), observed);
        Self {
            ctx,
            subject,
            spec,
            package,
            engine,
            hold,
            plan,
            uid,
            state,
            started,
            untold: false,
            adopts,
            watch_state,
            inventory: KeptInventory::default(),
            answers,
            tried_again: false,
            wake: None,
        }
    }

    /// Runs until the run has to wait or ends, or is not current any more.
    pub async fn run(mut self) -> Result<Flow, ApiFailure> {
        let ended = rounds::drive(&mut self, ROUNDS).await;
        // The Event of its end tells as much of a run that ends in the pass in which it starts.
        if self.untold {
            self.publish(record::started(&self.state)).await;
        }
        match ended {
            Ok(Some(flow)) => Ok(flow),
            Ok(None) => {
                warn!(instance = %self.subject.key, plan = %self.plan, "a pass took too many rounds and gives way");
                Ok(Flow::End(Action::Retry))
            }
            Err(Stop::Superseded) => Ok(Flow::Again),
            Err(Stop::Gone) => {
                self.ctx.watches.missed(&self.subject.key, Some(self.subject.uid()));
                Ok(Flow::End(Action::AwaitChange))
            }
            Err(Stop::NotDone(why)) => {
                debug!(instance = %self.subject.key, plan = %self.plan, %why, "a pass is put off");
                Ok(Flow::End(Action::Requeue(BUSY)))
            }
            Err(Stop::Failed(failure)) => Err(failure),
        }
    }

    /// Whether no request that this process has seen ends or pauses the run. One proof covers several writes,
    /// and this needs no request.
    fn goes_on(&self) -> Result<(), Stop> {
        let KeptInstance::Whole(object) = self.ctx.store.instance(&self.subject.key) else { return Ok(()) };
        if annotation(&object, meta::REQUEST).is_none() {
            return Ok(());
        }
        let seen = InstanceView::read(&self.subject.key, object).map_err(|_| Stop::Superseded)?;
        if plan_intent::interrupts(self.ctx, &seen, &self.uid) { Err(Stop::Superseded) } else { Ok(()) }
    }

    /// Adds our finalizer where the deletion of the Instance has to wait for what nothing else removes.
    async fn hold(&mut self, wanted: bool) -> Result<(), Stop> {
        if !wanted || self.subject.has_finalizer() {
            return Ok(());
        }
        let (key, version) = (&self.subject.key, self.subject.resource_version());
        let body =
            patches::instance(&self.subject, InstanceChange { hold: true, ..InstanceChange::default() });
        let object = self.ctx.bookkeeping.patch_instance(key, version, body).await?;
        self.adopt(object)?;
        self.watch_state.proved();
        Ok(())
    }

    /// Saves the inventory, if it has changed.
    async fn list(&mut self, inventory: Option<ObjectInventory>) -> Result<(), Stop> {
        let Some(inventory) = inventory else { return Ok(()) };
        let former = std::mem::take(&mut self.inventory);
        self.inventory = inventory::write(self.ctx, &self.subject, inventory, former).await?;
        self.watch_state.observed.facts.inventory = Some(self.inventory.inventory.clone());
        Ok(())
    }

    /// Runs the engine on a thread of the pool: its cost depends on the package.
    async fn ask(&mut self, state: PlanState, observed: Observed) -> Result<(EngineStep, Observed), NotDone> {
        let engine = self.engine.clone();
        let helper = self.ctx.pipe_helper.clone();
        let asked = move |deadline: &Deadline| {
            let step = advance(&engine.run(deadline, &helper), state, &observed);
            (step, observed)
        };
        let answer = self.ctx.pool.run(&self.subject.key.namespace, asked).await?;
        if self.hold.set(self.engine.bytes()) { Ok(answer) } else { Err(NotDone::Held) }
    }

    /// Records the phase of the run if it has changed, and returns what follows the pass.
    async fn settle(&mut self, phase: RecordPhase) -> Result<Flow, Stop> {
        let flow = match &phase {
            RecordPhase::Over { .. } => Flow::Again,
            RecordPhase::Waiting { failure: Some(failure), .. }
                if failure.goes_on_soon(self.engine.started(), Timestamp::now()) =>
            {
                Flow::End(Action::Requeue(SOON))
            }
            // The run waits for objects, and a watch will report them.
            RecordPhase::Waiting { .. }
                if !self.tried_again && self.watch_state.watches_suffice(self.engine.instance()) =>
            {
                if self.answers { Flow::Again } else { Flow::End(Action::AwaitChange) }
            }
            RecordPhase::Waiting { .. } | RecordPhase::Running => Flow::End(Action::Retry),
        };
        self.record(phase).await?;
        if let Some(at) = self.wake {
            let left = Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default();
            self.ctx.queue.add_after(self.subject.key.clone(), left);
        }
        Ok(flow)
    }

    /// The message while kinds are not served.
    fn absent(&self, kinds: &BTreeSet<Gvk>) -> Option<TaskFailure> {
        let named = |kind: &Gvk| match self.ctx.watches.absence(kind) {
            Some(why) => format!("{kind}, which {why}"),
            None => kind.to_string(),
        };
        let names: Vec<String> = kinds.iter().map(named).collect();
        (!names.is_empty()).then(|| {
            let message = format!(
                "waiting for the CustomResourceDefinition of {}; see to it, or abort the plan",
                names.join(" and of ")
            );
            TaskFailure { kind: FailureKind::MissingDefinition, message }
        })
    }

    async fn publish(&self, note: Note) {
        self.ctx.events.publish(&self.subject.key, self.subject.uid(), note).await;
    }
}

impl Rounds for Pass<'_> {
    type Lacks = Needs;
    type Writes = EngineStep;
    /// What follows the pass.
    type End = Flow;
    type Stop = Stop;

    fn leads(&self) -> Result<(), Stop> {
        if self.ctx.lead.holds() { Ok(()) } else { Err(Stop::Superseded) }
    }

    async fn decide(&mut self) -> Decided<Self> {
        let mut observed = std::mem::take(&mut self.watch_state.observed);
        observed.limits.now = Timestamp::now();
        let (step, observed) = self.ask(self.state.clone(), observed).await?;
        self.watch_state.observed = observed;
        Ok(if step.needs.is_empty() { Decision::Write(step) } else { Decision::Lacks(step.needs) })
    }

    /// The inventory is read once.
    async fn read(&mut self, needs: Needs) -> Result<Flow<Flow>, Stop> {
        gathered::serves_all(&["kinds", "digests", "pod_failures", "files", "inventory"], &needs)?;
        if needs.inventory && self.watch_state.observed.facts.inventory.is_none() {
            let kept = inventory::of_run(self.ctx, &self.subject).await?;
            self.watch_state.observed.facts.inventory = Some(kept.inventory.clone());
            self.inventory = kept;
        }
        self.watch_state.look_up(&needs).await;
        Ok(Flow::Again)
    }

    /// Takes one step; records the phase of the run where it requests no write.
    async fn write(&mut self, step: EngineStep) -> Result<Flow<Flow>, Stop> {
        for note in step.notes {
            self.publish(note).await;
        }
        self.state = step.state;
        if self.state.status.status.is_terminal() {
            self.hold(step.finalizer).await?;
            self.list(step.inventory).await?;
            let phase = RecordPhase::Over { fatal: step.fatal, aborted: false, held_by: step.held_by };
            return self.settle(phase).await.map(Flow::End);
        }
        if step.effects.is_empty() {
            // The controller of a workload creates its pods again, and an event of that wakes the Instance.
            self.tried_again = step.failure.as_ref().is_some_and(|f| f.kind != FailureKind::PodsRefused);
            self.wake = step.wake;
            let failure = step.failure.or_else(|| self.absent(&step.absent));
            let phase = RecordPhase::Waiting { failure, held: step.held, waits: step.waiting };
            return self.settle(phase).await.map(Flow::End);
        }
        let covered = self.started && self.watch_state.covers(&step.effects);
        if !covered {
            self.survey().await?;
        }
        if !covered || step.save_first {
            self.prove(step.save_first).await?;
        }
        self.leads()?;
        self.hold(step.finalizer).await?;
        self.list(step.inventory).await?;
        self.goes_on()?;
        self.watch_state.write(step.effects).await;
        for note in api_warnings::notes(&self.watch_state.take_warnings()) {
            self.publish(note).await;
        }
        Ok(Flow::Again)
    }
}

/// The limits of the run that `planExecution` names.
fn limits(subject: &InstanceView, package: &Package, started: bool) -> RunLimits {
    let deleted_at = subject.deleted_at().filter(|_| subject.plan() == plan::CLEANUP);
    let failing = started && subject.reports_error();
    let cleanup = deleted_at.map(|since| Cleanup { since, failing });
    RunLimits::new(&Words::of(&subject.object), &package.limits, cleanup, Timestamp::now())
}
