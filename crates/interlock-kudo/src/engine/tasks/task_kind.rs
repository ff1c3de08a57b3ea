//! What each kind of task implements: its definition, and its run.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::api::{Parameter, Task, TaskSpec};
use crate::engine::errors::{InvalidTask, TaskError};
use crate::engine::lookup::{Observed, TaskProgress};
use crate::engine::ownership::TaskOwners;
use crate::engine::render;
use crate::engine::render::TaskContext;

/// A kind of task, as packages define it.
pub trait TaskKind: Sync {
    /// `spec.tasks[].kind`.
    fn name(&self) -> &'static str;

    /// Builds a task from its definition (KUDO `task/task.go: Build`).
    ///
    /// # Errors
    /// The first fault of the definition.
    fn build<'a>(&self, task: &'a Task) -> Result<Box<dyn Tasker + 'a>, InvalidTask>;

    /// Template files that a definition names, valid or not.
    fn templates<'a>(&self, spec: &'a TaskSpec) -> Vec<TemplateRef<'a>>;

    /// Keys under which the templates of a plan find results of the task.
    fn pipe_keys<'a>(&self, _spec: &'a TaskSpec) -> Vec<&'a str> {
        Vec::new()
    }

    /// Faults that KUDO's package client finds besides missing templates, with its texts
    /// (`validateTask`).
    fn client_problems(&self, _name: &str, _spec: &TaskSpec) -> Vec<String> {
        Vec::new()
    }
}

/// A valid task.
pub trait Tasker: fmt::Debug {
    /// Validates what the task refers to besides templates, among the parameters of its package.
    ///
    /// # Errors
    /// The first fault.
    fn validate(&self, _parameters: &BTreeMap<&str, &Parameter>) -> Result<(), InvalidTask> {
        Ok(())
    }

    /// What is wrong with it unless an Instance gives a value.
    fn doubt(&self, _parameters: &BTreeMap<&str, &Parameter>) -> Option<InvalidTask> {
        None
    }

    /// Template files whose objects the task applies with the values of a run.
    fn applied(&self, _site: &TaskContext<'_>) -> &[String] {
        &[]
    }

    /// Template files whose objects the task deletes with the values of a run.
    ///
    /// # Errors
    /// A value that does not say which.
    fn deleted(&self, _context: &TaskContext<'_>) -> Result<&[String], TaskError> {
        Ok(&[])
    }

    /// The child Instance that the task makes with the values of a run.
    ///
    /// # Errors
    /// It cannot be rendered.
    fn child(&self, _context: &TaskContext<'_>) -> Result<Option<Value>, TaskError> {
        Ok(None)
    }

    /// What fails where each of its templates is rendered by itself, with the file; empty for the task itself.
    fn errors(&self, context: &TaskContext<'_>, wanted: &dyn Fn(&str) -> bool) -> Vec<(String, TaskError)> {
        let deleted = match self.deleted(context) {
            Ok(deleted) => deleted,
            Err(error) => return vec![(String::new(), error)],
        };
        let files = deleted.iter().chain(self.applied(context)).filter(|file| wanted(file));
        let failed = files.filter_map(|file| {
            Some((file.clone(), render::with_files(context, std::slice::from_ref(file)).err()?))
        });
        failed.chain(self.child(context).err().map(|error| (String::new(), error))).collect()
    }

    /// Advances the task as far as its lookups allow.
    ///
    /// # Errors
    /// A transient error, or one that ends the run.
    fn advance(
        &self,
        context: &TaskContext<'_>,
        observed: &Observed,
        owners: &mut TaskOwners,
    ) -> Result<TaskProgress, TaskError>;
}

/// A template file that a task names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateRef<'a> {
    /// The field below `spec`.
    pub field: String,
    pub file: &'a str,
}

impl<'a> TemplateRef<'a> {
    /// The files of `spec.resources`.
    pub fn resources(spec: &'a TaskSpec) -> Vec<Self> {
        let files = spec.resources.iter().flatten().enumerate();
        files.map(|(i, file)| Self { field: format!("resources[{i}]"), file }).collect()
    }

    /// The file of a field that names one, unless it is empty.
    pub fn one(field: &str, file: Option<&'a str>) -> Vec<Self> {
        let file = file.filter(|file| !file.is_empty());
        file.map(|file| Self { field: field.to_owned(), file }).into_iter().collect()
    }
}

/// A text of a task's spec, unless it is empty.
pub fn text(task: &Task, field: fn(&TaskSpec) -> Option<&String>) -> Option<&str> {
    task.spec.as_ref().and_then(field).map(String::as_str).filter(|text| !text.is_empty())
}

/// The template files of a task, which needs at least one; `shown` is the task in the message.
pub fn resources<'a>(shown: &str, task: &'a Task) -> Result<&'a [String], InvalidTask> {
    let files = task.spec.as_ref().and_then(|spec| spec.resources.as_deref()).unwrap_or_default();
    if files.is_empty() {
        let message = format!(
            "task validation error: {shown} has an empty resource list. if that's what you need, use a Dummy task \
             instead"
        );
        return Err(InvalidTask::new("spec.resources", message, "list at least one template file"));
    }
    Ok(files)
}

/// Renders the objects of a task and advances it with them, once no other task writes any of them.
pub fn with_objects(
    context: &TaskContext<'_>,
    resources: &[String],
    owners: &mut TaskOwners,
    advance: impl FnOnce(Vec<Value>, &TaskOwners) -> Result<TaskProgress, TaskError>,
) -> Result<TaskProgress, TaskError> {
    claimed(context, render::objects(context, resources)?, owners, advance)
}

/// Advances a task with its objects, once no other task writes any of them.
pub fn claimed(
    context: &TaskContext<'_>,
    objects: Vec<Value>,
    owners: &mut TaskOwners,
    advance: impl FnOnce(Vec<Value>, &TaskOwners) -> Result<TaskProgress, TaskError>,
) -> Result<TaskProgress, TaskError> {
    if let Some(taken) = owners.claim(context, &objects) {
        return Ok(TaskProgress { waiting: vec![taken], ..TaskProgress::default() });
    }
    let mut progress = advance(objects, owners)?;
    if progress.done {
        progress.dealt_with = owners.release(context);
    }
    Ok(progress)
}
