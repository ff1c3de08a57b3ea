//! The ways of an Instance to an OperatorVersion, and what it meets on them whatever its parameters.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::api::meta::plan::DEPLOY;

use crate::api::{OperatorVersionSpec, Plan};
use crate::package::trigger;

/// The ways of an Instance to an OperatorVersion, each of which runs a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ways {
    /// It is created: `deploy`.
    created: bool,
    /// It is upgraded: `upgrade`, else `update`, else `deploy`.
    upgraded: bool,
}

impl Ways {
    pub(super) const NONE: Self = Self { created: false, upgraded: false };

    /// Those that there are.
    pub(super) fn to(spec: &OperatorVersionSpec) -> Self {
        let has = |plan| spec.plans.as_ref().is_some_and(|plans| plans.contains_key(plan));
        Self { created: has(DEPLOY), upgraded: trigger::upgrade_plan_of(spec).is_some() }
    }

    pub(super) fn is_none(self) -> bool {
        self == Self::NONE
    }

    pub(super) fn add(&mut self, others: Self) {
        self.created |= others.created;
        self.upgraded |= others.upgraded;
    }
}

/// On which ways plans and tasks are met.
pub(super) struct Met<'a> {
    upgrade: Option<&'static str>,
    tasks: BTreeMap<&'a str, Ways>,
}

impl<'a> Met<'a> {
    pub(super) fn of(spec: &'a OperatorVersionSpec) -> Self {
        let mut met = Self { upgrade: trigger::upgrade_plan_of(spec), tasks: BTreeMap::new() };
        for (name, plan) in spec.plans.iter().flatten() {
            let ways = met.plan(name);
            if !ways.is_none() {
                tasks(plan).for_each(|task| met.tasks.entry(task).or_default().add(ways));
            }
        }
        met
    }

    pub(super) fn plan(&self, name: &str) -> Ways {
        Ways { created: name == DEPLOY, upgraded: self.upgrade == Some(name) }
    }

    pub(super) fn task(&self, name: &str) -> Ways {
        self.tasks.get(name).copied().unwrap_or_default()
    }
}

/// The tasks that a plan carries out in any case: of several phases or steps of one name, those of the first.
fn tasks(plan: &Plan) -> impl Iterator<Item = &str> {
    let mut phases = BTreeSet::new();
    let phases = plan.phases.iter().flatten().filter(move |phase| phases.insert(phase.name.as_deref()));
    let steps = phases.flat_map(|phase| {
        let mut steps = BTreeSet::new();
        phase.steps.iter().flatten().filter(move |step| steps.insert(step.name.as_deref()))
    });
    steps.flat_map(|step| step.tasks.iter().flatten()).map(String::as_str)
}
