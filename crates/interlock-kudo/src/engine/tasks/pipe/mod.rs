//! The Pipe task: takes files out of a Pod into ConfigMaps and Secrets, which later templates find by
//! `.Pipes.KEY` (KUDO `task/task_pipe.go`).
//!
//! The init container of the Pod makes the files. A helper container that waits keeps the Pod alive until they
//! are read; then the artifacts are applied, and the Pod is deleted.

mod artifact;
mod env_file;
mod file;
mod pod;
#[cfg(test)]
mod tests;

use interlock_core::api::interlock::Adoption;
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, ObjectKey, annotation, meta_str};
use interlock_core::effect::{Effect, FileRead, MAX_FILE, PodFile, Propagation};

use self::file::{PIPE_TASK_ERROR, path};
use super::apply;
use super::task_kind;
use super::task_kind::{TaskKind, Tasker, TemplateRef};
use crate::api::{PipeSpec, Task, TaskSpec};
use crate::engine::adoption;
use crate::engine::adoption::Ownership;
use crate::engine::errors::{FailedRequest, InvalidTask, TaskError, is_stale};
use crate::engine::lookup::{Observed, TaskProgress};
use crate::engine::ownership::TaskOwners;
use crate::engine::pipes;
use crate::engine::render::TaskContext;

/// The kind of task.
pub(super) struct Pipe;

#[derive(Debug)]
struct PipeTask<'a> {
    pod: &'a str,
    files: &'a [PipeSpec],
}

impl TaskKind for Pipe {
    fn name(&self) -> &'static str {
        pipes::KIND
    }

    fn build<'a>(&self, task: &'a Task) -> Result<Box<dyn Tasker + 'a>, InvalidTask> {
        // KUDO finds this one when it renders.
        let pod = task_kind::text(task, |spec| spec.pod.as_ref()).ok_or_else(|| {
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
        Ok(Box::new(PipeTask { pod, files }))
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

impl Tasker for PipeTask<'_> {
    fn errors(&self, context: &TaskContext<'_>, wanted: &dyn Fn(&str) -> bool) -> Vec<(String, TaskError)> {
        let failed = wanted(self.pod).then(|| pod::object(context, self.pod, self.files).err()).flatten();
        failed.map(|error| (self.pod.to_owned(), error)).into_iter().collect()
    }

    fn advance(
        &self,
        context: &TaskContext<'_>,
        observed: &Observed,
        owners: &mut TaskOwners,
    ) -> Result<TaskProgress, TaskError> {
        let pod = pod::object(context, self.pod, self.files)?;
        let stubs = self.files.iter().map(|file| artifact::stub(context, file));
        let all: Vec<_> = [pod.clone()].into_iter().chain(stubs).collect();
        if let Some(taken) = owners.claim(context, &all) {
            return Ok(TaskProgress { waiting: vec![taken], ..TaskProgress::default() });
        }
        let key = ObjectKey {
            gvk: Gvk::new("v1", "Pod"),
            namespace: Some(context.run.instance.namespace.clone()),
            name: pipes::pod(context.run, context.place()),
        };
        let piping = Piping { context, files: self.files, observed, owners, key: &key };
        let mut progress = match observed.facts.get(&key) {
            Ok(None) if !observed.facts.failures.contains_key(&key) => {
                piping.unless_done(|| apply::advance(context, vec![pod], observed, owners))?
            }
            Ok(Some(current)) => piping.of_pod(current, pod)?,
            // Unknown yet, or the first write failed.
            _ => apply::advance(context, vec![pod], observed, owners)?,
        };
        if progress.done {
            progress.dealt_with = owners.release(context);
        }
        Ok(progress)
    }
}

/// One call of the engine for one task.
struct Piping<'a> {
    context: &'a TaskContext<'a>,
    files: &'a [PipeSpec],
    observed: &'a Observed,
    owners: &'a TaskOwners,
    /// The Pod.
    key: &'a ObjectKey,
}

impl Piping<'_> {
    /// Whether every artifact is of this run: done, else what is to be done without the Pod. A process that
    /// ended after it deleted the Pod may not have recorded that the task is done.
    fn unless_done(
        &self,
        otherwise: impl FnOnce() -> Result<TaskProgress, TaskError>,
    ) -> Result<TaskProgress, TaskError> {
        let mut progress = TaskProgress::default();
        let mut current = true;
        for file in self.files {
            let key = artifact::key(self.context, file);
            match self.observed.facts.get(&key) {
                Err(needs) => progress.needs.add(needs),
                Ok(None) => current = false,
                Ok(Some(object)) => current &= self.is_of_run(object),
            }
        }
        if !progress.needs.is_empty() {
            return Ok(progress);
        }
        if current {
            return Ok(TaskProgress { done: true, ..progress });
        }
        otherwise()
    }

    fn is_of_run(&self, object: &serde_json::Value) -> bool {
        annotation(object, meta::PLAN_UID) == Some(self.context.run.uid)
            && meta_str(object, "deletionTimestamp").is_none()
    }

    fn of_pod(
        &self,
        current: &serde_json::Value,
        wanted: serde_json::Value,
    ) -> Result<TaskProgress, TaskError> {
        if meta_str(current, "deletionTimestamp").is_some() {
            let waiting = vec![format!("{} is being deleted", self.key)];
            return self.unless_done(|| Ok(TaskProgress { waiting, ..TaskProgress::default() }));
        }
        let instance = self.context.run.instance;
        let owned = matches!(adoption::ownership(current, instance, Adoption::Deny), Ownership::Owned);
        let over = matches!(current["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
        if owned && (over || !self.is_of_run(current)) {
            // Of an earlier run, or evicted: it is made anew.
            return self.delete_pod(current);
        }
        let made = apply::advance(self.context, vec![wanted], self.observed, self.owners)?;
        if !made.done {
            return Ok(made);
        }
        let mut progress = TaskProgress::default();
        let mut artifacts = Vec::with_capacity(self.files.len());
        for file in self.files {
            match self.read(current, file, &mut progress)? {
                Some(bytes) => artifacts.push(artifact::object(self.context, file, bytes)?),
                None => continue,
            }
        }
        if !progress.needs.is_empty() {
            return Ok(progress);
        }
        let applied = apply::advance(self.context, artifacts, self.observed, self.owners)?;
        if applied.done { self.delete_pod(current) } else { Ok(applied) }
    }

    /// The content of a file, as soon as it is read.
    fn read(
        &self,
        pod: &serde_json::Value,
        file: &PipeSpec,
        progress: &mut TaskProgress,
    ) -> Result<Option<&[u8]>, TaskError> {
        let path = path(file);
        let file = PodFile {
            pod: self.key.clone(),
            uid: meta_str(pod, "uid").unwrap_or_default().to_owned(),
            container: pod::HELPER.to_owned(),
            path: path.to_owned(),
        };
        let fatal = |why: String| Err(TaskError::fatal(PIPE_TASK_ERROR, why));
        let pod = &self.key.name;
        match self.observed.facts.files.get(&file) {
            None => {
                progress.needs.files.insert(file);
                Ok(None)
            }
            Some(FileRead::Content(bytes)) => Ok(Some(bytes)),
            Some(FileRead::TooLarge) => fatal(format!(
                "fatal error: file {path} of pipe pod {pod} has more than {} bytes; make it smaller, as a ConfigMap \
                 or Secret cannot hold it",
                MAX_FILE
            )),
            Some(FileRead::Ended { code, said }) => fatal(format!(
                "fatal error: file {path} of pipe pod {pod} cannot be read: exit code {code}: {said}"
            )),
            Some(FileRead::Failed(failure)) => {
                let error = TaskError::api(FailedRequest::Get, self.key, failure, self.context.run.transient);
                let of = |cause: String| format!("file {path} of pipe pod {pod} cannot be read: {cause}");
                Err(match error {
                    TaskError::Transient(cause) => TaskError::Transient(of(cause)),
                    TaskError::Rejected(kind, cause) => TaskError::Rejected(kind, of(cause)),
                    TaskError::Fatal { reason, cause } => TaskError::Fatal { reason, cause: of(cause) },
                    other => other,
                })
            }
        }
    }

    fn delete_pod(&self, current: &serde_json::Value) -> Result<TaskProgress, TaskError> {
        let mut progress = TaskProgress::default();
        if let Some(failure) = self.observed.facts.failures.get(self.key) {
            if !is_stale(FailedRequest::Delete, failure) {
                let transient = self.context.run.transient;
                return Err(TaskError::api(FailedRequest::Delete, self.key, failure, transient));
            }
            progress.needs.certainly.insert(self.key.clone());
            return Ok(progress);
        }
        let text = |field| meta_str(current, field).unwrap_or_default().to_owned();
        progress.lane.push(Effect::Delete {
            key: self.key.clone(),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            propagation: Propagation::Foreground,
        });
        Ok(progress)
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
