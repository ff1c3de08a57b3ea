//! Names of the objects of Pipe tasks, and `.Pipes` of the templates (KUDO `task/task_pipe.go: PipePodName,
//! PipeArtifactName`).

use std::collections::BTreeMap;

use super::run::Run;

/// `spec.tasks[].kind` of a Pipe task.
pub const KIND: &str = "Pipe";

/// Name of the Pod of a task, which is named by phase, step and task.
pub fn pod(run: &Run<'_>, task: [&str; 3]) -> String {
    name(run, task, "pipepod")
}

/// Name of the object that becomes of a file, by its key.
pub fn artifact(run: &Run<'_>, task: [&str; 3], key: &str) -> String {
    name(run, task, key)
}

/// `.Pipes` of the templates of a plan: the names of its artifacts, by key.
///
/// # Errors
/// A key that two files of the plan have.
pub fn of_plan(run: &Run<'_>) -> Result<BTreeMap<String, go_template::Value>, String> {
    let mut found = BTreeMap::new();
    let plan = run.package.plan(run.plan);
    for phase in plan.and_then(|plan| plan.phases.as_deref()).unwrap_or_default() {
        for step in phase.steps.iter().flatten() {
            for task in step.tasks.iter().flatten() {
                let at = [phase.name.as_deref(), step.name.as_deref(), Some(task.as_str())];
                for key in keys(run, task) {
                    let name = artifact(run, at.map(Option::unwrap_or_default), key);
                    let name = go_template::Value::from(serde_json::Value::from(name));
                    if found.insert(key.to_owned(), name).is_some() {
                        return Err(format!("duplicated pipe key {key}"));
                    }
                }
            }
        }
    }
    Ok(found)
}

fn keys<'r>(run: &'r Run<'_>, task: &str) -> impl Iterator<Item = &'r str> {
    let task = run.package.task(task).filter(|task| task.kind.as_deref() == Some(KIND));
    let files = task.and_then(|task| task.spec.as_ref()?.pipe.as_deref()).unwrap_or_default();
    files.iter().filter_map(|file| file.key.as_deref())
}

fn name(run: &Run<'_>, task: [&str; 3], last: &str) -> String {
    let parts = [run.instance.name.as_str(), run.plan].into_iter().chain(task).chain([last]);
    parts.map(sanitized).collect::<Vec<_>>().join(".")
}

/// Lower case, and nothing but letters and digits.
fn sanitized(part: &str) -> String {
    part.to_lowercase().chars().filter(char::is_ascii_alphanumeric).collect()
}
