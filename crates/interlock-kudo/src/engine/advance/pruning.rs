//! The inventory of a plan, and the removals by it, as parts of the walk through the plan.

use std::collections::BTreeSet;

use interlock_core::api::inventory::{CHILDREN, ObjectInventory};
use interlock_core::api::meta::plan::CLEANUP;

use super::{End, Walk, gather};
use crate::engine::children;
use crate::engine::cluster_scoped;
use crate::engine::errors::{TaskError, reason};
use crate::engine::lookup::{EngineStep, FailureKind, TaskFailure, TaskObject};
use crate::engine::prune;

/// A removal that was not done.
struct NotRemoved {
    /// The objects, for people.
    what: String,
    error: TaskError,
}

impl Walk<'_> {
    /// Lists the objects of the plan in the inventory before any of them is written; removes what it no longer names,
    /// once its phases are complete. Returns whether the plan is. Without pruning, children and cluster-scoped objects
    /// there is no inventory.
    pub(super) fn inventory(
        &self,
        complete: bool,
        unsaved: &mut BTreeSet<TaskObject>,
        out: &mut EngineStep,
    ) -> Result<bool, End> {
        let idle = out.effects.is_empty() && !complete;
        if idle {
            return Ok(complete);
        }
        let lasts = self.run.plan != CLEANUP;
        let made = if lasts { children::made(self.run) } else { BTreeSet::new() };
        let drops = lasts && complete && children::is_due(self.run, self.observed);
        let cluster_scoped = cluster_scoped::made(self.run, self.observed, &out.effects);
        out.finalizer = !cluster_scoped.is_empty();
        if !self.prunes() && made.is_empty() && !drops && !out.finalizer {
            return Ok(complete);
        }
        let Some(known) = &self.observed.facts.inventory else {
            out.effects.clear();
            out.needs.inventory = true;
            return Ok(false);
        };
        let mut inventory = known.clone();
        for (plan, objects) in [(CHILDREN, &made), (self.run.plan, &cluster_scoped)] {
            if !inventory.lists(plan, objects) {
                inventory = inventory.with(plan, objects);
            }
        }
        match self.removals((complete, drops), &mut inventory, unsaved, out) {
            Ok(done) => {
                if inventory != *known {
                    out.inventory = Some(inventory);
                }
                Ok(done)
            }
            Err(not) => self.not_removed(not, out),
        }
    }

    fn prunes(&self) -> bool {
        self.observed.limits.prunes && self.run.plan != CLEANUP
    }

    /// Lists what pruning needs, and removes what is due; returns whether the plan is complete.
    fn removals(
        &self,
        (complete, drops): (bool, bool),
        inventory: &mut ObjectInventory,
        unsaved: &mut BTreeSet<TaskObject>,
        out: &mut EngineStep,
    ) -> Result<bool, NotRemoved> {
        let mut done = complete;
        if self.prunes() {
            done = self.prune(complete, inventory, unsaved, out).map_err(|error| {
                let what = format!("objects that plan {} no longer renders", self.run.plan);
                NotRemoved { what, error }
            })?;
        }
        // Reports what is kept with the end of the run, once.
        if drops && done {
            let removal = children::advance(self.run, inventory, self.observed).map_err(|error| {
                let what = format!("Instances that {} no longer installs", self.run.package.key);
                NotRemoved { what, error }
            })?;
            if removal.progress.done {
                *inventory = inventory.replaced(CHILDREN, &removal.left);
            }
            done = removal.progress.done;
            gather(removal.progress, unsaved, out);
        }
        Ok(done)
    }

    fn prune(
        &self,
        complete: bool,
        inventory: &mut ObjectInventory,
        unsaved: &mut BTreeSet<TaskObject>,
        out: &mut EngineStep,
    ) -> Result<bool, TaskError> {
        let plan = self.run.plan;
        let rendered = prune::rendered(self.run, self.params)?;
        if !inventory.lists(plan, &rendered.objects) {
            *inventory = inventory.with(plan, &rendered.objects);
        }
        if !complete || !rendered.whole {
            return Ok(complete);
        }
        let progress = prune::advance(self.run, self.params, inventory, &rendered, self.observed)?;
        let done = progress.done;
        if done {
            *inventory = inventory.replaced(plan, &rendered.objects);
        }
        gather(progress, unsaved, out);
        Ok(done)
    }

    /// Ends the run where the error is for good; else nothing is written until a later try.
    fn not_removed(&self, not: NotRemoved, out: &mut EngineStep) -> Result<bool, End> {
        let (kind, error) = match not.error {
            TaskError::Transient(error) => (FailureKind::Transient, error),
            TaskError::Interrupted(error) => (FailureKind::Interrupted, error),
            TaskError::Rejected(kind, error) => (FailureKind::Rejected(kind), error),
            TaskError::Build(error) => {
                return Err(End::of_plan(self.run, reason::TASK_BUILD, &error.to_string()));
            }
            TaskError::Fatal { reason, cause } => return Err(End::of_plan(self.run, reason, &cause)),
            TaskError::Held { cause, .. } => {
                return Err(End::of_plan(self.run, reason::NOT_ADOPTED, &cause));
            }
        };
        let message = format!("{} are not removed: {error}", not.what);
        out.effects.clear();
        out.waiting.push(message.clone());
        out.failed(TaskFailure { kind, message });
        Ok(false)
    }
}
