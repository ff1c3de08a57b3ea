//! Advances tasks of every kind.

pub mod apply;
pub mod delete;

use self::apply::apply;
use self::delete::delete;
use super::errors::{TaskError, reason};
use super::lookup::{Observed, TaskProgress};
use super::ownership::Claims;
use super::render;
use super::render::TaskContext;
use crate::package::number::parse_bool;
use crate::package::params;
use crate::package::task_kind::{BuildError, TaskKind};

/// Advances a task as far as its lookups allow.
pub fn advance(
    site: &TaskContext<'_>,
    kind: TaskKind<'_>,
    observed: &Observed,
    claims: &mut Claims,
) -> Result<TaskProgress, TaskError> {
    let (resources, present) = match kind {
        TaskKind::Apply(resources) => (resources, true),
        TaskKind::Delete(resources) => (resources, false),
        TaskKind::Toggle { resources, parameter } => (resources, toggle(site, parameter)?),
        TaskKind::Dummy { want_err: true, fatal: true, .. } => {
            return Err(TaskError::fatal(reason::DUMMY, "dummy error"));
        }
        TaskKind::Dummy { want_err: true, .. } => return Err(TaskError::Transient("dummy error".to_owned())),
        TaskKind::Dummy { done: true, .. } => {
            return Ok(TaskProgress { done: true, ..TaskProgress::default() });
        }
        TaskKind::Dummy { .. } => {
            let never = format!("task {} is a Dummy that is never done", site.path());
            let held = Some(format!("{never}; `interlock plan abort` ends the plan"));
            return Ok(TaskProgress { waiting: vec![never], held, ..TaskProgress::default() });
        }
        TaskKind::Pipe(_) => return Err(not_yet(site, "Pipe")),
        TaskKind::KudoOperator => return Err(not_yet(site, "KudoOperator")),
    };
    let objects = render::objects(site, resources)?;
    if let Some(taken) = claims.take(site, &objects) {
        return Ok(TaskProgress { waiting: vec![taken], ..TaskProgress::default() });
    }
    let mut progress =
        if present { apply(site, objects, observed, claims)? } else { delete(site, objects, observed)? };
    if progress.done {
        progress.dealt_with = claims.release(site);
    }
    Ok(progress)
}

fn not_yet(site: &TaskContext<'_>, kind: &'static str) -> TaskError {
    TaskError::Build(BuildError::NotYet { name: site.task.to_owned(), kind })
}

/// The boolean that decides a Toggle task, as Go's `strconv.ParseBool` reads it.
pub(super) fn toggle(site: &TaskContext<'_>, name: &str) -> Result<bool, TaskError> {
    let fatal = |cause: String| TaskError::fatal(reason::TOGGLE, cause);
    match site.params.get(name) {
        None => Err(fatal(format!("no value for parameter {name} found"))),
        Some(go_template::Value::String(text)) => parse_bool(text).map_err(|error| {
            let shown = params::display(site.run.package.parameter(name), text);
            let error = error.to_string().replace(&format!("{text:?}"), &format!("{shown:?}"));
            fatal(format!("could not parse value of parameter {name}: {error}"))
        }),
        Some(_) => Err(fatal(format!("value of parameter {name} isn't a string"))),
    }
}
