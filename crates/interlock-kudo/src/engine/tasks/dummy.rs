//! The Dummy task: does nothing, with the result that its flags set.

use super::task_kind::{TaskKind, Tasker, TemplateRef};
use crate::api::{Task, TaskSpec};
use crate::engine::errors::{InvalidTask, TaskError};
use crate::engine::lookup::{Observed, TaskProgress};
use crate::engine::ownership::TaskOwners;
use crate::engine::render::TaskContext;
use crate::engine::run::InstanceId;

/// Reason of the Event of a Dummy task with `wantErr` and `fatal`.
const FAILED: &str = "DummyTaskError";

/// The kind of task.
pub(super) struct Dummy;

#[derive(Debug)]
struct DummyTask {
    want_err: bool,
    fatal: bool,
    done: bool,
}

impl TaskKind for Dummy {
    fn name(&self) -> &'static str {
        "Dummy"
    }

    fn build<'a>(&self, task: &'a Task) -> Result<Box<dyn Tasker + 'a>, InvalidTask> {
        let flag =
            |field: fn(&TaskSpec) -> Option<bool>| task.spec.as_ref().and_then(field).unwrap_or_default();
        Ok(Box::new(DummyTask {
            want_err: flag(|spec| spec.want_err),
            fatal: flag(|spec| spec.fatal),
            done: flag(|spec| spec.done),
        }))
    }

    fn templates<'a>(&self, _spec: &'a TaskSpec) -> Vec<TemplateRef<'a>> {
        Vec::new()
    }
}

impl Tasker for DummyTask {
    fn advance(
        &self,
        context: &TaskContext<'_>,
        _observed: &Observed,
        _owners: &mut TaskOwners,
    ) -> Result<TaskProgress, TaskError> {
        match self {
            Self { want_err: true, fatal: true, .. } => Err(TaskError::fatal(FAILED, "dummy error")),
            Self { want_err: true, .. } => Err(TaskError::Transient("dummy error".to_owned())),
            Self { done: true, .. } => Ok(TaskProgress { done: true, ..TaskProgress::default() }),
            Self { .. } => {
                let never = format!("task {} is a Dummy that is never done", context.path());
                let InstanceId { namespace, name, .. } = context.run.instance;
                let end = format!("interlock plan abort {name} -n {namespace} --reason WHY");
                let held = Some(format!("{never}; `{end}` ends the plan"));
                Ok(TaskProgress { waiting: vec![never], held, ..TaskProgress::default() })
            }
        }
    }
}
