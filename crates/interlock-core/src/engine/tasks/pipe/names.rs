//! Names of the objects of a Pipe task (KUDO `task/task_pipe.go: PipePodName, PipeArtifactName`).

use std::collections::BTreeMap;

use crate::api::kudo::PipeSpec;
use crate::engine::render::TaskContext;
use crate::engine::run::Run;
use crate::engine::tasks;

/// Name of the Pod.
pub(super) fn pod(context: &TaskContext<'_>) -> String {
    name(context.run, [context.phase, context.step, context.task], "pipepod")
}

/// Name of an artifact.
pub(super) fn artifact(context: &TaskContext<'_>, file: &PipeSpec) -> String {
    let key = file.key.as_deref().unwrap_or_default();
    name(context.run, [context.phase, context.step, context.task], key)
}

/// Path of a file in the Pod.
pub(super) fn path(file: &PipeSpec) -> &str {
    let given = |text: &'_ Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
    let path = if given(&file.file) { &file.file } else { &file.env_file };
    path.as_deref().unwrap_or_default()
}

/// `.Pipes` of the templates of a plan: the names of its artifacts, by key.
///
/// # Errors
/// A key that two files of the plan have.
pub fn pipes(run: &Run<'_>) -> Result<BTreeMap<String, go_template::Value>, String> {
    let mut found = BTreeMap::new();
    let plan = run.package.plan(run.plan);
    for phase in plan.and_then(|plan| plan.phases.as_deref()).unwrap_or_default() {
        for step in phase.steps.iter().flatten() {
            for task in step.tasks.iter().flatten() {
                let Some(definition) = run.package.task(task) else { continue };
                for key in tasks::pipe_keys(definition) {
                    let at = [phase.name.as_deref(), step.name.as_deref(), Some(task.as_str())];
                    let name = name(run, at.map(Option::unwrap_or_default), key);
                    if found
                        .insert(key.to_owned(), go_template::Value::from(serde_json::Value::from(name)))
                        .is_some()
                    {
                        return Err(format!("duplicated pipe key {key}"));
                    }
                }
            }
        }
    }
    Ok(found)
}

fn name(run: &Run<'_>, at: [&str; 3], last: &str) -> String {
    let parts = [run.instance.name.as_str(), run.plan].into_iter().chain(at).chain([last]);
    parts.map(sanitized).collect::<Vec<_>>().join(".")
}

/// Lower case, and nothing but letters and digits.
fn sanitized(part: &str) -> String {
    part.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect()
}
