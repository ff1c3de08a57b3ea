//! Instances as cards, and their running plans as rows.

use interlock_core::api::display::display;
use interlock_core::kinds::page::{MESSAGE_LIMIT, PageSection, ROWS, RelatedObjects, View, WORD_LIMIT, time};
use interlock_core::kinds::row::{is_well, name};
use interlock_core::kinds::{fact, link};
use interlock_core::topology::ObjectRow;
use interlock_core::topology::schema::Side;
use jiff::Timestamp;
use serde::{Deserialize as _, Serialize};

use super::ranked::Ranked;
use crate::api::{ExecutionStatus, Instance};
use crate::instance::run_summary::RunSummary;

/// Maximum number of shown steps of a plan.
const STEPS: usize = 100;

#[derive(Debug, Serialize)]
pub(super) struct InstanceCard {
    namespace: String,
    name: String,
    /// Namespace and name of its OperatorVersion; empty where it names none.
    version: String,
    created: Option<Timestamp>,
    /// What is wrong with it; empty for nothing.
    trouble: &'static str,
    /// Whether all its objects are healthy.
    well: bool,
    plan: Option<PlanCard>,
    #[serde(flatten)]
    objects: RelatedObjects,
}

/// A plan that is scheduled or runs.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct PlanCard {
    name: String,
    status: String,
    steps: Vec<Step>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Step {
    phase: String,
    name: String,
    status: ExecutionStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// A plan that is scheduled or runs, in one row.
#[derive(Debug, Serialize)]
pub(super) struct PlanRow {
    namespace: String,
    /// Of the Instance.
    name: String,
    plan: String,
    status: String,
    /// Steps that are done.
    done: usize,
    /// All steps; 0 where they are not known.
    steps: usize,
    /// The open phase and step; empty for none.
    phase: String,
    step: String,
    started: Option<Timestamp>,
}

impl InstanceCard {
    pub(super) fn of(view: &View<'_>, ranked: &Ranked<'_>) -> Self {
        let key = name(&ranked.id);
        let row = &ranked.row;
        let object = whole(view, ranked);
        let versions = row.along(Side::Parent, link::OPERATOR_VERSION).map(|row| name(&row.id()));
        let snapshot = view.graph.snapshot_of(&ranked.id);
        Self {
            version: versions.map(|version| version.to_string()).next().unwrap_or_default(),
            created: time(row.number(fact::CREATED)),
            trouble: ranked.trouble.map_or("", |(state, _)| state.as_str()),
            well: is_well(row),
            plan: match &object {
                Some(object) => RunSummary::of(object).as_ref().map(PlanCard::of),
                None => PlanCard::locked(row),
            },
            objects: snapshot
                .map(|found| RelatedObjects::of(view.schemas, &found, &ranked.id))
                .unwrap_or_default(),
            namespace: key.namespace,
            name: key.name,
        }
    }
}

impl PlanCard {
    fn of(run: &RunSummary<'_>) -> Self {
        let steps = run.steps.iter().take(STEPS).map(|(phase, step)| Step {
            phase: display(&phase.name, WORD_LIMIT),
            name: display(&step.name, WORD_LIMIT),
            status: step.status.clone(),
            message: step
                .message
                .as_deref()
                .filter(|message| !message.is_empty())
                .map(|message| display(message, MESSAGE_LIMIT)),
        });
        Self {
            name: display(run.plan, WORD_LIMIT),
            status: display(run.status, WORD_LIMIT),
            steps: steps.collect(),
        }
    }

    /// The plan that holds the lock, where only the row is cached.
    fn locked(row: &ObjectRow<'_>) -> Option<Self> {
        let name = row.word(fact::LOCKED).filter(|plan| !plan.is_empty())?;
        let status = row.word(fact::STATE).unwrap_or_default().to_owned();
        Some(Self { name: display(name, WORD_LIMIT), status, steps: Vec::new() })
    }
}

/// The running plans, those in trouble first.
pub(super) fn plans(view: &View<'_>, all: &[Ranked<'_>], total: usize) -> PageSection<PlanRow> {
    let locked = all.iter().filter(|ranked| ranked.locked).take(ROWS);
    PageSection { total, shown: locked.filter_map(|ranked| PlanRow::of(view, ranked)).collect() }
}

impl PlanRow {
    fn of(view: &View<'_>, ranked: &Ranked<'_>) -> Option<Self> {
        let key = name(&ranked.id);
        let row = &ranked.row;
        let object = whole(view, ranked);
        let run = object.as_ref().and_then(RunSummary::of);
        let current = run.as_ref().and_then(RunSummary::current);
        let card = run.as_ref().map(PlanCard::of).or_else(|| PlanCard::locked(row))?;
        let started = run.as_ref().and_then(|run| run.started);
        Some(Self {
            namespace: key.namespace,
            name: key.name,
            plan: card.name,
            status: card.status,
            done: run.as_ref().map_or(0, RunSummary::done),
            steps: run.as_ref().map_or(0, |run| run.steps.len()),
            phase: current.map_or_else(String::new, |(phase, _)| display(&phase.name, WORD_LIMIT)),
            step: current.map_or_else(String::new, |(_, step)| display(&step.name, WORD_LIMIT)),
            started: started.or_else(|| time(row.number(fact::STARTED))),
        })
    }
}

/// The Instance, where more than its row is cached.
fn whole(view: &View<'_>, ranked: &Ranked<'_>) -> Option<Instance> {
    Instance::deserialize(&*(view.whole)(&ranked.id)?).ok()
}
