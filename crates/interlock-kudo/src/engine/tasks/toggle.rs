//! The Toggle task: Apply or Delete, according to a boolean parameter.

use std::collections::BTreeMap;

use super::task_kind;
use super::task_kind::{TaskKind, Tasker, TemplateRef};
use super::{apply, delete};
use crate::api::{Parameter, Task, TaskSpec};
use crate::engine::errors::{InvalidTask, TaskError};
use crate::engine::lookup::{Observed, TaskProgress};
use crate::engine::ownership::TaskOwners;
use crate::engine::render::TaskContext;
use crate::package::number::parse_bool;
use crate::package::params;

/// Reason of the Event of a Toggle task whose parameter is no boolean.
const FAILED: &str = "ToggleTaskError";

/// The kind of task.
pub(super) struct Toggle;

#[derive(Debug)]
struct ToggleTask<'a> {
    resources: &'a [String],
    parameter: &'a str,
}

impl TaskKind for Toggle {
    fn name(&self) -> &'static str {
        "Toggle"
    }

    fn build<'a>(&self, task: &'a Task) -> Result<Box<dyn Tasker + 'a>, InvalidTask> {
        let resources = task_kind::resources("toggle task", task)?;
        let parameter = task_kind::text(task, |spec| spec.parameter.as_ref()).ok_or_else(|| {
            let message = "task validation error: Missing parameter to evaluate the Toggle Task";
            InvalidTask::new("spec.parameter", message, "name a boolean parameter")
        })?;
        Ok(Box::new(ToggleTask { resources, parameter }))
    }

    fn templates<'a>(&self, spec: &'a TaskSpec) -> Vec<TemplateRef<'a>> {
        TemplateRef::resources(spec)
    }

    fn client_problems(&self, name: &str, spec: &TaskSpec) -> Vec<String> {
        let given = spec.parameter.as_ref().is_some_and(|parameter| !parameter.is_empty());
        let problem = format!("toggle task {name} does not have parameter specified");
        if given { Vec::new() } else { vec![problem] }
    }
}

impl ToggleTask<'_> {
    /// The value of the parameter, as Go's `strconv.ParseBool` reads it.
    fn is_on(&self, context: &TaskContext<'_>) -> Result<bool, TaskError> {
        let name = self.parameter;
        let fatal = |cause: String| TaskError::fatal(FAILED, cause);
        match context.params.get(name) {
            None => Err(fatal(format!("no value for parameter {name} found"))),
            Some(go_template::Value::String(text)) => parse_bool(text).map_err(|error| {
                let shown = params::display(context.run.package.parameter(name), text);
                let error = error.to_string().replace(&format!("{text:?}"), &format!("{shown:?}"));
                fatal(format!("could not parse value of parameter {name}: {error}; set it to true or false"))
            }),
            Some(_) => Err(fatal(format!("value of parameter {name} isn't a string"))),
        }
    }
}

impl Tasker for ToggleTask<'_> {
    fn validate(&self, parameters: &BTreeMap<&str, &Parameter>) -> Result<(), InvalidTask> {
        let name = self.parameter;
        let invalid = |message, remedy| Err(InvalidTask::new("spec.parameter", message, remedy));
        let Some(parameter) = parameters.get(name) else {
            return invalid(
                format!("there is no parameter \"{name}\""),
                "add the parameter to spec.parameters, or name another",
            );
        };
        let kind = parameter.value_type.as_deref().unwrap_or("string");
        if matches!(kind, "array" | "map") {
            let message = format!("the parameter \"{name}\" is of type {kind}");
            return invalid(message, "name a parameter of type boolean");
        }
        Ok(())
    }

    fn doubt(&self, parameters: &BTreeMap<&str, &Parameter>) -> Option<InvalidTask> {
        let name = self.parameter;
        let default = parameters.get(name)?.default.as_deref()?;
        let message = format!("the default of parameter \"{name}\" is not true or false");
        let remedy = "set the default of the parameter to true or false";
        parse_bool(default).is_err().then(|| InvalidTask::new("spec.parameter", message, remedy))
    }

    fn deleted(&self, context: &TaskContext<'_>) -> Result<&[String], TaskError> {
        self.is_on(context).map(|is_on| if is_on { &[] } else { self.resources })
    }

    fn applied(&self, context: &TaskContext<'_>) -> &[String] {
        if self.is_on(context).is_ok_and(|on| on) { self.resources } else { &[] }
    }

    fn advance(
        &self,
        context: &TaskContext<'_>,
        observed: &Observed,
        owners: &mut TaskOwners,
    ) -> Result<TaskProgress, TaskError> {
        let on = self.is_on(context)?;
        task_kind::with_objects(context, self.resources, owners, |objects, owners| match on {
            true => apply::advance(context, objects, observed, owners),
            false => delete::advance(context, objects, observed),
        })
    }
}
