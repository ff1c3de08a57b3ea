//! Validates an OperatorVersion before any of its plans runs.
//!
//! What need not fail is a warning: a plan that nothing triggers, a default that Instances replace. KUDO stores
//! such an OperatorVersion, and carries out the rest of it. An error is what every Instance fails on that comes
//! to the OperatorVersion. What is absent is not judged: a package without plans, tasks or templates is a legal
//! object, of which no Instance can be made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use go_template::yaml::Reader;

use super::tasks;
use super::tasks::task_kind::TemplateRef;
use crate::api::{OperatorVersionSpec, Parameter, Plan, Step, Task};
use crate::package::functions;
use crate::package::params;
use crate::package::record::PlanRecord;

mod pipe_keys;
mod problem;
mod ways;

use pipe_keys::{Keys, MAX_COMPARED, TooMany};
use problem::LostName;
pub use problem::{Collector, Findings, PackageProblem, Problems, Wrong};
use ways::{Met, Ways};

/// The problems of a package.
pub fn findings(spec: &OperatorVersionSpec) -> Findings {
    let mut found = Collector::default();
    each(spec, &mut |wrong| found.add(wrong));
    found.findings(spec)
}

/// Reports every problem of a package, in the order of its fields.
pub fn each(spec: &OperatorVersionSpec, tell: &mut dyn FnMut(&Wrong<'_>)) {
    let mut check = Check::new(spec, tell);
    check.extent();
    check.templates();
    check.tasks();
    check.parameters();
    for (name, plan) in spec.plans.iter().flatten() {
        check.plan(name, plan);
    }
}

struct Check<'a, 't> {
    spec: &'a OperatorVersionSpec,
    met: Met<'a>,
    /// By name; of several of one name the first.
    tasks: BTreeMap<&'a str, &'a Task>,
    /// By name; of several of one name the last, whose default and type a run takes.
    parameters: BTreeMap<&'a str, &'a Parameter>,
    keys: Keys<'a>,
    /// Decodes all defaults.
    reader: Reader<'static>,
    tell: &'t mut dyn FnMut(&Wrong<'_>),
}

impl<'a, 't> Check<'a, 't> {
    fn new(spec: &'a OperatorVersionSpec, tell: &'t mut dyn FnMut(&Wrong<'_>)) -> Self {
        let mut tasks = BTreeMap::new();
        for task in spec.tasks.iter().flatten() {
            task.name.as_deref().map(|name| tasks.entry(name).or_insert(task));
        }
        let parameters = spec.parameters.iter().flatten();
        let parameters = parameters.filter_map(|p| Some((p.name.as_deref()?, p))).collect();
        let keys = Keys::new(&tasks);
        Self { spec, met: Met::of(spec), tasks, parameters, keys, reader: params::reader(), tell }
    }

    /// A problem that need not fail.
    fn problem(&mut self, field: fmt::Arguments<'_>, what: fmt::Arguments<'_>, remedy: &'static str) {
        self.blocking(field, what, remedy, Ways::NONE);
    }

    fn blocking(
        &mut self,
        field: fmt::Arguments<'_>,
        what: fmt::Arguments<'_>,
        remedy: &'static str,
        blocks: Ways,
    ) {
        (self.tell)(&Wrong { field, what, remedy, lost: None, blocks });
    }

    /// Names that should be there and differ; whether this one is the first of its name, which is the one that
    /// is used.
    fn name(
        &mut self,
        field: fmt::Arguments<'_>,
        name: Option<&'a str>,
        seen: &mut BTreeSet<&'a str>,
    ) -> bool {
        let name = name.unwrap_or_default();
        if name.is_empty() {
            self.problem(format_args!("{field}.name"), format_args!("has no name"), "give it a name");
        } else if !seen.insert(name) {
            let what = format_args!("the name \"{name}\" is used twice");
            self.problem(format_args!("{field}.name"), what, "give each its own name");
            return false;
        }
        true
    }

    /// The record of what runs has to fit into the status of an Instance.
    fn extent(&mut self) {
        let Some(excess) = PlanRecord::of(self.spec).excess() else { return };
        let remedy = "divide the package into several, or its plans into fewer steps of more tasks";
        self.blocking(format_args!("spec.plans"), format_args!("{excess}"), remedy, Ways::to(self.spec));
    }

    /// Templates that a task names must parse; others are never read.
    fn templates(&mut self) {
        let mut named: BTreeMap<&str, Ways> = BTreeMap::new();
        for (name, task) in &self.tasks {
            for TemplateRef { file, .. } in tasks::templates(task) {
                named.entry(file).or_default().add(self.met.task(name));
            }
        }
        for (file, text) in self.spec.templates.iter().flatten() {
            let Some(blocks) = named.get(file.as_str()) else { continue };
            if let Err(error) = functions::parse(file, text) {
                let what = format_args!("line {}, {}: {error}", error.place.line, error.kind.construct());
                let field = format_args!("spec.templates[{file}]");
                self.blocking(field, what, "correct the template at that line", *blocks);
            }
        }
    }

    fn tasks(&mut self) {
        let mut names = BTreeSet::new();
        for (i, task) in self.spec.tasks.iter().flatten().enumerate() {
            let field = format_args!("spec.tasks[{i}]");
            let used = self.name(field, task.name.as_deref(), &mut names);
            let name = task.name.as_deref().filter(|_| used);
            self.task(field, task, name.map_or(Ways::NONE, |name| self.met.task(name)));
        }
    }

    fn task(&mut self, field: fmt::Arguments<'_>, task: &'a Task, met: Ways) {
        let built = tasks::build(task).and_then(|task| {
            task.validate(&self.parameters)?;
            Ok(task.doubt(&self.parameters))
        });
        let (invalid, blocks) = match built {
            Ok(doubt) => (doubt, Ways::NONE),
            Err(invalid) => (Some(invalid), met),
        };
        if let Some(invalid) = invalid {
            let at = &invalid.field;
            self.blocking(format_args!("{field}.{at}"), format_args!("{invalid}"), invalid.remedy, blocks);
        }
        for TemplateRef { field: at, file } in tasks::templates(task) {
            if !self.spec.templates.as_ref().is_some_and(|templates| templates.contains_key(file)) {
                let templates = self.spec.templates.as_ref();
                (self.tell)(&Wrong {
                    field: format_args!("{field}.spec.{at}"),
                    what: format_args!("there is no template \"{file}\""),
                    remedy: "add the template to spec.templates, or name another",
                    lost: Some(LostName {
                        name: file,
                        known: &|| templates.into_iter().flatten().map(|(name, _)| name.as_str()).collect(),
                    }),
                    blocks: met,
                });
            }
        }
    }

    fn parameters(&mut self) {
        let mut names = BTreeSet::new();
        for (i, parameter) in self.spec.parameters.iter().flatten().enumerate() {
            let field = format_args!("spec.parameters[{i}]");
            self.name(field, parameter.name.as_deref(), &mut names);
            self.parameter(field, parameter);
        }
    }

    fn parameter(&mut self, field: fmt::Arguments<'_>, parameter: &Parameter) {
        let trigger = parameter.trigger.as_deref().filter(|trigger| !trigger.is_empty());
        if let Some(plan) = trigger
            && !self.spec.plans.as_ref().is_some_and(|plans| plans.contains_key(plan))
        {
            let plans = self.spec.plans.as_ref();
            (self.tell)(&Wrong {
                field: format_args!("{field}.trigger"),
                what: format_args!("there is no plan \"{plan}\""),
                remedy: "add the plan to spec.plans, or name another",
                lost: Some(LostName {
                    name: plan,
                    known: &|| plans.into_iter().flatten().map(|(name, _)| name.as_str()).collect(),
                }),
                // A change of the parameter is refused.
                blocks: Ways::NONE,
            });
        }
        self.value_type(field, parameter);
        let default = parameter.default.as_deref().filter(|default| !default.is_empty());
        if let Some(problem) =
            default.and_then(|default| params::check(&self.reader, parameter, Some(default)))
        {
            self.problem(
                format_args!("{field}.default"),
                format_args!("{}", problem.detail),
                "set a default of the parameter's type and enum",
            );
        }
    }

    /// A type that is not known takes any value. A value of the enum that has another type can never be given.
    fn value_type(&mut self, field: fmt::Arguments<'_>, parameter: &Parameter) {
        let Some(value_type) = parameter.value_type.as_deref().filter(|it| !it.is_empty()) else { return };
        if !params::TYPES.contains(&value_type) {
            return (self.tell)(&Wrong {
                field: format_args!("{field}.value-type"),
                what: format_args!("there is no type \"{value_type}\""),
                remedy: "write string, integer, number, boolean, array or map",
                lost: Some(LostName { name: value_type, known: &|| params::TYPES.to_vec() }),
                blocks: Ways::NONE,
            });
        }
        let typed = Parameter { enum_: None, ..parameter.clone() };
        for (i, value) in parameter.enum_.iter().flatten().enumerate() {
            if let Some(problem) = params::check(&self.reader, &typed, Some(value)) {
                let what = format_args!("{}", problem.detail);
                self.problem(format_args!("{field}.enum[{i}]"), what, "list values of the parameter's type");
            }
        }
    }

    fn plan(&mut self, name: &str, plan: &'a Plan) {
        let field = format_args!("spec.plans[{name}]");
        if name.is_empty() {
            self.problem(field, format_args!("a plan has no name"), "give the plan a name");
        }
        let met = self.met.plan(name);
        let mut phases = BTreeSet::new();
        for (i, phase) in plan.phases.iter().flatten().enumerate() {
            let field = format_args!("{field}.phases[{i}]");
            let used = self.name(field, phase.name.as_deref(), &mut phases);
            let mut steps = BTreeSet::new();
            for (i, step) in phase.steps.iter().flatten().enumerate() {
                let field = format_args!("{field}.steps[{i}]");
                let used = self.name(field, step.name.as_deref(), &mut steps) && used;
                self.references(field, step, if used { met } else { Ways::NONE });
            }
        }
        match self.keys.twice(plan) {
            Ok(twice) => {
                for key in twice {
                    let what = format_args!("the pipe key \"{key}\" is used twice in this plan");
                    self.blocking(field, what, "give each file of the plan's Pipe tasks its own key", met);
                }
            }
            Err(TooMany) => {
                let what = format_args!(
                    "with this plan, the plans name more than {MAX_COMPARED} keys of Pipe tasks, which are not \
                     compared"
                );
                self.problem(field, what, "give the Pipe tasks fewer keys, or name them in fewer plans");
            }
        }
    }

    fn references(&mut self, field: fmt::Arguments<'_>, step: &Step, blocks: Ways) {
        for (i, name) in step.tasks.iter().flatten().enumerate() {
            if !self.tasks.contains_key(name.as_str()) {
                let tasks = &self.tasks;
                (self.tell)(&Wrong {
                    field: format_args!("{field}.tasks[{i}]"),
                    what: format_args!("there is no task \"{name}\""),
                    remedy: "add the task to spec.tasks, or name another",
                    lost: Some(LostName { name, known: &|| tasks.keys().copied().collect() }),
                    blocks,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
