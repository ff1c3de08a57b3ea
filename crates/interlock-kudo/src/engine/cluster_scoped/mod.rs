//! Cluster-scoped objects that Instances make: no owner reference removes them, so they are listed in the inventory before
//! they are written, and go when the last Instance that lists them is deleted.
//!
//! What holds data stays, and so does what no Instance has made. A deletion ends whatever becomes of them: what may not be
//! deleted, or fails for too long, is left and named.

use std::collections::BTreeSet;

use interlock_core::api::inventory::ListedObject;
use interlock_core::api::meta;
use interlock_core::api::meta::plan::CLEANUP;
use interlock_core::api::object::{Gvk, ObjectKey, annotation, meta_str};
use interlock_core::api::rule::Rule;
use interlock_core::effect::{ApiFailure, Effect, Note, Propagation, Severity};
use interlock_core::reconcile::{KindServed, Lookup, Needs};

use super::errors::{FailedRequest, TaskError, is_stale, reason};
use super::lookup::Observed;
use super::run::Run;
use super::sharing;
use super::tasks::delete::is_data;

/// Events about what is left; the last one counts the rest.
const MOST_EVENTS: usize = 8;

/// The cluster-scoped objects that a run makes, or has made, as far as it sees them. A cleanup lists only what it makes
/// itself, as it removes the others.
pub(super) fn made(run: &Run<'_>, observed: &Observed, effects: &[Vec<Effect>]) -> BTreeSet<ListedObject> {
    let (uid, lasts) = (run.instance.uid.as_str(), run.plan != CLEANUP);
    let written = effects.iter().flatten().filter_map(|effect| match effect {
        Effect::Create { object } => ObjectKey::of(object),
        // The patch by which it joins those that apply the object.
        Effect::Patch { key, patch, .. } if lasts && sharing::names(patch, uid) => Some(key.clone()),
        _ => None,
    });
    let there = observed.facts.objects.iter().filter(|(_, found)| match found {
        Lookup::Found(object) => lasts && sharing::names(object, uid),
        Lookup::Absent | Lookup::Forbidden => false,
    });
    let keys = written.chain(there.map(|(key, _)| key.clone()));
    let kept = keys.filter(|key| key.namespace.is_none() && !is_data(&key.gvk));
    kept.map(|ObjectKey { gvk, name, .. }| ListedObject { gvk, name }).collect()
}

/// What is to be done about the cluster-scoped objects of an Instance that is deleted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Release {
    /// What it lacks, which comes first.
    pub needs: Needs,
    /// Writes; each is about another object.
    pub effects: Vec<Vec<Effect>>,
    /// Objects that are left for good.
    pub left: Vec<LeftObject>,
    /// Objects that may be removed later.
    pub waits: Vec<LeftObject>,
}

/// An object that is not removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftObject {
    pub key: ObjectKey,
    pub why: String,
    /// What is known of it.
    pub found: Remainder,
}

/// What is known of an object that is not removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remainder {
    /// The Instance was the last that applied it.
    Last,
    /// Others apply it; it goes on naming this one.
    Shared,
    /// It could not be read.
    Unread,
}

/// Advances the removal of what an inventory lists, as far as its lookups allow: objects with a namespace are not removed by it.
pub fn release<'l>(
    uid: &str,
    listed: impl IntoIterator<Item = &'l ListedObject>,
    observed: &Observed,
    transient: &[Rule],
) -> Release {
    let mut release = Release::default();
    for listed in listed.into_iter().filter(|listed| !is_data(&listed.gvk)) {
        let key = ObjectKey { gvk: listed.gvk.clone(), namespace: None, name: listed.name.clone() };
        let why = match observed.facts.kinds.get(&key.gvk) {
            None => {
                release.needs.kinds.insert(key.gvk);
                continue;
            }
            Some(KindServed::Cluster) => None,
            // Its objects are of a namespace, or gone.
            Some(KindServed::Namespaced | KindServed::Undefined | KindServed::NeverServed) => continue,
            Some(KindServed::NotServed) => Some(format!("the API server does not serve {} now", key.gvk)),
            Some(KindServed::Unknown) => {
                Some(format!("it is not known yet whether the API server serves {}", key.gvk))
            }
        };
        match why {
            Some(why) => release.waits.push(LeftObject { key, why, found: Remainder::Unread }),
            None => remove(uid, key, observed, transient, &mut release),
        }
    }
    release
}

fn remove(uid: &str, key: ObjectKey, observed: &Observed, transient: &[Rule], release: &mut Release) {
    let looked_up = observed.facts.get(&key);
    let is_unknown = looked_up.is_err();
    let current = looked_up.ok().flatten().map(AsRef::as_ref);
    if let Some(failure) = observed.facts.failures.get(&key) {
        let found = match current {
            None => Remainder::Unread,
            Some(current) if sharing::leave(current, uid).is_some() => Remainder::Shared,
            Some(_) => Remainder::Last,
        };
        return failed(key, found, failure, transient, release);
    }
    let Some(current) = current else {
        if is_unknown {
            release.needs.certainly.insert(key);
        }
        return;
    };
    let goes = meta_str(current, "deletionTimestamp").is_some();
    if goes || !sharing::names(current, uid) {
        return;
    }
    let field = |name| meta_str(current, name).unwrap_or_default().to_owned();
    let resource_version = field("resourceVersion");
    if let Some(patch) = sharing::leave(current, uid) {
        release.effects.push(vec![Effect::Patch { key, resource_version, patch }]);
    } else if annotation(current, meta::KEEP).is_some() {
        let why = format!("it is annotated {}", meta::KEEP);
        release.left.push(LeftObject { key, why, found: Remainder::Last });
    } else {
        let (uid, propagation) = (field("uid"), Propagation::Background);
        release.effects.push(vec![Effect::Delete { key, uid, resource_version, propagation }]);
    }
}

fn failed(key: ObjectKey, found: Remainder, failure: &ApiFailure, transient: &[Rule], release: &mut Release) {
    let request = match found {
        Remainder::Unread => FailedRequest::Get,
        Remainder::Shared => FailedRequest::Patch,
        Remainder::Last => FailedRequest::Delete,
    };
    if is_stale(request, failure) {
        release.needs.certainly.insert(key);
        return;
    }
    let (list, why) = match TaskError::api(request, &key, failure, transient) {
        TaskError::Transient(why) | TaskError::Interrupted(why) => (&mut release.waits, why),
        TaskError::Rejected(kind, why) if !kind.needs_person() => (&mut release.waits, why),
        TaskError::Rejected(_, why)
        | TaskError::Fatal { cause: why, .. }
        | TaskError::Held { cause: why, .. } => (&mut release.left, why),
        TaskError::Build(error) => (&mut release.left, error.to_string()),
    };
    list.push(LeftObject { key, why, found });
}

/// The Events about objects that an Instance of this name leaves, each with the command that removes it.
pub fn told(left: &[LeftObject], instance: &str) -> Vec<Note> {
    let reason = reason::KEPT.to_owned();
    let note = |message| Note { severity: Severity::Warning, reason: reason.clone(), message };
    let named = left.iter().take(MOST_EVENTS).map(|LeftObject { key, why, found }| {
        let object = format!("{} {}", resource(&key.gvk), key.name);
        note(match found {
            Remainder::Last => {
                format!("{key} of Instance {instance} is left: {why}; `kubectl delete {object}` removes it")
            }
            Remainder::Shared => {
                format!("{key} goes on naming Instance {instance} among those that apply it: {why}")
            }
            Remainder::Unread => {
                format!("{key} of Instance {instance} may be left: {why}; see `kubectl get {object}`")
            }
        })
    });
    let rest = left.len().saturating_sub(MOST_EVENTS);
    let others = (rest > 0)
        .then(|| note(format!("{rest} more cluster-scoped objects of Instance {instance} are left")));
    named.chain(others).collect()
}

/// The Event about the objects of a kind that an Instance of this name may leave, as they could not be listed.
pub fn unlisted(gvk: &Gvk, why: &str, (instance, uid): (&str, &str)) -> Note {
    let (resource, label) = (resource(gvk), meta::INSTANCE_UID);
    let message = format!(
        "objects of the kind {} of Instance {instance} may be left: {why}; see `kubectl get {resource} -l {label}={uid}`",
        gvk.kind
    );
    Note { severity: Severity::Warning, reason: reason::KEPT.to_owned(), message }
}

/// Whether objects of a kind may be deleted with their Instance: they hold no data.
pub fn may_go(gvk: &Gvk) -> bool {
    !is_data(gvk)
}

/// A kind as kubectl takes it.
fn resource(gvk: &Gvk) -> String {
    let kind = gvk.kind.to_lowercase();
    if gvk.group.is_empty() { kind } else { format!("{kind}.{}", gvk.group) }
}

#[cfg(test)]
mod tests;
