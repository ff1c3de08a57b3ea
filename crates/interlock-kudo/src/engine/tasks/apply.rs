//! The Apply task: creates or merges each object, then waits until all are healthy.

use std::collections::BTreeSet;

use interlock_core::api::object::{Gvk, ObjectKey, meta_str};
use interlock_core::effect::Effect;
use interlock_core::health;
use interlock_core::health::{Health, pods};
use interlock_core::reconcile::KindServed;
use interlock_core::rejection::Rejection;
use serde_json::Value;

use super::task_kind;
use super::task_kind::{TaskKind, Tasker, TemplateRef};
use crate::api::{HeldObject, Task, TaskSpec};
use crate::engine::adoption;
use crate::engine::adoption::{ForeignOwner, Ownership};
use crate::engine::dependencies_hash;
use crate::engine::dependencies_hash::Unset;
use crate::engine::enhance;
use crate::engine::enhance::WantedObject;
use crate::engine::errors::{FailedRequest, InvalidTask, TaskError, is_stale, reason};
use crate::engine::lookup::{Observed, TaskProgress};
use crate::engine::merge;
use crate::engine::merge::MergeError;
use crate::engine::ownership::TaskOwners;
use crate::engine::removed_apis;
use crate::engine::render::TaskContext;

/// The kind of task.
pub(super) struct Apply;

/// Maximum of objects that one error names as held.
const HELD: usize = 16;

#[derive(Debug)]
struct ApplyTask<'a> {
    resources: &'a [String],
}

impl TaskKind for Apply {
    fn name(&self) -> &'static str {
        "Apply"
    }

    fn build<'a>(&self, task: &'a Task) -> Result<Box<dyn Tasker + 'a>, InvalidTask> {
        let shown = format!("apply task '{}'", task.name.as_deref().unwrap_or_default());
        Ok(Box::new(ApplyTask { resources: task_kind::resources(&shown, task)? }))
    }

    fn templates<'a>(&self, spec: &'a TaskSpec) -> Vec<TemplateRef<'a>> {
        TemplateRef::resources(spec)
    }
}

impl Tasker for ApplyTask<'_> {
    fn applied(&self, _site: &TaskContext<'_>) -> &[String] {
        self.resources
    }

    fn advance(
        &self,
        context: &TaskContext<'_>,
        observed: &Observed,
        owners: &mut TaskOwners,
    ) -> Result<TaskProgress, TaskError> {
        task_kind::with_objects(context, self.resources, owners, |objects, owners| {
            advance(context, objects, observed, owners)
        })
    }
}

/// Advances a task with its objects.
pub(super) fn advance(
    context: &TaskContext<'_>,
    objects: Vec<Value>,
    observed: &Observed,
    owners: &TaskOwners,
) -> Result<TaskProgress, TaskError> {
    let mut progress = TaskProgress::default();
    let mut wanted = Vec::with_capacity(objects.len());
    for object in objects {
        match resolve(context, object, observed, owners)? {
            Resolved::Object(object) => wanted.push(object),
            Resolved::Lookup(gvk) => {
                progress.needs.kinds.insert(gvk);
            }
            Resolved::Waiting(why) => progress.waiting.push(why),
            Resolved::NotServed(gvk) => {
                progress.waiting.push(format!("the API server does not serve {gvk} yet"));
                progress.absent.insert(gvk);
            }
        }
    }
    progress.needs.objects.extend(missing(&wanted, observed));
    if progress.needs.is_empty() {
        match dependencies_hash::add(context, &mut wanted, observed, owners) {
            Ok(()) => {}
            Err(Unset::Needs(digests)) => progress.needs.digests = digests,
            Err(Unset::Waits(why)) => {
                progress.waiting.push(why);
                return Ok(progress);
            }
            Err(Unset::Failed(error)) => return Err(error),
        }
    }
    if progress.needs.is_empty() {
        add_writes(context, &wanted, observed, &mut progress)?;
    }
    let written = progress.needs.is_empty() && progress.lane.is_empty();
    if written {
        check_health(&wanted, observed, &mut progress)?;
    }
    progress.done = written && progress.waiting.is_empty();
    if progress.done {
        let converted = wanted.iter().filter_map(|w| removed_apis::note(&w.object, &w.key));
        progress.notes.extend(converted);
    }
    Ok(progress)
}

enum Resolved {
    Object(WantedObject),
    Lookup(Gvk),
    Waiting(String),
    /// The kind is not served, and no object of this call defines it.
    NotServed(Gvk),
}

fn resolve(
    context: &TaskContext<'_>,
    object: Value,
    observed: &Observed,
    owners: &TaskOwners,
) -> Result<Resolved, TaskError> {
    let gvk = Gvk::of(&object)
        .ok_or_else(|| TaskError::fatal(reason::RENDERING, "the object names no kind".to_owned()))?;
    let namespaced = match observed.facts.kinds.get(&gvk) {
        None => return Ok(Resolved::Lookup(gvk)),
        Some(KindServed::Namespaced) => true,
        Some(KindServed::Cluster) => false,
        Some(KindServed::NeverServed) if !owners.defines(&gvk) => return Err(unknown_kind(&gvk)),
        Some(KindServed::Undefined | KindServed::NotServed) if !owners.defines(&gvk) => {
            return Ok(Resolved::NotServed(gvk));
        }
        Some(KindServed::NeverServed | KindServed::Undefined | KindServed::NotServed) => {
            return Ok(Resolved::Waiting(format!("the API server does not serve {gvk} yet")));
        }
        Some(KindServed::Unknown) => {
            return Ok(Resolved::Waiting(format!("it is not known yet whether the API server serves {gvk}")));
        }
    };
    enhance::enhance(context, object, namespaced).map(Resolved::Object)
}

fn unknown_kind(gvk: &Gvk) -> TaskError {
    TaskError::fatal(
        reason::ENHANCEMENT,
        format!(
            "fatal error: failed to determine if object {gvk} is namespaced: a resource with GVK {gvk} seems to \
             be missing in API resource list"
        ),
    )
}

fn missing<'a>(wanted: &'a [WantedObject], observed: &'a Observed) -> impl Iterator<Item = ObjectKey> + 'a {
    let is_found = |key: &ObjectKey| {
        observed.facts.objects.contains_key(key) || observed.facts.failures.contains_key(key)
    };
    wanted.iter().filter(move |w| !is_found(&w.key)).map(|w| w.key.clone())
}

/// Builds the write batch, in order: the first object that failed stops it, as in KUDO.
fn add_writes(
    context: &TaskContext<'_>,
    wanted: &[WantedObject],
    observed: &Observed,
    progress: &mut TaskProgress,
) -> Result<(), TaskError> {
    for WantedObject { key, object } in wanted {
        let found = observed.facts.get(key);
        if let Some(failure) = observed.facts.failures.get(key) {
            let request = match found {
                Err(_) => FailedRequest::Get,
                Ok(None) => FailedRequest::Create,
                Ok(Some(_)) => FailedRequest::Patch,
            };
            if !is_stale(request, failure) {
                return Err(TaskError::api(request, key, failure, context.run.transient));
            }
            progress.needs.objects.insert(key.clone());
            return Ok(());
        }
        match found {
            Err(_) => {}
            Ok(None) => progress.lane.push(create(key, object)?),
            Ok(Some(current)) => match awaits_deletion(context, key, current) {
                Some(why) => progress.waiting.push(why),
                None => match ownership(context, key, current, observed) {
                    Ownership::Foreign(owner) => return Err(held(context, key, &owner, wanted, observed)),
                    ownership => progress.lane.extend(patch(context, key, object, current, &ownership)?),
                },
            },
        }
    }
    Ok(())
}

/// Why an object is not written now: it is about to disappear, and is created again afterwards.
fn awaits_deletion(context: &TaskContext<'_>, key: &ObjectKey, current: &Value) -> Option<String> {
    if meta_str(current, "deletionTimestamp").is_some() {
        return Some(format!("{key} is being deleted"));
    }
    let instance = context.run.instance;
    adoption::is_of_former(instance, current)
        .then(|| format!("{key} belongs to a former Instance {} and is about to be removed", instance.name))
}

fn create(key: &ObjectKey, wanted: &Value) -> Result<Effect, TaskError> {
    let object = merge::annotated(wanted)
        .map_err(|error| TaskError::fatal(reason::RENDERING, format!("failed to create {key}: {error}")))?;
    Ok(Effect::Create { object })
}

/// The ownership of an existing object; one that no Instance made is ours where the run takes it over.
fn ownership(context: &TaskContext<'_>, key: &ObjectKey, current: &Value, observed: &Observed) -> Ownership {
    let ownership = adoption::ownership(current, context.run.instance, observed.adoption);
    let taken = || adoption::held(key, current).is_some_and(|object| observed.adopts.contains(&object));
    match ownership {
        Ownership::Foreign(ForeignOwner::Unmanaged) if taken() => Ownership::Owned,
        ownership => ownership,
    }
}

/// The error about an object of others: it also names the other objects of the task that no Instance made.
fn held(
    context: &TaskContext<'_>,
    key: &ObjectKey,
    owner: &ForeignOwner,
    wanted: &[WantedObject],
    observed: &Observed,
) -> TaskError {
    let unmanaged = wanted.iter().filter_map(|w| {
        let Ok(Some(current)) = observed.facts.get(&w.key) else { return None };
        let owner = ownership(context, &w.key, current, observed);
        let held = adoption::held(&w.key, current)?;
        (owner == Ownership::Foreign(ForeignOwner::Unmanaged)).then_some((&w.key, held))
    });
    let mut cause = adoption::not_adopted(key, owner, context.run.instance);
    if *owner != ForeignOwner::Unmanaged {
        return TaskError::fatal(reason::NOT_ADOPTED, cause);
    }
    let (others, objects): (Vec<&ObjectKey>, BTreeSet<HeldObject>) = unmanaged.take(HELD).unzip();
    let rest: Vec<String> = others.iter().filter(|other| **other != key).map(ToString::to_string).collect();
    if !rest.is_empty() {
        cause.push_str("; the same holds for ");
        cause.push_str(&rest.join(", "));
    }
    TaskError::Held { objects, cause }
}

fn patch(
    context: &TaskContext<'_>,
    key: &ObjectKey,
    wanted: &Value,
    current: &Value,
    ownership: &Ownership,
) -> Result<Option<Effect>, TaskError> {
    let instance = context.run.instance;
    let failed = |error: MergeError| {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let cause = format!("failed to patch a {} {namespace}/{}: {error}", key.gvk, key.name);
        TaskError::fatal(reason::RENDERING, cause)
    };
    let wanted =
        adoption::with_ownership(wanted, current, ownership, instance).map_err(|e| failed(e.into()))?;
    let patch = merge::patch(&wanted, current, &instance.uid).map_err(failed)?;
    let resource_version = meta_str(current, "resourceVersion").unwrap_or_default().to_owned();
    Ok(patch.map(|patch| Effect::Patch { key: key.clone(), resource_version, patch }))
}

/// Waits for an object. Where the API server rejects its pods, the progress says so.
fn wait(key: &ObjectKey, current: &Value, mut why: String, observed: &Observed, progress: &mut TaskProgress) {
    let mut refused = pods::reported(current).is_some();
    // One without a UID is not made yet, but imagined: its controller has said nothing.
    if pods::lacks(current) && meta_str(current, "uid").is_some() {
        match observed.facts.pod_failures.get(key) {
            None => drop(progress.needs.pod_failures.insert(key.clone())),
            Some(Ok(report)) => {
                if let Some(rejection) = report.as_deref().and_then(pods::refused) {
                    why.push_str(&pods::told(&rejection));
                    refused = true;
                }
            }
            Some(Err(failure)) => {
                why.push_str("; its Events cannot be read: ");
                why.push_str(&Rejection::of(failure).message);
            }
        }
    }
    if refused {
        progress.refused.get_or_insert_with(|| why.clone());
    }
    progress.waiting.push(why);
}

fn check_health(
    wanted: &[WantedObject],
    observed: &Observed,
    progress: &mut TaskProgress,
) -> Result<(), TaskError> {
    for WantedObject { key, .. } in wanted {
        let Ok(Some(current)) = observed.facts.get(key) else { continue };
        match health::of(current) {
            Health::Healthy => {}
            Health::Waiting(why) => wait(key, current, format!("{key}: {why}"), observed, progress),
            Health::Failed(why) => {
                let namespace = key.namespace.as_deref().unwrap_or_default();
                let cause =
                    format!("object {namespace}/{} is NOT healthy: fatal error: HealthUtil: {why}", key.name);
                return Err(TaskError::fatal(reason::TERMINAL_STATE, cause));
            }
        }
    }
    Ok(())
}
