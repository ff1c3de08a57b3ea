//! The Delete task: deletes objects in the foreground, and waits until they are gone.

use interlock_core::api::interlock::Adoption;
use interlock_core::api::meta;
use interlock_core::api::object::{Gvk, ObjectKey, meta_str};
use interlock_core::effect::{Effect, Note, Propagation, Severity};
use interlock_core::reconcile::KindServed;
use serde_json::Value;

use super::task_kind;
use super::task_kind::{TaskKind, Tasker, TemplateRef};
use crate::api::{Task, TaskSpec};
use crate::engine::adoption;
use crate::engine::adoption::{ForeignOwner, Ownership};
use crate::engine::enhance;
use crate::engine::enhance::WantedObject;
use crate::engine::errors::{FailedRequest, InvalidTask, TaskError, is_stale, reason};
use crate::engine::lookup::{Observed, TaskProgress};
use crate::engine::ownership::TaskOwners;
use crate::engine::render::TaskContext;
use crate::engine::sharing;

/// Kinds that hold a user's data: Interlock never deletes them (group, kind).
const NEVER_DELETED: [(&str, &str); 4] = [
    ("", "PersistentVolumeClaim"),
    ("", "PersistentVolume"),
    ("", "Namespace"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
];

/// The kind of task.
pub(super) struct Delete;

#[derive(Debug)]
struct DeleteTask<'a> {
    resources: &'a [String],
}

impl TaskKind for Delete {
    fn name(&self) -> &'static str {
        "Delete"
    }

    fn build<'a>(&self, task: &'a Task) -> Result<Box<dyn Tasker + 'a>, InvalidTask> {
        let shown = format!("delete task '{}'", task.name.as_deref().unwrap_or_default());
        Ok(Box::new(DeleteTask { resources: task_kind::resources(&shown, task)? }))
    }

    fn templates<'a>(&self, spec: &'a TaskSpec) -> Vec<TemplateRef<'a>> {
        TemplateRef::resources(spec)
    }
}

impl Tasker for DeleteTask<'_> {
    fn deleted(&self, _context: &TaskContext<'_>) -> Result<&[String], TaskError> {
        Ok(self.resources)
    }

    fn advance(
        &self,
        context: &TaskContext<'_>,
        observed: &Observed,
        owners: &mut TaskOwners,
    ) -> Result<TaskProgress, TaskError> {
        task_kind::with_objects(context, self.resources, owners, |objects, _| {
            advance(context, objects, observed)
        })
    }
}

/// Advances a task with its objects. Skips objects of a kind that is not defined, which cannot exist; waits
/// for those of a kind that is defined and not served.
///
/// # Errors
/// A transient error, or one that ends the run.
pub fn advance(
    context: &TaskContext<'_>,
    objects: Vec<Value>,
    observed: &Observed,
) -> Result<TaskProgress, TaskError> {
    let mut progress = TaskProgress::default();
    for object in objects {
        let Some(gvk) = Gvk::of(&object) else { continue };
        let namespaced = match observed.facts.kinds.get(&gvk) {
            None => {
                progress.needs.kinds.insert(gvk);
                continue;
            }
            Some(KindServed::Namespaced) => true,
            Some(KindServed::Cluster) => false,
            Some(KindServed::Undefined | KindServed::NeverServed) => continue,
            // Unavailable is not gone.
            Some(KindServed::NotServed) => {
                progress.waiting.push(format!("the API server does not serve {gvk} now"));
                progress.absent.insert(gvk);
                continue;
            }
            Some(KindServed::Unknown) => {
                progress.waiting.push(format!("it is not known yet whether the API server serves {gvk}"));
                continue;
            }
        };
        let WantedObject { key, object } = enhance::enhance(context, object, namespaced)?;
        delete(context, &key, &object, observed, &mut progress)?;
        // As in KUDO, the first request that fails stops the task.
        if progress.needs.certainly.contains(&key) && observed.facts.failures.contains_key(&key) {
            break;
        }
    }
    if !progress.needs.is_empty() {
        progress.lane.clear();
    }
    progress.done = progress.needs.is_empty() && progress.lane.is_empty() && progress.waiting.is_empty();
    if !progress.done {
        progress.notes.clear();
    }
    Ok(progress)
}

fn delete(
    context: &TaskContext<'_>,
    key: &ObjectKey,
    wanted: &Value,
    observed: &Observed,
    progress: &mut TaskProgress,
) -> Result<(), TaskError> {
    let found = observed.facts.get(key);
    if let Some(failure) = observed.facts.failures.get(key) {
        let request = if found.is_ok() { FailedRequest::Delete } else { FailedRequest::Get };
        if !is_stale(request, failure) {
            return Err(TaskError::api(request, key, failure, context.run.transient));
        }
        progress.needs.certainly.insert(key.clone());
        return Ok(());
    }
    match found {
        Err(_) => {
            progress.needs.certainly.insert(key.clone());
        }
        Ok(None) => {}
        Ok(Some(current)) => {
            if let Some(why) = why_kept(key, wanted, current) {
                progress.notes.push(why);
            } else if let Some(patch) = leave(context, current) {
                let resource_version = meta_str(current, "resourceVersion").unwrap_or_default().to_owned();
                progress.lane.push(Effect::Patch { key: key.clone(), resource_version, patch });
            } else if let Some(why) = why_foreign(context, key, current) {
                progress.notes.push(why);
            } else if meta_str(current, "deletionTimestamp").is_some() {
                progress.waiting.push(format!("{key} is being deleted"));
            } else {
                let field = |name| meta_str(current, name).unwrap_or_default().to_owned();
                progress.lane.push(Effect::Delete {
                    key: key.clone(),
                    uid: field("uid"),
                    resource_version: field("resourceVersion"),
                    propagation: Propagation::Foreground,
                });
            }
        }
    }
    Ok(())
}

/// The patch by which the Instance leaves a cluster-scoped object to the others that apply it.
fn leave(context: &TaskContext<'_>, current: &Value) -> Option<Value> {
    let cluster_scoped = meta_str(current, "namespace").is_none();
    sharing::leave(current, &context.run.instance.uid).filter(|_| cluster_scoped)
}

/// The report of an object that this Instance did not make: a task deletes only its own.
fn why_foreign(context: &TaskContext<'_>, key: &ObjectKey, current: &Value) -> Option<Note> {
    let owner = match adoption::ownership(current, context.run.instance, Adoption::Deny) {
        Ownership::Owned => return None,
        Ownership::Adopted => "no Instance made it".to_owned(),
        Ownership::Shared => "other Instances apply it".to_owned(),
        Ownership::Foreign(ForeignOwner::Unmanaged) => "no Instance made it".to_owned(),
        Ownership::Foreign(ForeignOwner::Instance(other)) => format!("it belongs to Instance {other}"),
        Ownership::Foreign(ForeignOwner::Controller(controller)) => {
            format!("it is controlled by {controller}")
        }
    };
    Some(kept_note(key, &owner))
}

/// The report of an object that is not deleted.
pub(in crate::engine) fn kept_note(key: &ObjectKey, why: &str) -> Note {
    let message = format!("{key} is kept: {why}; delete it yourself if it is not needed any more");
    Note { severity: Severity::Warning, reason: reason::KEPT.to_owned(), message }
}

/// Whether objects of a kind hold a user's data, and are never deleted.
pub(in crate::engine) fn is_data(gvk: &Gvk) -> bool {
    NEVER_DELETED.contains(&(gvk.group.as_str(), gvk.kind.as_str()))
}

/// The report of an object that Interlock must keep; the task counts it as deleted.
pub(in crate::engine) fn why_kept(key: &ObjectKey, wanted: &Value, current: &Value) -> Option<Note> {
    let annotated = |object: &Value| object["metadata"]["annotations"].get(meta::KEEP).is_some();
    let why = if is_data(&key.gvk) {
        "Interlock removes nothing that holds data".to_owned()
    } else if annotated(current) || annotated(wanted) {
        format!("it is annotated {}", meta::KEEP)
    } else {
        return None;
    };
    Some(kept_note(key, &why))
}
