//! Renders every template of a package as its plans would: with the defaults, with both sides of booleans and with
//! each value of enumerations. Package -> what would fail, and what nothing uses.

use std::collections::{BTreeMap, BTreeSet};

use go_template::Interrupt;
use interlock_core::api::values::Values;

use super::errors::TaskError;
use super::manifests;
use super::render::TaskContext;
use super::render_cache::{Parameters, Rendered};
use super::run::{InstanceId, PipeHelper, Run};
use super::seed::Seed;
use super::tasks;
use crate::package::{Package, values as parameters};

mod examples;
mod references;
#[cfg(test)]
mod tests;

use examples::Trial;
use references::Used;

/// Uid of an Instance and of a run that do not exist.
const NO_UID: &str = "00000000-0000-0000-0000-000000000000";

/// What a package is like when it is rendered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrialFindings {
    /// What fails with the defaults.
    pub errors: Vec<String>,
    /// What fails with other values, and what nothing uses.
    pub warnings: Vec<String>,
}

/// The bounds of a trial.
#[derive(Clone, Copy, Debug)]
pub struct TrialLimits<'a> {
    pub task: &'a dyn Interrupt,
    /// Of all together.
    pub all: &'a dyn Interrupt,
}

/// Renders a package.
pub fn findings(package: &Package, seed: Seed<'_>, limits: TrialLimits<'_>) -> TrialFindings {
    limits.all.begin();
    let used = Used::of(package);
    let mut trials = Trials { package, seed, limits, used: &used, seen: BTreeSet::new(), ended: false };
    let mut found = TrialFindings::default();
    let (base, others) = examples::of(package);
    trials.carry_out(&base, None, &mut found);
    for trial in &others {
        trials.carry_out(&base, Some(trial), &mut found);
    }
    if trials.ended {
        let text = "the time was not enough to render the templates with every value of booleans and enums";
        found.warnings.push(text.to_owned());
    }
    let reported = |at: &str| found.errors.iter().chain(&found.warnings).any(|text| text.contains(at));
    let unknown = used.unknown(package, reported);
    found.warnings.extend(unknown);
    found.warnings.extend(used.unused(package));
    found
}

struct Trials<'a> {
    package: &'a Package,
    seed: Seed<'a>,
    limits: TrialLimits<'a>,
    used: &'a Used,
    /// Causes that were reported.
    seen: BTreeSet<String>,
    ended: bool,
}

impl Trials<'_> {
    /// Renders every plan with the base, and perhaps with one other value: then only what reads that one.
    fn carry_out(
        &mut self,
        base: &BTreeMap<String, String>,
        trial: Option<&Trial>,
        found: &mut TrialFindings,
    ) {
        let mut given = base.clone();
        given.extend(trial.map(|trial| (trial.name.clone(), trial.value.clone())));
        let values: Values<'_> =
            given.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into())).collect();
        let params = match parameters::parameters(self.package, &values) {
            Ok(params) => params,
            Err(error) => {
                let cause = error.to_string();
                found.errors.extend(self.seen.insert(cause.clone()).then_some(cause));
                return;
            }
        };
        for plan in self.package.plan_names() {
            for (file, cause) in self.plan(plan, &values, &params, trial) {
                if !self.seen.insert(cause.clone()) {
                    continue;
                }
                let made_up = base.iter().find(|(name, _)| self.used.reads(&file, name));
                match (trial, made_up) {
                    (Some(Trial { name, value }), _) => {
                        found.warnings.push(format!("{cause}; with {name}={value}"));
                    }
                    (None, Some((name, value))) => {
                        found.warnings.push(format!("{cause}; with the example {name}={value}"));
                    }
                    (None, None) => found.errors.push(cause),
                }
            }
        }
    }

    /// What fails of a plan: the file, empty for the whole task, and the cause.
    fn plan(
        &mut self,
        plan: &str,
        values: &Values<'_>,
        params: &Parameters,
        trial: Option<&Trial>,
    ) -> Vec<(String, String)> {
        let instance = InstanceId {
            namespace: "default".to_owned(),
            name: "example".to_owned(),
            uid: NO_UID.to_owned(),
        };
        let cache = Rendered::default();
        let run = Run {
            package: self.package,
            instance: &instance,
            plan,
            uid: NO_UID,
            values,
            transient: &[],
            helper: PipeHelper::kudo(),
            seed: Some(self.seed),
            rendered: &cache,
            interrupt: self.limits.task,
        };
        let mut failed = Vec::new();
        for context in TaskContext::of_plan(&run, params) {
            self.ended |= self.limits.all.interrupted().is_some();
            if self.ended {
                break;
            }
            failed.extend(self.task(&context, trial));
        }
        failed
    }

    /// What fails of a task. What is wrong with its definition, or does not parse, is reported elsewhere.
    fn task(&self, context: &TaskContext<'_>, trial: Option<&Trial>) -> Vec<(String, String)> {
        let Some(task) = self.package.task(context.task) else { return Vec::new() };
        let Ok(tasker) = tasks::build(task) else { return Vec::new() };
        let toggles = |trial: &Trial| references::toggle(task) == Some(trial.name.as_str());
        let reads = |file: &str| trial.is_none_or(|it| toggles(it) || self.used.reads(file, &it.name));
        let wanted = |file: &str| self.used.parses(file) && reads(file);
        if !tasks::templates(task).iter().any(|named| wanted(named.file)) {
            return Vec::new();
        }
        let failed = tasker.errors(context, &wanted).into_iter();
        // One that was interrupted comes nearer to its end with each try.
        let failed = failed.filter(|(_, error)| !matches!(error, TaskError::Interrupted(_)));
        failed.map(|(file, error)| (file, manifests::text(error))).collect()
    }
}
