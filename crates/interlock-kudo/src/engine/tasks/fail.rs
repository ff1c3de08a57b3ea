//! The Fail task: ends the run with a message. Only tests have it: it shows that a kind of task is
//! one file.

use std::collections::BTreeMap;

use super::task_kind;
use super::task_kind::{TaskKind, Tasker, TemplateRef};
use crate::api::{Parameter, Task, TaskSpec};
use crate::engine::errors::{InvalidTask, TaskError};
use crate::engine::lookup::{Observed, TaskProgress};
use crate::engine::ownership::TaskOwners;
use crate::engine::render::TaskContext;

/// The kind of task.
pub(super) struct Fail;

/// The parameter whose value is the message.
#[derive(Debug)]
struct FailTask<'a> {
    parameter: &'a str,
}

impl TaskKind for Fail {
    fn name(&self) -> &'static str {
        "Fail"
    }

    fn build<'a>(&self, task: &'a Task) -> Result<Box<dyn Tasker + 'a>, InvalidTask> {
        let parameter = task_kind::text(task, |spec| spec.parameter.as_ref()).ok_or_else(|| {
            InvalidTask::new("spec.parameter", "the Fail task has no message", "name a parameter")
        })?;
        Ok(Box::new(FailTask { parameter }))
    }

    fn templates<'a>(&self, _spec: &'a TaskSpec) -> Vec<TemplateRef<'a>> {
        Vec::new()
    }
}

impl Tasker for FailTask<'_> {
    fn validate(&self, parameters: &BTreeMap<&str, &Parameter>) -> Result<(), InvalidTask> {
        let name = self.parameter;
        let unknown =
            || InvalidTask::new("spec.parameter", format!("there is no parameter \"{name}\""), "add it");
        parameters.get(name).map(drop).ok_or_else(unknown)
    }

    fn advance(
        &self,
        context: &TaskContext<'_>,
        _observed: &Observed,
        _owners: &mut TaskOwners,
    ) -> Result<TaskProgress, TaskError> {
        let message = match context.params.get(self.parameter) {
            Some(go_template::Value::String(text)) => text.to_string(),
            _ => String::new(),
        };
        Err(TaskError::fatal("FailTaskError", message))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use crate::api::ExecutionStatus::FatalError;
    use crate::engine::advance::advance;
    use crate::engine::advance::sim::Fixture;
    use crate::engine::lookup::Observed;
    use crate::engine::validate;

    fn package(parameter: &str) -> Value {
        let steps = json!([{"name": "stop", "tasks": ["fail"]}]);
        json!({
            "plans": {"deploy": {"phases": [{"name": "main", "steps": steps}]}},
            "tasks": [{"name": "fail", "kind": "Fail", "spec": {"parameter": parameter}}],
            "parameters": [{"name": "WHY", "default": "out of stock"}],
        })
    }

    #[rstest]
    #[case::valid("WHY", &[])]
    #[case::without("", &["spec.tasks[0].spec.parameter: the Fail task has no message"])]
    #[case::unknown("LOST", &["spec.tasks[0].spec.parameter: there is no parameter \"LOST\""])]
    fn a_package_with_it_is_validated(#[case] parameter: &str, #[case] expected: &[&str]) {
        let found = validate::findings(&serde_json::from_value(package(parameter)).unwrap());
        let problems: Vec<String> =
            found.errors.first.into_iter().map(|p| format!("{}: {}", p.field, p.what)).collect();
        assert_eq!(problems, expected);
    }

    #[test]
    fn a_run_ends_with_its_message() {
        let fixture = Fixture::new(package("WHY"));
        let step = advance(&fixture.run(), fixture.start(), &Observed::default());
        assert_eq!(step.state.status.status, FatalError);
        let message =
            "Error during execution: fatal error: ns/inst failed in deploy.main.stop.fail: out of stock";
        let fatal = step.fatal.unwrap();
        assert_eq!((fatal.reason.as_str(), fatal.message.as_str()), ("FailTaskError", message));
    }
}
