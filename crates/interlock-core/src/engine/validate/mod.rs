//! Validates an OperatorVersion before any of its plans runs.
//!
//! References and values must be valid, but may be absent: a package without plans, tasks or
//! templates is a legal object, of which no Instance can be made.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use go_template::yaml::Reader;

use super::tasks;
use super::tasks::task_kind::TemplateRef;
use crate::api::kudo::{OperatorVersionSpec, Parameter, Plan, Step, Task};
use crate::api::suggest;
use crate::package::functions;
use crate::package::params;

mod pipe_keys;

use pipe_keys::{Keys, MAX_COMPARED, TooMany};

/// Maximum of problems written out per package; the rest is counted.
const KEPT: usize = 64;

/// How many lost names are compared with the names that there are: an API request waits for it.
const COMPARED: usize = 4;

/// A problem of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageProblem {
    /// Path of the field, such as `spec.plans[deploy].phases[0].name`.
    pub field: String,
    /// The fault.
    pub what: String,
    /// The remedy.
    pub remedy: Cow<'static, str>,
}

/// A problem that is not formatted yet: a package can have more of them than fit into memory as
/// text.
pub struct Wrong<'f> {
    field: fmt::Arguments<'f>,
    what: fmt::Arguments<'f>,
    remedy: &'static str,
    lost: Option<LostName<'f>>,
}

/// A name that refers to nothing, and the names that there are.
struct LostName<'f> {
    name: &'f str,
    known: &'f dyn Fn() -> Vec<&'f str>,
}

impl Wrong<'_> {
    /// Formats it.
    pub fn write(&self) -> PackageProblem {
        let (field, what) = (self.field.to_string(), self.what.to_string());
        PackageProblem { field, what, remedy: Cow::Borrowed(self.remedy) }
    }

    /// Formats it, with the names that a lost one is likely to stand for.
    fn write_with_names(&self) -> PackageProblem {
        let likely = self.lost.as_ref().and_then(|lost| suggest::did_you_mean(lost.name, &(lost.known)()));
        let remedy = match likely {
            Some(likely) => Cow::Owned(format!("{}: {likely}", self.remedy)),
            None => Cow::Borrowed(self.remedy),
        };
        PackageProblem { remedy, ..self.write() }
    }
}

/// The first problems, and the number of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    /// The first, in the order of the fields.
    pub first: Vec<PackageProblem>,
    /// Number of the others.
    pub more: usize,
}

impl Problems {
    /// Adds one.
    pub fn add(&mut self, wrong: &Wrong<'_>) {
        if self.first.len() < COMPARED {
            self.first.push(wrong.write_with_names());
        } else if self.first.len() < KEPT {
            self.first.push(wrong.write());
        } else {
            self.more += 1;
        }
    }
}

/// The problems of a package.
pub fn problems(spec: &OperatorVersionSpec) -> Problems {
    let mut found = Problems::default();
    each(spec, &mut |wrong| found.add(wrong));
    found
}

/// Reports every problem of a package, in the order of its fields.
pub fn each(spec: &OperatorVersionSpec, tell: &mut dyn FnMut(&Wrong<'_>)) {
    let mut check = Check::new(spec, tell);
    check.templates();
    check.tasks();
    check.parameters();
    for (name, plan) in spec.plans.iter().flatten() {
        check.plan(name, plan);
    }
}

struct Check<'a, 't> {
    spec: &'a OperatorVersionSpec,
    /// By name; of several of one name the first.
    tasks: BTreeMap<&'a str, &'a Task>,
    /// Likewise.
    parameters: BTreeMap<&'a str, &'a Parameter>,
    keys: Keys<'a>,
    /// Decodes all defaults.
    reader: Reader<'static>,
    tell: &'t mut dyn FnMut(&Wrong<'_>),
}

/// The first of each name.
fn by_name<'a, T>(all: impl Iterator<Item = (Option<&'a String>, &'a T)>) -> BTreeMap<&'a str, &'a T> {
    let mut map = BTreeMap::new();
    for (name, one) in all {
        if let Some(name) = name {
            map.entry(name.as_str()).or_insert(one);
        }
    }
    map
}

impl<'a, 't> Check<'a, 't> {
    fn new(spec: &'a OperatorVersionSpec, tell: &'t mut dyn FnMut(&Wrong<'_>)) -> Self {
        let tasks = by_name(spec.tasks.iter().flatten().map(|task| (task.name.as_ref(), task)));
        let parameters = by_name(spec.parameters.iter().flatten().map(|p| (p.name.as_ref(), p)));
        let keys = Keys::new(&tasks);
        Self { spec, tasks, parameters, keys, reader: params::reader(), tell }
    }

    fn problem(&mut self, field: fmt::Arguments<'_>, what: fmt::Arguments<'_>, remedy: &'static str) {
        (self.tell)(&Wrong { field, what, remedy, lost: None });
    }

    /// Names that must be there and differ.
    fn name(
        &mut self,
        field: fmt::Arguments<'_>,
        name: Option<&'a str>,
        seen: &mut BTreeSet<&'a str>,
    ) -> &'a str {
        let name = name.unwrap_or_default();
        if name.is_empty() {
            self.problem(format_args!("{field}.name"), format_args!("has no name"), "give it a name");
        } else if !seen.insert(name) {
            let what = format_args!("the name \"{name}\" is used twice");
            self.problem(format_args!("{field}.name"), what, "give each its own name");
        }
        name
    }

    /// Templates that a task names must parse; others are never read.
    fn templates(&mut self) {
        let named: BTreeSet<&str> =
            self.spec.tasks.iter().flatten().flat_map(tasks::templates).map(|named| named.file).collect();
        for (file, text) in self.spec.templates.iter().flatten().filter(|(f, _)| named.contains(f.as_str())) {
            if let Err(error) = functions::parse(file, text) {
                let what = format_args!("line {}, {}: {error}", error.place.line, error.kind.construct());
                self.problem(
                    format_args!("spec.templates[{file}]"),
                    what,
                    "correct the template at that line",
                );
            }
        }
    }

    fn tasks(&mut self) {
        let mut names = BTreeSet::new();
        for (i, task) in self.spec.tasks.iter().flatten().enumerate() {
            let field = format_args!("spec.tasks[{i}]");
            self.name(field, task.name.as_deref(), &mut names);
            self.task(field, task);
        }
    }

    fn task(&mut self, field: fmt::Arguments<'_>, task: &'a Task) {
        if let Err(invalid) = tasks::build(task).and_then(|task| task.validate(&self.parameters)) {
            let at = &invalid.field;
            self.problem(format_args!("{field}.{at}"), format_args!("{invalid}"), invalid.remedy);
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
            });
        }
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

    fn plan(&mut self, name: &str, plan: &'a Plan) {
        let field = format_args!("spec.plans[{name}]");
        if name.is_empty() {
            self.problem(field, format_args!("a plan has no name"), "give the plan a name");
        }
        let mut phases = BTreeSet::new();
        for (i, phase) in plan.phases.iter().flatten().enumerate() {
            let field = format_args!("{field}.phases[{i}]");
            self.name(field, phase.name.as_deref(), &mut phases);
            let mut steps = BTreeSet::new();
            for (i, step) in phase.steps.iter().flatten().enumerate() {
                let field = format_args!("{field}.steps[{i}]");
                self.name(field, step.name.as_deref(), &mut steps);
                self.references(field, step);
            }
        }
        match self.keys.twice(plan) {
            Ok(twice) => {
                for key in twice {
                    let what = format_args!("the pipe key \"{key}\" is used twice in this plan");
                    self.problem(field, what, "give each file of the plan's Pipe tasks its own key");
                }
            }
            Err(TooMany) => {
                let what = format_args!(
                    "with this plan, the plans name more than {MAX_COMPARED} keys of Pipe tasks"
                );
                self.problem(field, what, "give the Pipe tasks fewer keys, or name them in fewer plans");
            }
        }
    }

    fn references(&mut self, field: fmt::Arguments<'_>, step: &Step) {
        for (i, name) in step.tasks.iter().flatten().enumerate() {
            if !self.tasks.contains_key(name.as_str()) {
                let tasks = &self.tasks;
                (self.tell)(&Wrong {
                    field: format_args!("{field}.tasks[{i}]"),
                    what: format_args!("there is no task \"{name}\""),
                    remedy: "add the task to spec.tasks, or name another",
                    lost: Some(LostName { name, known: &|| tasks.keys().copied().collect() }),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn found(spec: Value) -> Vec<String> {
        let spec: OperatorVersionSpec = serde_json::from_value(spec).unwrap();
        let found = problems(&spec);
        assert!(found.more == 0 && found.first.iter().all(|p| !p.remedy.is_empty()));
        found.first.into_iter().map(|p| format!("{}: {}", p.field, p.what)).collect()
    }

    #[rstest]
    #[case::nothing(json!({}))]
    #[case::null_lists(json!({"plans": {"deploy": {"phases": null}}, "tasks": null, "parameters": null}))]
    #[case::no_tasks(json!({"plans": {"deploy": {"phases": [{"name": "a", "steps": [{"name": "b"}]}]}}}))]
    #[case::odd_strategy(json!({"plans": {"deploy": {"strategy": "sequential"}}}))]
    #[case::a_broken_template_that_nobody_names(json!({"templates": {"notes.yaml": "{{ bad"}}))]
    #[case::same_names_elsewhere(json!({"plans": {
        "a": {"phases": [{"name": "p", "steps": [{"name": "s"}]}, {"name": "q", "steps": [{"name": "s"}]}]},
        "b": {"phases": [{"name": "p"}]},
    }}))]
    fn what_is_absent_is_not_judged(#[case] spec: Value) {
        assert_eq!(found(spec), Vec::<String>::new());
    }

    #[rstest]
    #[case::phase_without_name(json!({"phases": [{}]}), "spec.plans[deploy].phases[0].name: has no name")]
    #[case::step_without_name(json!({"phases": [{"name": "p", "steps": [{"name": ""}]}]}), "spec.plans[deploy].phases[0].steps[0].name: has no name")]
    #[case::phases_of_one_name(json!({"phases": [{"name": "p"}, {"name": "p"}]}), "spec.plans[deploy].phases[1].name: the name \"p\" is used twice")]
    #[case::steps_of_one_name(json!({"phases": [{"name": "p", "steps": [{"name": "s"}, {"name": "s"}]}]}), "spec.plans[deploy].phases[0].steps[1].name: the name \"s\" is used twice")]
    #[case::unknown_task(json!({"phases": [{"name": "p", "steps": [{"name": "s", "tasks": ["t"]}]}]}), "spec.plans[deploy].phases[0].steps[0].tasks[0]: there is no task \"t\"")]
    fn plans(#[case] plan: Value, #[case] expected: &str) {
        assert_eq!(found(json!({"plans": {"deploy": plan}})), [expected]);
    }

    #[rstest]
    #[case::no_name(json!({"kind": "Dummy"}), "spec.tasks[0].name: has no name")]
    #[case::no_kind(json!({"name": "t"}), "spec.tasks[0].kind: unknown task kind ")]
    #[case::unknown_kind(json!({"name": "t", "kind": "Exec"}), "spec.tasks[0].kind: unknown task kind Exec")]
    #[case::apply(json!({"name": "t", "kind": "Apply"}), "spec.tasks[0].spec.resources: task validation error: apply task 't' has an empty resource list. if that's what you need, use a Dummy task instead")]
    #[case::delete(json!({"name": "t", "kind": "Delete", "spec": {"resources": null}}), "spec.tasks[0].spec.resources: task validation error: delete task 't' has an empty resource list. if that's what you need, use a Dummy task instead")]
    #[case::toggle(json!({"name": "t", "kind": "Toggle", "spec": {"parameter": "P"}}), "spec.tasks[0].spec.resources: task validation error: toggle task has an empty resource list. if that's what you need, use a Dummy task instead")]
    #[case::toggle_what(json!({"name": "t", "kind": "Toggle", "spec": {"resources": ["a.yaml"]}}), "spec.tasks[0].spec.parameter: task validation error: Missing parameter to evaluate the Toggle Task")]
    #[case::toggle_unknown(json!({"name": "t", "kind": "Toggle", "spec": {"resources": ["a.yaml"], "parameter": "X"}}), "spec.tasks[0].spec.parameter: there is no parameter \"X\"")]
    #[case::toggle_list(json!({"name": "t", "kind": "Toggle", "spec": {"resources": ["a.yaml"], "parameter": "LIST"}}), "spec.tasks[0].spec.parameter: the parameter \"LIST\" is of type array")]
    #[case::toggle_text(json!({"name": "t", "kind": "Toggle", "spec": {"resources": ["a.yaml"], "parameter": "TEXT"}}), "spec.tasks[0].spec.parameter: the default of parameter \"TEXT\" is not true or false")]
    #[case::template(json!({"name": "t", "kind": "Apply", "spec": {"resources": ["a.yaml", "b.yaml"]}}), "spec.tasks[0].spec.resources[1]: there is no template \"b.yaml\"")]
    #[case::pipe_pod(json!({"name": "t", "kind": "Pipe", "spec": {"pod": "b.yaml", "pipe": [{"file": "/f", "kind": "Secret", "key": "k"}]}}), "spec.tasks[0].spec.pod: there is no template \"b.yaml\"")]
    #[case::pipe_no_pod(json!({"name": "t", "kind": "Pipe", "spec": {"pipe": [{"file": "/f", "kind": "Secret", "key": "k"}]}}), "spec.tasks[0].spec.pod: task validation error: pipe task has no pod template")]
    #[case::pipe_files(json!({"name": "t", "kind": "Pipe", "spec": {"pod": "a.yaml"}}), "spec.tasks[0].spec.pipe: task validation error: pipe task has an empty pipe files list")]
    #[case::pipe_both(json!({"name": "t", "kind": "Pipe", "spec": {"pod": "a.yaml", "pipe": [{"file": "/f", "envFile": "/f", "kind": "Secret", "key": "k"}]}}), "spec.tasks[0].spec.pipe[0]: task validation error: pipe file 0 must have either 'file' or 'envFile' field set but not both")]
    #[case::pipe_kind(json!({"name": "t", "kind": "Pipe", "spec": {"pod": "a.yaml", "pipe": [{"file": "/f", "kind": "Pod", "key": "k"}]}}), "spec.tasks[0].spec.pipe[0].kind: task validation error: invalid pipe kind (must be Secret or ConfigMap): pipe file 0")]
    #[case::pipe_key(json!({"name": "t", "kind": "Pipe", "spec": {"pod": "a.yaml", "pipe": [{"file": "/f", "kind": "Secret", "key": "a b"}]}}), "spec.tasks[0].spec.pipe[0].key: task validation error: invalid pipe key (only letters, numbers and _ and - are allowed): pipe file 0")]
    #[case::child(json!({"name": "t", "kind": "KudoOperator", "spec": {"operatorVersion": "1"}}), "spec.tasks[0].spec.package: task validation error: kudo operator task 't' has an empty package name")]
    #[case::child_version(json!({"name": "t", "kind": "KudoOperator", "spec": {"package": "p"}}), "spec.tasks[0].spec.operatorVersion: task validation error: kudo operator task 't' has an empty operatorVersion")]
    #[case::child_file(json!({"name": "t", "kind": "KudoOperator", "spec": {"package": "p", "operatorVersion": "1", "parameterFile": "b.yaml"}}), "spec.tasks[0].spec.parameterFile: there is no template \"b.yaml\"")]
    fn tasks(#[case] task: Value, #[case] expected: &str) {
        let parameters = [
            json!({"name": "P", "default": "true"}),
            json!({"name": "LIST", "value-type": "array"}),
            json!({"name": "TEXT", "default": "on"}),
        ];
        let spec = json!({"tasks": [task], "templates": {"a.yaml": ""}, "parameters": parameters});
        assert_eq!(found(spec), [expected]);
    }

    #[rstest]
    #[case::no_name(json!([{}]), "spec.parameters[0].name: has no name")]
    #[case::twice(json!([{"name": "A"}, {"name": "A"}]), "spec.parameters[1].name: the name \"A\" is used twice")]
    #[case::default(json!([{"name": "A", "value-type": "integer", "default": "x"}]), "spec.parameters[0].default: \"x\" is not a whole number, such as 3")]
    #[case::enumeration(json!([{"name": "A", "enum": ["a", "b"], "default": "c"}]), "spec.parameters[0].default: \"c\" is not one of [a b]")]
    #[case::trigger(json!([{"name": "A", "trigger": "lost"}]), "spec.parameters[0].trigger: there is no plan \"lost\"")]
    fn parameters(#[case] listed: Value, #[case] expected: &str) {
        assert_eq!(found(json!({"parameters": listed, "plans": {"deploy": {}}})), [expected]);
    }

    /// The names that there are help where one refers to nothing.
    #[rstest]
    #[case::task(
        json!({"plans": {"deploy": {"phases": [{"name": "p", "steps": [{"name": "s", "tasks": ["depoly"]}]}]}},
               "tasks": [{"name": "deploy", "kind": "Dummy"}, {"name": "backup", "kind": "Dummy"}]}),
        "add the task to spec.tasks, or name another: did you mean deploy?"
    )]
    #[case::plan(
        json!({"plans": {"deploy": {}}, "parameters": [{"name": "A", "trigger": "Deploy"}]}),
        "add the plan to spec.plans, or name another: did you mean deploy?"
    )]
    #[case::template(
        json!({"templates": {"service.yaml": ""}, "tasks": [{"name": "t", "kind": "Apply", "spec": {"resources": ["servce.yaml"]}}]}),
        "add the template to spec.templates, or name another: did you mean service.yaml?"
    )]
    #[case::nothing_like_it(
        json!({"plans": {"deploy": {}}, "parameters": [{"name": "A", "trigger": "lost"}]}),
        "add the plan to spec.plans, or name another"
    )]
    fn a_lost_name_leads_to_the_one_that_is_meant(#[case] spec: Value, #[case] remedy: &str) {
        let found = problems(&serde_json::from_value(spec).unwrap());
        assert_eq!(found.first[0].remedy, remedy);
    }

    /// Problems beyond a readable number are counted.
    #[test]
    fn the_first_problems_are_written_out() {
        let lost: Vec<String> = (0..100).map(|i| format!("t{i}")).collect();
        let steps = [json!({"name": "s", "tasks": lost})];
        let spec = json!({"plans": {"deploy": {"phases": [{"name": "p", "steps": steps}]}}});
        let found = problems(&serde_json::from_value(spec).unwrap());
        assert_eq!((found.first.len(), found.more), (KEPT, 100 - KEPT));
        assert_eq!(found.first[KEPT - 1].what, "there is no task \"t63\"");
    }

    #[test]
    fn of_two_parameters_of_one_name_a_toggle_means_the_first() {
        let toggle =
            json!({"name": "t", "kind": "Toggle", "spec": {"resources": ["a.yaml"], "parameter": "P"}});
        let parameters =
            [json!({"name": "P", "default": "true"}), json!({"name": "P", "value-type": "array"})];
        let spec = json!({"tasks": [toggle], "templates": {"a.yaml": ""}, "parameters": parameters});
        assert_eq!(found(spec), ["spec.parameters[1].name: the name \"P\" is used twice"]);
    }

    #[test]
    fn a_template_is_named_with_line_and_construct() {
        let task = json!({"name": "t", "kind": "Apply", "spec": {"resources": ["a.yaml"]}});
        let [problem] =
            found(json!({"tasks": [task], "templates": {"a.yaml": "a: 1\nb: {{ bad"}})).try_into().unwrap();
        assert!(problem.starts_with("spec.templates[a.yaml]: line "), "{problem}");
    }

    #[test]
    fn pipe_keys_of_a_plan_differ() {
        let pipe = |name: &str| {
            let pipe = [json!({"file": "/f", "kind": "Secret", "key": "k"})];
            json!({"name": name, "kind": "Pipe", "spec": {"pod": "a.yaml", "pipe": pipe}})
        };
        let steps = [json!({"name": "s", "tasks": ["one", "two"]})];
        let plans = json!({"deploy": {"phases": [{"name": "p", "steps": steps}]}});
        let spec = json!({"tasks": [pipe("one"), pipe("two")], "templates": {"a.yaml": ""}, "plans": plans});
        assert_eq!(found(spec), ["spec.plans[deploy]: the pipe key \"k\" is used twice in this plan"]);
    }
}
