//! The inventory and the pruning of a plan, as parts of the walk through it.

use std::collections::BTreeSet;

use super::{End, Walk, gather};
use crate::api::meta::plan::CLEANUP;
use crate::engine::errors::{TaskError, reason};
use crate::engine::lookup::{EngineStep, FailureKind, Query, TaskFailure, TaskObject};
use crate::engine::prune;

impl Walk<'_> {
    /// Lists the objects of the plan in the inventory before any of them is written; removes those that it no longer
    /// renders, once its phases are complete. Returns whether the plan is. Without pruning there is no inventory.
    pub(super) fn inventory(
        &self,
        complete: bool,
        unsaved: &mut BTreeSet<TaskObject>,
        out: &mut EngineStep,
    ) -> Result<bool, End> {
        let plan = self.run.plan;
        let idle = out.effects.is_empty() && !complete;
        if !self.observed.limits.prunes || plan == CLEANUP || idle {
            return Ok(complete);
        }
        let rendered = match prune::rendered(self.run, self.params) {
            Ok(rendered) => rendered,
            Err(error) => return self.not_pruned(error, out),
        };
        let Some(inventory) = &self.observed.inventory else {
            out.effects.clear();
            out.needs.insert(Query::Inventory);
            return Ok(false);
        };
        if !inventory.lists(plan, &rendered.objects) {
            out.inventory = Some(inventory.with(plan, &rendered.objects));
        }
        if !complete || !rendered.whole {
            return Ok(complete);
        }
        match prune::advance(self.run, self.params, inventory, &rendered, self.observed) {
            Ok(progress) => {
                let done = progress.done;
                gather(progress, unsaved, out);
                let left = inventory.replaced(plan, &rendered.objects);
                if done && left != *inventory {
                    out.inventory = Some(left);
                }
                Ok(done)
            }
            Err(error) => self.not_pruned(error, out),
        }
    }

    /// Ends the run where the error is for good; else nothing is written until a later try.
    fn not_pruned(&self, error: TaskError, out: &mut EngineStep) -> Result<bool, End> {
        let (kind, error) = match error {
            TaskError::Transient(error) => (FailureKind::Transient, error),
            TaskError::Interrupted(error) => (FailureKind::Interrupted, error),
            TaskError::Refused(error) => (FailureKind::Refused, error),
            TaskError::Build(error) => {
                return Err(End::of_plan(self.run, reason::TASK_BUILD, &error.to_string()));
            }
            TaskError::Fatal { reason, cause } => return Err(End::of_plan(self.run, reason, &cause)),
            TaskError::Held { cause, .. } => {
                return Err(End::of_plan(self.run, reason::NOT_ADOPTED, &cause));
            }
        };
        let message =
            format!("objects that plan {} no longer renders are not removed: {error}", self.run.plan);
        out.effects.clear();
        out.waiting.push(message.clone());
        out.failed(TaskFailure { kind, message });
        Ok(false)
    }
}
