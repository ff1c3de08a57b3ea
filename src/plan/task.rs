//! What a task is, and how one goes on.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use thiserror::Error;

use crate::api::kudo::{PipeSpec, Task, TaskSpec};
use crate::api::object::{Gvk, meta_str};
use crate::effect::{ChildWrite, Note};
use crate::plan::apply::apply;
use crate::plan::delete::delete;
use crate::plan::errors::{TaskError, reason};
use crate::plan::number::parse_bool;
use crate::plan::observe::{Need, Observed, Subject};
use crate::plan::params;
use crate::plan::render::{self, Site};
use crate::template;

/// A task that can be carried out, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind<'a> {
    /// Applies objects and waits for their health.
    Apply(&'a [String]),
    /// Deletes objects and waits until they are gone.
    Delete(&'a [String]),
    /// Apply or Delete, as a boolean parameter says.
    Toggle {
        /// Template files.
        resources: &'a [String],
        /// The parameter.
        parameter: &'a str,
    },
    /// Does nothing, as told.
    Dummy {
        /// Fail.
        want_err: bool,
        /// Fail for good.
        fatal: bool,
        /// Be done.
        done: bool,
    },
    /// Takes files out of a Pod.
    Pipe(&'a [PipeSpec]),
    /// Makes a child Instance.
    KudoOperator,
}

/// Why a task is none. Texts are KUDO's (`task/task.go: Build`), but for [`Self::NotYet`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BuildError {
    /// No such kind.
    #[error("unknown task kind {0}")]
    UnknownKind(String),
    /// Apply or Delete without resources.
    #[error(
        "task validation error: {kind} task '{name}' has an empty resource list. if that's what you need, \
         use a Dummy task instead"
    )]
    NoResources {
        /// `apply` or `delete`.
        kind: &'static str,
        /// The task.
        name: String,
    },
    /// Toggle without resources.
    #[error(
        "task validation error: toggle task has an empty resource list. if that's what you need, use a Dummy \
         task instead"
    )]
    NoToggleResources,
    /// Toggle without a parameter.
    #[error("task validation error: Missing parameter to evaluate the Toggle Task")]
    NoToggleParameter,
    /// Pipe without a Pod; ours, KUDO finds that out when it renders.
    #[error("task validation error: pipe task has no pod template")]
    NoPod,
    /// Pipe without files.
    #[error("task validation error: pipe task has an empty pipe files list")]
    NoPipes,
    /// Pipe file with neither or both of `file` and `envFile`.
    #[error(
        "task validation error: pipe file {0} must have either 'file' or 'envFile' field set but not both"
    )]
    PipeFile(usize),
    /// Pipe file of no known kind.
    #[error("task validation error: invalid pipe kind (must be Secret or ConfigMap): pipe file {0}")]
    PipeKind(usize),
    /// Pipe file with a bad key.
    #[error(
        "task validation error: invalid pipe key (only letters, numbers and _ and - are allowed): pipe file {0}"
    )]
    PipeKey(usize),
    /// KudoOperator without a package.
    #[error("task validation error: kudo operator task '{0}' has an empty package name")]
    NoPackage(String),
    /// KudoOperator without a version.
    #[error("task validation error: kudo operator task '{0}' has an empty operatorVersion")]
    NoOperatorVersion(String),
    /// A kind that the engine does not carry out yet.
    #[error("task '{name}' is of kind {kind}, which is not supported yet")]
    NotYet {
        /// The task.
        name: String,
        /// Its kind.
        kind: &'static str,
    },
}

impl<'a> TaskKind<'a> {
    /// Reads a task.
    pub fn build(task: &'a Task) -> Result<Self, BuildError> {
        let name = || task.name.clone().unwrap_or_default();
        let spec = task.spec.as_ref();
        let text = |field: fn(&'a TaskSpec) -> Option<&'a String>| {
            spec.and_then(field).map(String::as_str).filter(|text| !text.is_empty())
        };
        let resources = spec.and_then(|s| s.resources.as_deref()).unwrap_or_default();
        let resources_of = |kind| match resources {
            [] => Err(BuildError::NoResources { kind, name: name() }),
            some => Ok(some),
        };
        match task.kind.as_deref().unwrap_or_default() {
            "Apply" => Ok(Self::Apply(resources_of("apply")?)),
            "Delete" => Ok(Self::Delete(resources_of("delete")?)),
            "Toggle" if resources.is_empty() => Err(BuildError::NoToggleResources),
            "Toggle" => {
                let parameter = text(|s| s.parameter.as_ref()).ok_or(BuildError::NoToggleParameter)?;
                Ok(Self::Toggle { resources, parameter })
            }
            "Dummy" => {
                let set = |flag: Option<bool>| flag.unwrap_or_default();
                Ok(Self::Dummy {
                    want_err: set(spec.and_then(|s| s.want_err)),
                    fatal: set(spec.and_then(|s| s.fatal)),
                    done: set(spec.and_then(|s| s.done)),
                })
            }
            "Pipe" if text(|s| s.pod.as_ref()).is_none() => Err(BuildError::NoPod),
            "Pipe" => pipes(spec.and_then(|s| s.pipe.as_deref()).unwrap_or_default()).map(Self::Pipe),
            "KudoOperator" => {
                text(|s| s.package.as_ref()).ok_or_else(|| BuildError::NoPackage(name()))?;
                text(|s| s.operator_version.as_ref()).ok_or_else(|| BuildError::NoOperatorVersion(name()))?;
                Ok(Self::KudoOperator)
            }
            other => Err(BuildError::UnknownKind(other.to_owned())),
        }
    }
}

fn pipes(pipes: &[PipeSpec]) -> Result<&[PipeSpec], BuildError> {
    if pipes.is_empty() {
        return Err(BuildError::NoPipes);
    }
    let given = |text: &Option<String>| text.as_ref().is_some_and(|t| !t.is_empty());
    for (i, pipe) in pipes.iter().enumerate() {
        if given(&pipe.file) == given(&pipe.env_file) {
            return Err(BuildError::PipeFile(i));
        }
        if !matches!(pipe.kind.as_deref(), Some("Secret" | "ConfigMap")) {
            return Err(BuildError::PipeKind(i));
        }
        let key = pipe.key.as_deref().unwrap_or_default();
        if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
            return Err(BuildError::PipeKey(i));
        }
    }
    Ok(pipes)
}

/// How far a task has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Whether it is done.
    pub done: bool,
    /// Its writes, in order.
    pub lane: Vec<ChildWrite>,
    /// What it must see first.
    pub needs: BTreeSet<Need>,
    /// What it waits for.
    pub waiting: Vec<String>,
    /// What people should hear of.
    pub notes: Vec<Note>,
    /// Objects of a task that is done.
    pub dealt_with: BTreeSet<Subject>,
}

/// What the tasks of one call share: who writes which object, and which kinds are on their way.
///
/// An object that several unfinished tasks name belongs to the first of them, in plan order,
/// until that task is done: else two tasks that run at the same time would undo each other's
/// writes for ever.
#[derive(Debug, Default)]
pub struct Claims {
    owners: BTreeMap<Subject, String>,
    /// Group and kind that a CustomResourceDefinition among the objects of this call defines.
    promised: BTreeSet<(String, String)>,
}

impl Claims {
    /// Claims objects for a task, or tells which other task has one of them.
    fn take(&mut self, site: &Site<'_>, objects: &[Value]) -> Option<String> {
        let path = site.path();
        let mut taken = None;
        for object in objects {
            self.promise(object);
            let Some(subject) = subject(object) else { continue };
            let owner = self.owners.entry(subject.clone()).or_insert_with(|| path.clone());
            if *owner != path {
                let Subject { kind, name, .. } = subject;
                taken = taken.or_else(|| Some(format!("{kind} {name} is being changed by task {owner}")));
            }
        }
        taken
    }

    fn promise(&mut self, object: &Value) {
        if object["kind"] == "CustomResourceDefinition" {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let spec = &object["spec"];
            self.promised.insert((text(&spec["group"]), text(&spec["names"]["kind"])));
        }
    }

    fn release(&mut self, site: &Site<'_>) -> BTreeSet<Subject> {
        let path = site.path();
        let mut released = BTreeSet::new();
        self.owners.retain(|subject, owner| {
            let kept = *owner != path;
            if !kept {
                released.insert(subject.clone());
            }
            kept
        });
        released
    }

    /// Whether a kind will be served once a definition among these objects is established.
    pub fn promises(&self, gvk: &Gvk) -> bool {
        self.promised.contains(&(gvk.group.clone(), gvk.kind.clone()))
    }
}

fn subject(object: &Value) -> Option<Subject> {
    Some(Subject::new(&Gvk::of(object)?, meta_str(object, "name")?))
}

/// Carries a task on, as far as what was observed allows.
pub fn advance(
    site: &Site<'_>,
    kind: TaskKind<'_>,
    observed: &Observed,
    claims: &mut Claims,
) -> Result<Progress, TaskError> {
    let (resources, present) = match kind {
        TaskKind::Apply(resources) => (resources, true),
        TaskKind::Delete(resources) => (resources, false),
        TaskKind::Toggle { resources, parameter } => (resources, toggle(site, parameter)?),
        TaskKind::Dummy { want_err: true, fatal: true, .. } => {
            return Err(TaskError::fatal(reason::DUMMY, "dummy error"));
        }
        TaskKind::Dummy { want_err: true, .. } => return Err(TaskError::Transient("dummy error".to_owned())),
        TaskKind::Dummy { done: true, .. } => return Ok(Progress { done: true, ..Progress::default() }),
        TaskKind::Dummy { .. } => {
            let never = format!("task {} is a Dummy that is never done", site.path());
            return Ok(Progress { waiting: vec![never], ..Progress::default() });
        }
        TaskKind::Pipe(_) => return Err(not_yet(site, "Pipe")),
        TaskKind::KudoOperator => return Err(not_yet(site, "KudoOperator")),
    };
    let objects = render::objects(site, resources)?;
    if let Some(taken) = claims.take(site, &objects) {
        return Ok(Progress { waiting: vec![taken], ..Progress::default() });
    }
    let mut progress =
        if present { apply(site, objects, observed, claims)? } else { delete(site, objects, observed)? };
    if progress.done {
        progress.dealt_with = claims.release(site);
    }
    Ok(progress)
}

fn not_yet(site: &Site<'_>, kind: &'static str) -> TaskError {
    TaskError::Build(BuildError::NotYet { name: site.task.to_owned(), kind })
}

/// The boolean that decides a Toggle task, as Go's `strconv.ParseBool` reads it.
fn toggle(site: &Site<'_>, name: &str) -> Result<bool, TaskError> {
    let fatal = |cause: String| TaskError::fatal(reason::TOGGLE, cause);
    match site.params.get(name) {
        None => Err(fatal(format!("no value for parameter {name} found"))),
        Some(template::Value::String(text)) => parse_bool(text).map_err(|error| {
            let shown = params::display(site.run.package.parameter(name), text);
            let error = error.to_string().replace(&format!("{text:?}"), &format!("{shown:?}"));
            fatal(format!("could not parse value of parameter {name}: {error}"))
        }),
        Some(_) => Err(fatal(format!("value of parameter {name} isn't a string"))),
    }
}
