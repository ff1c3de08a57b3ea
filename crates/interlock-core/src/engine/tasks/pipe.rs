//! The Pipe task: takes files out of a Pod. The engine checks it, and cannot run it yet.

use super::task_kind;
use super::task_kind::{TaskKind, Tasker, TemplateRef};
use crate::api::kudo::{PipeSpec, Task, TaskSpec};
use crate::engine::errors::{InvalidTask, TaskError};
use crate::engine::lookup::{Observed, TaskProgress};
use crate::engine::ownership::TaskOwners;
use crate::engine::render::TaskContext;

/// The kind of task.
pub(super) struct Pipe;

#[derive(Debug)]
struct PipeTask;

impl TaskKind for Pipe {
    fn name(&self) -> &'static str {
        "Pipe"
    }

    fn build<'a>(&self, task: &'a Task) -> Result<Box<dyn Tasker + 'a>, InvalidTask> {
        // KUDO finds this one when it renders.
        task_kind::text(task, |spec| spec.pod.as_ref()).ok_or_else(|| {
            invalid("spec.pod", "pipe task has no pod template", "name the template file of the Pod")
        })?;
        let files = task.spec.as_ref().and_then(|spec| spec.pipe.as_deref()).unwrap_or_default();
        if files.is_empty() {
            return Err(invalid(
                "spec.pipe",
                "pipe task has an empty pipe files list",
                "list at least one file",
            ));
        }
        files.iter().enumerate().try_for_each(|(i, file)| check(i, file))?;
        Ok(Box::new(PipeTask))
    }

    fn is_supported(&self) -> bool {
        false
    }

    fn templates<'a>(&self, spec: &'a TaskSpec) -> Vec<TemplateRef<'a>> {
        TemplateRef::one("pod", spec.pod.as_deref())
    }

    fn pipe_keys<'a>(&self, spec: &'a TaskSpec) -> Vec<&'a str> {
        spec.pipe.iter().flatten().filter_map(|file| file.key.as_deref()).collect()
    }

    fn client_problems(&self, name: &str, spec: &TaskSpec) -> Vec<String> {
        let mut problems = Vec::new();
        if self.templates(spec).is_empty() {
            problems.push(format!("task {name} does not have a pod specified"));
        }
        if spec.pipe.as_ref().is_none_or(Vec::is_empty) {
            problems.push(format!("task {name} does not have pipe files specified"));
        }
        problems
    }
}

impl Tasker for PipeTask {
    fn advance(
        &self,
        context: &TaskContext<'_>,
        _observed: &Observed,
        _owners: &mut TaskOwners,
    ) -> Result<TaskProgress, TaskError> {
        Err(task_kind::not_supported(context, "Pipe"))
    }
}

fn invalid(field: impl Into<String>, fault: &str, remedy: &'static str) -> InvalidTask {
    InvalidTask::new(field, format!("task validation error: {fault}"), remedy)
}

fn check(i: usize, file: &PipeSpec) -> Result<(), InvalidTask> {
    let given = |text: &Option<String>| text.as_ref().is_some_and(|t| !t.is_empty());
    if given(&file.file) == given(&file.env_file) {
        let fault = format!("pipe file {i} must have either 'file' or 'envFile' field set but not both");
        return Err(invalid(format!("spec.pipe[{i}]"), &fault, "set either file or envFile"));
    }
    if !matches!(file.kind.as_deref(), Some("Secret" | "ConfigMap")) {
        let fault = format!("invalid pipe kind (must be Secret or ConfigMap): pipe file {i}");
        return Err(invalid(format!("spec.pipe[{i}].kind"), &fault, "use Secret or ConfigMap"));
    }
    let key = file.key.as_deref().unwrap_or_default();
    if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        let fault =
            format!("invalid pipe key (only letters, numbers and _ and - are allowed): pipe file {i}");
        return Err(invalid(format!("spec.pipe[{i}].key"), &fault, "use letters, digits, _ and -"));
    }
    Ok(())
}
