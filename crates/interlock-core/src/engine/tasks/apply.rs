//! The Apply task: creates or merges each object, then waits until all are healthy.

use serde_json::Value;

use super::task_kind;
use super::task_kind::{TaskKind, Tasker, TemplateRef};
use crate::api::interlock::Adoption;
use crate::api::kudo::{Task, TaskSpec};
use crate::api::meta;
use crate::api::object::{Gvk, ObjectKey, meta_str};
use crate::effect::Effect;
use crate::engine::adoption;
use crate::engine::adoption::Ownership;
use crate::engine::enhance;
use crate::engine::enhance::WantedObject;
use crate::engine::errors::{FailedRequest, InvalidTask, TaskError, is_stale, reason};
use crate::engine::health;
use crate::engine::health::Health;
use crate::engine::lookup::{Found, KindServed, Observed, Query, TaskProgress};
use crate::engine::merge;
use crate::engine::merge::MergeError;
use crate::engine::ownership::Claims;
use crate::engine::render::TaskContext;
use crate::engine::run::InstanceId;

/// The kind of task.
pub(super) struct Apply;

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
        site: &TaskContext<'_>,
        observed: &Observed,
        claims: &mut Claims,
    ) -> Result<TaskProgress, TaskError> {
        task_kind::with_objects(site, self.resources, claims, |objects, claims| {
            advance(site, objects, observed, claims)
        })
    }
}

/// Advances a task with its objects.
pub(super) fn advance(
    site: &TaskContext<'_>,
    objects: Vec<Value>,
    observed: &Observed,
    claims: &Claims,
) -> Result<TaskProgress, TaskError> {
    let mut progress = TaskProgress::default();
    let mut wanted = Vec::with_capacity(objects.len());
    for object in objects {
        match placed(site, object, observed, claims)? {
            Place::Known(object) => wanted.push(object),
            Place::Ask(need) => {
                progress.needs.insert(need);
            }
            Place::Later(why) => progress.waiting.push(why),
            Place::Absent(gvk) => {
                progress.waiting.push(format!("the API server does not serve {gvk} yet"));
                progress.absent.insert(gvk);
            }
        }
    }
    progress.needs.extend(unseen(&wanted, observed));
    if progress.needs.is_empty() {
        write(site, &wanted, observed, &mut progress)?;
    }
    let settled = progress.needs.is_empty() && progress.lane.is_empty();
    if settled {
        judge(&wanted, observed, &mut progress)?;
    }
    progress.done = settled && progress.waiting.is_empty();
    Ok(progress)
}

enum Place {
    Known(WantedObject),
    Ask(Query),
    Later(String),
    /// The kind is not served, and no object of this call defines it.
    Absent(Gvk),
}

fn placed(
    site: &TaskContext<'_>,
    object: Value,
    observed: &Observed,
    claims: &Claims,
) -> Result<Place, TaskError> {
    let gvk = Gvk::of(&object)
        .ok_or_else(|| TaskError::fatal(reason::RENDERING, "the object names no kind".to_owned()))?;
    let namespaced = match observed.kinds.get(&gvk) {
        None => return Ok(Place::Ask(Query::Kind(gvk))),
        Some(KindServed::Namespaced) => true,
        Some(KindServed::Cluster) => false,
        Some(KindServed::NeverServed) if !claims.promises(&gvk) => return Err(unknown_kind(&gvk)),
        Some(KindServed::Undefined | KindServed::NotServed) if !claims.promises(&gvk) => {
            return Ok(Place::Absent(gvk));
        }
        Some(KindServed::NeverServed | KindServed::Undefined | KindServed::NotServed) => {
            return Ok(Place::Later(format!("the API server does not serve {gvk} yet")));
        }
        Some(KindServed::Unknown) => {
            return Ok(Place::Later(format!("it is not known yet whether the API server serves {gvk}")));
        }
    };
    enhance::enhance(site, object, namespaced).map(Place::Known)
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

fn unseen<'a>(wanted: &'a [WantedObject], observed: &'a Observed) -> impl Iterator<Item = Query> + 'a {
    let seen = |key: &ObjectKey| observed.objects.contains_key(key) || observed.failures.contains_key(key);
    wanted.iter().filter(move |w| !seen(&w.key)).map(|w| Query::Object(w.key.clone()))
}

/// Builds the write batch, in order: the first object that failed stops it, as in KUDO.
fn write(
    site: &TaskContext<'_>,
    wanted: &[WantedObject],
    observed: &Observed,
    progress: &mut TaskProgress,
) -> Result<(), TaskError> {
    for WantedObject { key, object } in wanted {
        let seen = observed.objects.get(key);
        if let Some(failure) = observed.failures.get(key) {
            let request = match seen {
                None => FailedRequest::Get,
                Some(Found::Absent) => FailedRequest::Create,
                Some(Found::Present(_)) => FailedRequest::Patch,
            };
            if !is_stale(request, failure) {
                return Err(TaskError::api(request, key, failure, site.run.transient));
            }
            progress.needs.insert(Query::Object(key.clone()));
            return Ok(());
        }
        match seen {
            None => {}
            Some(Found::Absent) => progress.lane.push(create(key, object)?),
            Some(Found::Present(current)) => match leaving(site, key, current) {
                Some(why) => progress.waiting.push(why),
                None => progress.lane.extend(patch(site, key, object, current, observed.adoption)?),
            },
        }
    }
    Ok(())
}

/// Why an object is not written now: it is about to disappear, and is created again afterwards.
fn leaving(site: &TaskContext<'_>, key: &ObjectKey, current: &Value) -> Option<String> {
    if meta_str(current, "deletionTimestamp").is_some() {
        return Some(format!("{key} is being deleted"));
    }
    let instance = site.run.instance;
    belongs_to_former(instance, current)
        .then(|| format!("{key} belongs to a former Instance {} and is about to be removed", instance.name))
}

/// Whether an object belongs to another Instance that had the name of this one.
pub(crate) fn belongs_to_former(instance: &InstanceId, current: &Value) -> bool {
    let owners = current["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().any(|r| {
        r["controller"] == true
            && r["kind"] == "Instance"
            && r["apiVersion"].as_str().is_some_and(|v| v.starts_with(meta::KUDO_GROUP))
            && r["name"] == instance.name.as_str()
            && r["uid"] != instance.uid.as_str()
    })
}

fn create(key: &ObjectKey, wanted: &Value) -> Result<Effect, TaskError> {
    let object = merge::annotated(wanted)
        .map_err(|error| TaskError::fatal(reason::RENDERING, format!("failed to create {key}: {error}")))?;
    Ok(Effect::Create { object })
}

fn patch(
    site: &TaskContext<'_>,
    key: &ObjectKey,
    wanted: &Value,
    current: &Value,
    adoption: Adoption,
) -> Result<Option<Effect>, TaskError> {
    let instance = site.run.instance;
    let ownership = adoption::ownership(current, instance, adoption);
    if let Ownership::Foreign(owner) = &ownership {
        return Err(TaskError::fatal(reason::NOT_ADOPTED, adoption::refusal(key, owner, instance)));
    }
    let failed = |error: MergeError| {
        let namespace = key.namespace.as_deref().unwrap_or_default();
        let cause = format!("failed to patch a {} {namespace}/{}: {error}", key.gvk, key.name);
        TaskError::fatal(reason::RENDERING, cause)
    };
    let wanted = adoption::onto(wanted, current, &ownership, instance).map_err(|e| failed(e.into()))?;
    let patch = merge::patch(&wanted, current, &instance.uid).map_err(failed)?;
    let resource_version = meta_str(current, "resourceVersion").unwrap_or_default().to_owned();
    Ok(patch.map(|patch| Effect::Patch { key: key.clone(), resource_version, patch }))
}

fn judge(wanted: &[WantedObject], observed: &Observed, progress: &mut TaskProgress) -> Result<(), TaskError> {
    for WantedObject { key, .. } in wanted {
        let Some(Found::Present(current)) = observed.objects.get(key) else { continue };
        match health::of(current) {
            Health::Healthy => {}
            Health::Waiting(why) => progress.waiting.push(format!("{key}: {why}")),
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
