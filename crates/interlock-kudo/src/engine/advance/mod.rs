//! One call of the engine: advances a run as far as its lookups allow.
//!
//! Phases of a plan and steps of a phase run one after another where their strategy is `serial`,
//! else concurrently: the engine returns the writes of all of them at once. It runs the tasks of a
//! step in order, each regardless of the others' results, and never repeats finished ones (KUDO
//! `workflow/engine.go: Execute`).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use interlock_core::effect::Effect;
use jiff::Timestamp;

use super::errors::{InvalidTask, TaskError, reason};
use super::lookup::{
    EngineStep, FailureKind, Fatal, Observed, PlanState, TaskFailure, TaskObject, TaskProgress,
};
use super::ownership::TaskOwners;
use super::render::TaskContext;
use super::render_cache::Parameters;
use super::run::Run;
use super::state::{Level, StateEvent, change};
use super::tasks;
use crate::api::{ExecutionStatus, HeldObject, Phase, PhaseStatus, Step as StepSpec, StepStatus};
use crate::package::time_limits;
use crate::package::values;

/// Advances a run as far as its lookups allow. The caller repeats it with the answers to its
/// queries and writes, until it returns neither. A run that is over stays as it is.
pub fn advance(run: &Run<'_>, mut state: PlanState, observed: &Observed) -> EngineStep {
    if state.status.status.is_terminal() {
        return EngineStep { state, ..EngineStep::default() };
    }
    change(Level::Plan, &mut state.status.status, StateEvent::Reached);
    state.status.message = None;
    let mut step = EngineStep::default();
    if let Err(end) = walk(run, &mut state, observed, &mut step) {
        change(Level::Plan, &mut state.status.status, StateEvent::Ended);
        state.status.message = end.on_plan.then(|| end.message.clone());
        state.done.clear();
        state.begun.clear();
        let fatal = Fatal { reason: end.reason.to_owned(), message: end.event_text() };
        return EngineStep { state, fatal: Some(fatal), held_by: end.held_by, ..EngineStep::default() };
    }
    if state.status.status.is_terminal() {
        state.done.clear();
        state.begun.clear();
        return EngineStep { state, ..step };
    }
    if !step.waiting.is_empty() {
        step.waiting.extend(observed.limits.ignored.iter().cloned());
    }
    match patience(&step, observed) {
        Patience::Until(wake) => {
            step.wake = earlier(step.wake, wake);
            EngineStep { state, ..step }
        }
        Patience::Lost(why) => {
            let fatal =
                Fatal { reason: reason::CLEANUP_PATIENCE.to_owned(), message: format!("{PREFIX}{why}") };
            EngineStep { state: state.end(&why), fatal: Some(fatal), ..EngineStep::default() }
        }
        Patience::Endless => EngineStep { state, ..step },
    }
}

/// How long a run may keep failing.
enum Patience {
    Endless,
    Until(Timestamp),
    Lost(String),
}

/// Gives up the cleanup of a deleted Instance after a while: where its error recurred, or it needs
/// human intervention, and no part of it waits for a state that may come by itself (a Job may take
/// its time).
fn patience(step: &EngineStep, observed: &Observed) -> Patience {
    let Some(patience) = observed.limits.patience else { return Patience::Endless };
    let under_way = !step.needs.is_empty() || !step.effects.is_empty() || step.may_pass;
    let absent = step.absent.first().map(|gvk| format!("waiting for the CustomResourceDefinition of {gvk}"));
    let error = step.failure.as_ref().map(|failure| &failure.message);
    let Some(why) = error.or(absent.as_ref()).or(step.held.as_ref()).filter(|_| !under_way) else {
        return Patience::Endless;
    };
    if observed.limits.now < patience.until {
        return Patience::Until(patience.until);
    }
    // The engine retries a first error soon.
    if error.is_some() && !patience.failing {
        return Patience::Endless;
    }
    let length = patience.length;
    Patience::Lost(format!("cleanup could not go on for longer than {length:#} after the deletion: {why}"))
}

fn earlier(one: Option<Timestamp>, other: Timestamp) -> Option<Timestamp> {
    Some(one.map_or(other, |one| one.min(other)))
}

/// The error that ended a run.
struct End {
    reason: &'static str,
    message: String,
    on_plan: bool,
    held_by: BTreeSet<HeldObject>,
}

/// How KUDO's `ExecutionError` begins.
const PREFIX: &str = "Error during execution: ";

impl End {
    fn event_text(&self) -> String {
        if self.message.starts_with(PREFIX) {
            self.message.clone()
        } else {
            format!("{PREFIX}{}", self.message)
        }
    }

    fn of_plan(run: &Run<'_>, reason: &'static str, what: &str) -> Self {
        let message = format!("{}/{} fatal error: {what}", run.instance.namespace, run.instance.name);
        Self { reason, message, on_plan: true, held_by: BTreeSet::new() }
    }

    /// A phase or step that failed for good in a plan that is recorded as running.
    fn recorded(run: &Run<'_>, name: &str, message: Option<&str>) -> Self {
        let what = format!("{}.{name} had failed before", run.plan);
        let end = Self::of_plan(run, reason::FAILED_BEFORE, &what);
        Self { message: message.map_or(end.message, str::to_owned), on_plan: false, ..end }
    }

    fn inside(run: &Run<'_>, reason: &'static str, what: &str) -> Self {
        Self { on_plan: false, ..Self::of_plan(run, reason, what) }
    }
}

/// Context of the walk through a plan.
struct Walk<'a> {
    run: &'a Run<'a>,
    params: &'a Parameters,
    observed: &'a Observed,
    owners: TaskOwners,
}

/// Where the first of each name is.
type Places<'a> = HashMap<&'a str, usize>;

fn first_of<'a>(names: impl Iterator<Item = Option<&'a str>>) -> Places<'a> {
    let mut places = Places::new();
    for (place, name) in names.enumerate() {
        places.entry(name.unwrap_or_default()).or_insert(place);
    }
    places
}

/// The first entry of a name: mostly in the order of the package.
fn named<'s, T>(
    all: &'s mut [T],
    places: &Places<'_>,
    name: &str,
    of: impl Fn(&T) -> &String,
) -> Option<&'s mut T> {
    let is = |entry: &T| of(entry) == name;
    let place = places.get(name).copied().filter(|place| all.get(*place).is_some_and(is));
    let place = place.or_else(|| all.iter().position(is))?;
    all.get_mut(place)
}

fn is_serial(strategy: Option<&str>) -> bool {
    strategy == Some("serial")
}

fn walk(run: &Run<'_>, state: &mut PlanState, observed: &Observed, out: &mut EngineStep) -> Result<(), End> {
    let plan = run.package.plan(run.plan).ok_or_else(|| {
        End::of_plan(run, reason::INVALID_PLAN, &format!("could not find required plan: {}", run.plan))
    })?;
    if let Some(problem) = &observed.dependencies {
        let what = format!("OperatorVersion {} cannot be carried out: {problem}", run.package.key);
        return Err(End::of_plan(run, reason::CIRCULAR_DEPENDENCY, &what));
    }
    let params = run
        .rendered
        .parameters(|| values::parameters(run.package, run.values))
        .map_err(|error| End::of_plan(run, reason::INVALID_PARAMS, &error.to_string()))?;
    let mut walk = Walk { run, params: &params, observed, owners: TaskOwners::default() };
    let mut complete = true;
    let places = first_of(plan.phases.iter().flatten().map(|phase| phase.name.as_deref()));
    for phase in plan.phases.iter().flatten() {
        let done = walk.phase(phase, &places, state, out)?;
        complete &= done;
        if !done && is_serial(plan.strategy.as_deref()) {
            break;
        }
    }
    if walk.inventory(complete, &mut state.unsaved, out)? {
        change(Level::Plan, &mut state.status.status, StateEvent::Finished);
    }
    Ok(())
}

impl Walk<'_> {
    /// Walks through a phase; returns whether it is complete.
    fn phase(
        &mut self,
        phase: &Phase,
        places: &Places<'_>,
        state: &mut PlanState,
        out: &mut EngineStep,
    ) -> Result<bool, End> {
        let name = phase.name.as_deref().unwrap_or_default();
        let PlanState { status, done, begun, unsaved } = state;
        let mut record = Record { done, begun, unsaved };
        let found = status.phases.as_mut().and_then(|all| named(all, places, name, |p| &p.name));
        let entry = found.ok_or_else(|| {
            let what = format!(" missing phase status: {}.{name}", self.run.plan);
            End::of_plan(self.run, reason::MISSING_PHASE, &what)
        })?;
        match entry.status {
            ExecutionStatus::Complete => return Ok(true),
            ExecutionStatus::FatalError => {
                return Err(End::recorded(self.run, name, entry.message.as_deref()));
            }
            _ => {}
        }
        change(Level::Phase, &mut entry.status, StateEvent::Reached);
        entry.message = None;
        let mut complete = true;
        let places = first_of(phase.steps.iter().flatten().map(|step| step.name.as_deref()));
        for step in phase.steps.iter().flatten() {
            match self.step(name, (step, &places), entry, &mut record, out) {
                Ok(done) => complete &= done,
                Err(end) => {
                    change(Level::Phase, &mut entry.status, StateEvent::Ended);
                    return Err(end);
                }
            }
            if !complete && is_serial(phase.strategy.as_deref()) {
                break;
            }
        }
        if complete {
            change(Level::Phase, &mut entry.status, StateEvent::Finished);
        }
        Ok(complete)
    }

    /// Walks through a step; returns whether it is complete.
    fn step(
        &mut self,
        phase: &str,
        (step, places): (&StepSpec, &Places<'_>),
        entry: &mut PhaseStatus,
        record: &mut Record<'_>,
        out: &mut EngineStep,
    ) -> Result<bool, End> {
        let name = step.name.as_deref().unwrap_or_default();
        let Some(status) = entry.steps.as_mut().and_then(|all| named(all, places, name, |s| &s.name)) else {
            let what = format!(" missing step status: {}.{phase}.{name}", self.run.plan);
            let end = End::inside(self.run, reason::MISSING_STEP, &what);
            entry.message = Some(end.message.clone());
            return Err(end);
        };
        match status.status {
            ExecutionStatus::Complete => return Ok(true),
            ExecutionStatus::FatalError => {
                return Err(End::recorded(self.run, name, status.message.as_deref()));
            }
            _ => {}
        }
        change(Level::Step, &mut status.status, StateEvent::Reached);
        status.message = None;
        self.tasks((phase, name), step, status, record, out).inspect_err(|end| {
            change(Level::Step, &mut status.status, StateEvent::Ended);
            status.message = Some(end.message.clone());
        })
    }

    fn tasks(
        &mut self,
        (phase, name): (&str, &str),
        step: &StepSpec,
        status: &mut StepStatus,
        record: &mut Record<'_>,
        out: &mut EngineStep,
    ) -> Result<bool, End> {
        let Record { done, begun, unsaved } = record;
        let key = format!("{phase}/{name}");
        let since = *begun.entry(key.clone()).or_insert(self.observed.limits.now);
        let tasks = || step.tasks.iter().flatten();
        let (mut under_way, mut waits) = (false, Vec::new());
        let mut met = HashSet::new();
        for task in tasks() {
            if !met.insert(task) || done.get(&key).is_some_and(|done| done.contains(task)) {
                continue;
            }
            let context = TaskContext { run: self.run, params: self.params, phase, step: name, task };
            match self.task(&context) {
                Ok(progress) => {
                    if progress.done {
                        done.entry(key.clone()).or_default().insert(task.clone());
                    }
                    under_way |= !progress.needs.is_empty() || !progress.lane.is_empty();
                    waits.extend(progress.waiting.iter().cloned());
                    if let Some(refused) = &progress.refused {
                        status.message = Some(refused.clone());
                        let message = format!("task {}: {refused}", context.path());
                        out.failed(TaskFailure { kind: FailureKind::PodsRefused, message });
                    }
                    if let Some(gvk) = progress.absent.first() {
                        let message = format!("waiting for the CustomResourceDefinition of {gvk}");
                        status.message = Some(message);
                    }
                    gather(progress, unsaved, out);
                }
                Err(TaskEnd::Retry(kind, error)) => {
                    let path = context.path();
                    // KUDO's text, whatever can mend the error.
                    let message =
                        format!("A transient error when executing task {path}. Will retry. {error}");
                    change(Level::Step, &mut status.status, StateEvent::Failed);
                    status.message = Some(message.clone());
                    waits.push(message);
                    out.failed(TaskFailure { kind, message: format!("task {path}: {error}") });
                }
                Err(TaskEnd::Over(end)) => return Err(end),
            }
        }
        let complete = tasks().all(|task| done.get(&key).is_some_and(|done| done.contains(task)));
        if complete {
            done.remove(&key);
            begun.remove(&key);
            change(Level::Step, &mut status.status, StateEvent::Finished);
        } else if !under_way {
            self.in_time((phase, name), since, &waits, out)?;
        }
        Ok(complete)
    }

    /// Ends a step past its deadline, once it has advanced as far as it can.
    fn in_time(
        &self,
        (phase, name): (&str, &str),
        since: Timestamp,
        waits: &[String],
        out: &mut EngineStep,
    ) -> Result<(), End> {
        let step = format!("{}.{phase}.{name}", self.run.plan);
        let Some(deadline) = self.observed.limits.steps.of(&step) else { return Ok(()) };
        let over = time_limits::after(since, deadline);
        if self.observed.limits.now < over {
            out.wake = earlier(out.wake, over);
            return Ok(());
        }
        let what =
            format!("step {step} has a deadline of {deadline:#} and was not done: {}", waits.join("; "));
        Err(End::inside(self.run, reason::STEP_DEADLINE, &what))
    }

    fn task(&mut self, context: &TaskContext<'_>) -> Result<TaskProgress, TaskEnd> {
        let path = context.path();
        let build = |error: &InvalidTask| {
            let what = format!(" failed to build task {path}: {error}");
            TaskEnd::Over(End::inside(self.run, reason::TASK_BUILD, &what))
        };
        let definition = self.run.package.task(context.task).ok_or_else(|| {
            let what = format!(" missing task {path}");
            TaskEnd::Over(End::inside(self.run, reason::UNKNOWN_TASK, &what))
        })?;
        let task = tasks::build(definition).map_err(|error| build(&error))?;
        let over = |reason, cause: String, held_by| {
            let instance = self.run.instance;
            let (namespace, name) = (&instance.namespace, &instance.name);
            let message = format!("{PREFIX}fatal error: {namespace}/{name} failed in {path}: {cause}");
            TaskEnd::Over(End { reason, message, on_plan: false, held_by })
        };
        let progress =
            task.advance(context, self.observed, &mut self.owners).map_err(|error| match error {
                TaskError::Transient(error) => TaskEnd::Retry(FailureKind::Transient, error),
                TaskError::Interrupted(error) => TaskEnd::Retry(FailureKind::Interrupted, error),
                TaskError::Rejected(kind, error) => TaskEnd::Retry(FailureKind::Rejected(kind), error),
                TaskError::Build(error) => build(&error),
                TaskError::Fatal { reason, cause } => over(reason, cause, BTreeSet::new()),
                TaskError::Held { objects, cause } => over(reason::NOT_ADOPTED, cause, objects),
            })?;
        self.owners.record(context, &progress.lane);
        Ok(progress)
    }
}

/// State of a run that its status does not hold.
struct Record<'s> {
    /// Finished tasks by `phase/step`.
    done: &'s mut BTreeMap<String, BTreeSet<String>>,
    /// When unfinished steps began.
    begun: &'s mut BTreeMap<String, Timestamp>,
    unsaved: &'s mut BTreeSet<TaskObject>,
}

enum TaskEnd {
    Retry(FailureKind, String),
    Over(End),
}

fn gather(progress: TaskProgress, unsaved: &mut BTreeSet<TaskObject>, out: &mut EngineStep) {
    let TaskProgress { lane, needs, waiting, held, notes, absent, dealt_with, done: _, refused: _ } =
        progress;
    let subject = |write: &Effect| write.key().map(|key| TaskObject::new(&key.gvk, &key.name));
    out.save_first |= lane.iter().filter_map(subject).any(|subject| unsaved.contains(&subject));
    unsaved.extend(dealt_with);
    if !lane.is_empty() {
        out.effects.push(lane);
    }
    out.may_pass |= !waiting.is_empty() && absent.is_empty() && held.is_none();
    out.needs.add(needs);
    out.waiting.extend(waiting);
    out.absent.extend(absent);
    out.held = out.held.take().or(held);
    out.notes.extend(notes);
}

mod pruning;

#[cfg(test)]
pub(super) mod fixture;
#[cfg(test)]
mod properties;
#[cfg(test)]
pub(super) mod sim;
#[cfg(test)]
mod tests;
