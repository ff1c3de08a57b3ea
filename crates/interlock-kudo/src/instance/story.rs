//! What `interlock why` tells of an Instance, and of what its plans wrote.

use std::fmt::Write as _;

use interlock_core::api::meta;
use interlock_core::api::meta::KUDO_GROUP;
use interlock_core::api::object::{annotation, meta_str};
use interlock_core::kinds::capabilities::INSTANCES;
use interlock_core::kinds::story::{
    Asked, Reading, Story, Subject, Told, Which, became, current_state, one_line,
};
use serde::Deserialize as _;
use serde_json::Value;

use super::change::history;
use super::run_summary::RunSummary;
use crate::api::{ExecutionStatus, Instance, OperatorVersionSpec};
use crate::names::OPERATOR_VERSION;

pub(super) static STORY: Story = Story {
    capability: INSTANCES.name,
    does: "judges its changes, runs its plans and keeps its status",
    does_to_parts: "brings it back to what its plan wrote whenever a plan of the Instance runs",
    next,
    tell,
};

/// The OperatorVersion that it refers to.
fn next(instance: &Value, read: &[Reading]) -> Option<Asked> {
    let reference = &instance["spec"]["operatorVersion"];
    let namespace = reference["namespace"].as_str().filter(|namespace| !namespace.is_empty());
    let namespace = namespace.or(meta_str(instance, "namespace"))?.to_owned();
    let which = Which::Name(reference["name"].as_str()?.to_owned());
    read.is_empty().then_some(Asked { group: KUDO_GROUP, kind: OPERATOR_VERSION.kind, namespace, which })
}

fn tell(subject: &Subject<'_>) -> Told {
    let package = subject.readings.iter().flatten().flatten().next();
    let package = package.and_then(|package| OperatorVersionSpec::deserialize(&package["spec"]).ok());
    let wrote = written_by(subject.object).map(|step| wrote(subject.object, step, package.as_ref()));
    let Ok(instance) = Instance::deserialize(subject.root) else { return Told { wrote, ..Told::default() } };
    let whose = subject.whose();
    let conditions = || instance.status.iter().flat_map(|status| &status.conditions);
    let mut is = Vec::new();
    if subject.is_root() {
        is.push(describe_package(&instance, package));
        is.extend(running(&instance));
        is.extend(conditions().filter_map(current_state));
    }
    let annotations = instance.metadata.annotations.as_ref();
    let runs = history::read(annotations.and_then(|all| all.get(meta::HISTORY)).map(String::as_str));
    let ended = runs.into_iter().filter_map(|run| {
        let request: String = run.asked.iter().map(request).collect();
        Some((run.end?, format!("{whose}plan {} ended {}{request}", run.plan, run.result)))
    });
    let happened = ended.chain(conditions().map(|condition| became(&whose, condition))).collect();
    Told { is, wrote, happened, ..Told::default() }
}

fn describe_package(instance: &Instance, package: Option<OperatorVersionSpec>) -> String {
    let reference = instance.spec.operator_version.clone().unwrap_or_default();
    let Some(spec) = package else {
        return format!("an Instance of OperatorVersion {}", reference.name());
    };
    let operator = spec.operator.as_ref().map_or(reference.name(), |operator| operator.name());
    let app = spec.app_version.filter(|app| !app.is_empty());
    let app = app.map_or_else(String::new, |app| format!(", application {app}"));
    format!("an Instance of the package {operator} {}{app}", spec.version.unwrap_or_default())
}

/// The plan that is scheduled or runs, and its unfinished steps.
fn running(instance: &Instance) -> Vec<String> {
    let Some(run) = RunSummary::of(instance) else { return Vec::new() };
    let open = run
        .steps
        .iter()
        .filter(|(_, step)| step.status.is_running() || step.status == ExecutionStatus::FatalError);
    let steps = open.map(|(phase, step)| {
        let why = step.message.as_deref().map_or_else(String::new, |text| format!(": {}", one_line(text)));
        format!("phase {}, step {} is {}{why}", phase.name, step.name, step.status)
    });
    std::iter::once(format!("plan {} is {}", run.plan, run.status)).chain(steps).collect()
}

fn request(request: &history::CarriedOutRequest) -> String {
    let who = if request.who.is_empty() { "somebody" } else { &request.who };
    format!("; {who} asked for {}: {}", request.verb, one_line(&request.reason))
}

/// The plan, phase and step that last wrote an object, from its annotations.
fn written_by(object: &Value) -> Option<[&str; 3]> {
    let of = |key| annotation(object, key).filter(|word| !word.is_empty());
    Some([of(meta::PLAN)?, of(meta::PHASE)?, of(meta::STEP)?])
}

fn wrote(object: &Value, step: [&str; 3], package: Option<&OperatorVersionSpec>) -> String {
    let [plan, phase, name] = step;
    let mut does = format!("wrote it last: plan {plan}, phase {phase}, step {name}");
    if let Some(tasks) = package.and_then(|package| tasks_of(package, step)) {
        let _ = write!(does, ", {tasks}");
    }
    let run = annotation(object, meta::PLAN_UID).unwrap_or_default();
    let _ = write!(does, " (run {run})");
    does
}

/// The tasks of a step, as the package of the Instance now lists them.
fn tasks_of(package: &OperatorVersionSpec, [plan, phase, step]: [&str; 3]) -> Option<String> {
    let plan = package.plans.as_ref()?.get(plan)?;
    let mut phases = plan.phases.iter().flatten();
    let phase = phases.find(|found| found.name.as_deref() == Some(phase))?;
    let mut steps = phase.steps.iter().flatten();
    let step = steps.find(|found| found.name.as_deref() == Some(step))?;
    let tasks = step.tasks.as_ref().filter(|tasks| !tasks.is_empty())?;
    let noun = if tasks.len() == 1 { "task" } else { "one of the tasks" };
    Some(format!("{noun} {}", tasks.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The entry of a plan that is scheduled again is that of its last run.
    #[test]
    fn a_plan_that_is_scheduled_again_has_no_open_steps_yet() {
        let step = json!({"name": "apply", "status": "FATAL_ERROR", "message": "forbidden"});
        let failed = json!({"uid": "before", "status": "FATAL_ERROR", "phases": [{"name": "all", "status": "FATAL_ERROR", "steps": [step]}]});
        let instance = |uid: &str| {
            let object = json!({
                "metadata": {"name": "demo"},
                "spec": {"planExecution": {"planName": "deploy", "uid": uid}},
                "status": {"planStatus": {"deploy": failed}},
            });
            Instance::deserialize(object).unwrap()
        };
        assert_eq!(running(&instance("now")), ["plan deploy is scheduled"]);
    }
}
