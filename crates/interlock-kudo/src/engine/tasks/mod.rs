//! The kinds of tasks, one file each. A new kind is a file here, its `mod`, and its line in
//! [`KINDS`].

use std::collections::BTreeMap;
use std::sync::LazyLock;

use self::task_kind::{TaskKind, Tasker, TemplateRef};
use super::errors::InvalidTask;
use crate::api::Task;

mod apply;
pub(super) mod delete;
mod dummy;
#[cfg(test)]
mod fail;
mod kudo_operator;
mod pipe;
pub mod task_kind;
mod toggle;

/// Every kind.
pub static KINDS: &[&dyn TaskKind] = &[
    &apply::Apply,
    &delete::Delete,
    &toggle::Toggle,
    &pipe::Pipe,
    &kudo_operator::KudoOperator,
    &dummy::Dummy,
    #[cfg(test)]
    &fail::Fail,
];

/// The kind of a task, if it is known.
fn kind(task: &Task) -> Option<&'static dyn TaskKind> {
    let name = task.kind.as_deref()?;
    KINDS.iter().find(|kind| kind.name() == name).copied()
}

/// Builds a task from its definition.
///
/// # Errors
/// The first fault of the definition.
pub fn build(task: &Task) -> Result<Box<dyn Tasker + '_>, InvalidTask> {
    kind(task).ok_or_else(|| unknown_kind(task))?.build(task)
}

fn unknown_kind(task: &Task) -> InvalidTask {
    static REMEDY: LazyLock<String> = LazyLock::new(|| {
        let names = names();
        let (others, last) = names.rsplit_once(", ").unwrap_or_default();
        format!("use {others} or {last}")
    });
    let kind = task.kind.as_deref().unwrap_or_default();
    InvalidTask::new("kind", format!("unknown task kind {kind}"), REMEDY.as_str())
}

/// The names of all kinds.
fn names() -> String {
    KINDS.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
}

/// Template files that a task of a known kind names.
pub fn templates(task: &Task) -> Vec<TemplateRef<'_>> {
    kind(task).zip(task.spec.as_ref()).map_or_else(Vec::new, |(kind, spec)| kind.templates(spec))
}

/// Keys under which the templates of a plan find results of a task.
pub fn pipe_keys(task: &Task) -> Vec<&str> {
    kind(task).zip(task.spec.as_ref()).map_or_else(Vec::new, |(kind, spec)| kind.pipe_keys(spec))
}

/// Faults of a task that KUDO's package client finds before it installs a package, in its order
/// (`validateTask`).
pub fn client_problems(task: &Task, files: &BTreeMap<String, String>) -> Vec<String> {
    let name = task.name.as_deref().unwrap_or_default();
    let Some(kind) = kind(task) else {
        let unknown = task.kind.as_deref().unwrap_or_default();
        return vec![format!("task {name}: unknown task kind {unknown}; known are {}", names())];
    };
    let spec = task.spec.clone().unwrap_or_default();
    let missing = kind.templates(&spec).into_iter().filter(|named| !files.contains_key(named.file));
    let missing = missing.map(|named| format!("task {name} missing template: {}", named.file));
    kind.client_problems(name, &spec).into_iter().chain(missing).collect()
}
