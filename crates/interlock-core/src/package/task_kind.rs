//! Tasks of a package: the kind with its fields, or the reason why a task is invalid.

use thiserror::Error;

use crate::api::kudo::{PipeSpec, Task, TaskSpec};

/// A valid task, by kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind<'a> {
    /// Applies objects and waits for their health.
    Apply(&'a [String]),
    /// Deletes objects and waits until they are gone.
    Delete(&'a [String]),
    /// Apply or Delete, according to a boolean parameter.
    Toggle {
        /// Template files.
        resources: &'a [String],
        /// The parameter.
        parameter: &'a str,
    },
    /// Does nothing, with the result that its flags set.
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

/// Why a task is invalid. Texts are KUDO's (`task/task.go: Build`), but for [`Self::NotYet`].
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
    /// Pipe without a Pod; ours, KUDO detects it when it renders.
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
    /// A kind that the engine does not support yet.
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
