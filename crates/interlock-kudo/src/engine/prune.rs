//! Pruning: the removal of objects that a plan applied once and no longer renders. Only on request
//! ([`interlock_core::api::meta::PRUNE`]), and only what the inventory of the Instance lists.
//!
//! It is the last part of a run, once every task is done: what a package has moved from one task to another is never
//! deleted in between. A Delete task for each object would do the same: only what names the Instance as its maker is
//! deleted, and what holds data is reported.

use std::sync::Arc;

use interlock_core::api::inventory::{ListedObject, ObjectInventory};

use super::errors::TaskError;
use super::lookup::{Observed, TaskProgress};
use super::render;
use super::render::TaskContext;
use super::render_cache::{Parameters, PlanObjects};
use super::run::Run;
use super::tasks;

/// The objects that the plan of a run applies.
///
/// # Errors
/// Of a template that may render later.
pub fn rendered(run: &Run<'_>, params: &Parameters) -> Result<Arc<PlanObjects>, TaskError> {
    run.rendered.plan_objects(|| {
        let mut plan = PlanObjects { whole: true, ..PlanObjects::default() };
        for context in TaskContext::of_plan(run, params) {
            let task = run.package.task(context.task).and_then(|task| tasks::build(task).ok());
            let Some(task) = task else {
                plan.whole = false;
                continue;
            };
            match render::with_files(&context, task.applied(&context)) {
                Ok(objects) => {
                    plan.objects.extend(objects.iter().filter_map(|(_, object)| ListedObject::of(object)));
                }
                Err(TaskError::Build(_) | TaskError::Fatal { .. }) => plan.whole = false,
                Err(error) => return Err(error),
            }
        }
        Ok(plan)
    })
}

/// Removes the objects of the plan that it no longer renders.
///
/// # Errors
/// Of a request that failed.
pub fn advance(
    run: &Run<'_>,
    params: &Parameters,
    inventory: &ObjectInventory,
    rendered: &PlanObjects,
    observed: &Observed,
) -> Result<TaskProgress, TaskError> {
    let context = TaskContext { run, params, phase: "", step: "", task: "" };
    let stale = inventory.stale(run.plan, &rendered.objects);
    tasks::delete::advance(&context, stale.into_iter().map(ListedObject::manifest).collect(), observed)
}
