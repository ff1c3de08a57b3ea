//! The KudoOperator task: makes a child Instance. The engine checks it, and cannot run it yet.

use super::task_kind;
use super::task_kind::{TaskKind, Tasker, TemplateRef};
use crate::api::kudo::{Task, TaskSpec};
use crate::engine::errors::{InvalidTask, TaskError};
use crate::engine::lookup::{Observed, TaskProgress};
use crate::engine::ownership::TaskOwners;
use crate::engine::render::TaskContext;

/// The kind of task.
pub(super) struct KudoOperator;

#[derive(Debug)]
struct KudoOperatorTask;

impl TaskKind for KudoOperator {
    fn name(&self) -> &'static str {
        "KudoOperator"
    }

    fn build<'a>(&self, task: &'a Task) -> Result<Box<dyn Tasker + 'a>, InvalidTask> {
        let invalid = |field: &str, lacks: &str, remedy| {
            let name = task.name.as_deref().unwrap_or_default();
            let message = format!("task validation error: kudo operator task '{name}' has an empty {lacks}");
            InvalidTask::new(field, message, remedy)
        };
        task_kind::text(task, |spec| spec.package.as_ref())
            .ok_or_else(|| invalid("spec.package", "package name", "name the operator of the child"))?;
        task_kind::text(task, |spec| spec.operator_version.as_ref()).ok_or_else(|| {
            invalid("spec.operatorVersion", "operatorVersion", "name the version of the child")
        })?;
        Ok(Box::new(KudoOperatorTask))
    }

    fn is_supported(&self) -> bool {
        false
    }

    fn templates<'a>(&self, spec: &'a TaskSpec) -> Vec<TemplateRef<'a>> {
        TemplateRef::one("parameterFile", spec.parameter_file.as_deref())
    }

    fn not_installable(&self) -> Option<&'static str> {
        Some("packages that install other packages are not supported")
    }
}

impl Tasker for KudoOperatorTask {
    fn advance(
        &self,
        context: &TaskContext<'_>,
        _observed: &Observed,
        _owners: &mut TaskOwners,
    ) -> Result<TaskProgress, TaskError> {
        Err(task_kind::not_supported(context, "KudoOperator"))
    }
}
