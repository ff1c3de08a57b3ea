//! Child Instances that a package no longer installs, as its KudoOperator task is gone or names another one.
//!
//! The plan of an upgrade removes them as the last part of its run: what a plan that fails leaves is kept. Only what the
//! inventory lists as made by such a task counts, and of that only what an owner reference gives to this Instance alone.
//! The run does not wait until they are gone, and does not fail where they may not be deleted.

use std::collections::BTreeSet;

use interlock_core::api::inventory::{CHILDREN, ListedObject, ObjectInventory};
use interlock_core::api::meta;
use interlock_core::api::object::{ObjectKey, meta_str};
use interlock_core::effect::{Effect, Note, Propagation, Severity};
use serde_json::Value;

use super::errors::{FailedRequest, TaskError, is_stale, reason};
use super::lookup::{Observed, TaskProgress};
use super::run::Run;
use super::tasks::delete::{kept_note, why_kept};
use crate::package::{dependencies, trigger};

/// The children that the plan of a run makes.
pub fn made(run: &Run<'_>) -> BTreeSet<ListedObject> {
    let names = dependencies::children_of_plan(run.package, run.plan, &run.instance.name);
    names.into_iter().map(ListedObject::child).collect()
}

/// Whether the plan of a run may have to remove children: it is that of an upgrade, and the Instance owns Instances that
/// no task of its package names.
pub fn is_due(run: &Run<'_>, observed: &Observed) -> bool {
    trigger::upgrade_plan(run.package) == Some(run.plan)
        && !observed.children.is_subset(&dependencies::children(run.package, &run.instance.name))
}

/// The removal of children.
#[derive(Debug, Default)]
pub struct Removal {
    pub progress: TaskProgress,
    /// The children that the inventory lists once it is done: those that are named, and those that may not be deleted.
    pub left: BTreeSet<ListedObject>,
}

/// Removes the children that no task names.
///
/// # Errors
/// Of a request that is tried again.
pub fn advance(
    run: &Run<'_>,
    inventory: &ObjectInventory,
    observed: &Observed,
) -> Result<Removal, TaskError> {
    let named = dependencies::children(run.package, &run.instance.name);
    let (mut removal, mut removed, mut kept) = (Removal::default(), Vec::new(), Vec::new());
    for child in inventory.of(CHILDREN) {
        if named.contains(&child.name) {
            removal.left.insert(child.clone());
            continue;
        }
        let key = child.within(&run.instance.namespace);
        match next(run, &key, child, observed)? {
            Next::Look => drop(removal.progress.needs.certainly.insert(key)),
            Next::Nothing => {}
            Next::Keep(note) => kept.push(note),
            Next::Refused(note) => {
                kept.push(note);
                removal.left.insert(child.clone());
            }
            Next::Delete(effect, note) => {
                removal.progress.lane.push(effect);
                removed.push(note);
            }
        }
    }
    let TaskProgress { done, lane, needs, notes, .. } = &mut removal.progress;
    if !needs.is_empty() {
        lane.clear();
    } else if lane.is_empty() {
        *done = true;
        *notes = kept;
    } else {
        *notes = removed;
    }
    Ok(removal)
}

/// What is done about a child that no task names.
enum Next {
    Look,
    Nothing,
    Keep(Note),
    Refused(Note),
    Delete(Effect, Note),
}

fn next(
    run: &Run<'_>,
    key: &ObjectKey,
    child: &ListedObject,
    observed: &Observed,
) -> Result<Next, TaskError> {
    let found = observed.facts.get(key);
    if let Some(failure) = observed.facts.failures.get(key) {
        let request = if found.is_ok() { FailedRequest::Delete } else { FailedRequest::Get };
        if is_stale(request, failure) {
            return Ok(Next::Look);
        }
        let cause = match TaskError::api(request, key, failure, run.transient) {
            TaskError::Rejected(kind, cause) if kind.needs_person() => cause,
            TaskError::Fatal { cause, .. } => cause,
            error => return Err(error),
        };
        let version = &run.package.key;
        let why =
            format!("OperatorVersion {version} no longer installs it, and it could not be deleted: {cause}");
        return Ok(Next::Refused(kept_note(key, &why)));
    }
    Ok(match found {
        Err(_) => Next::Look,
        Ok(None) => Next::Nothing,
        Ok(Some(current)) if meta_str(current, "deletionTimestamp").is_some() => Next::Nothing,
        Ok(Some(current)) => match why_left(run, key, child, current) {
            Some(note) => Next::Keep(note),
            None => delete(run, key, current),
        },
    })
}

/// The report of a child that is not for this Instance to delete.
fn why_left(run: &Run<'_>, key: &ObjectKey, child: &ListedObject, current: &Value) -> Option<Note> {
    let references = || current["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let ours = |reference: &Value| reference["uid"] == run.instance.uid.as_str();
    if !references().any(ours) {
        return Some(kept_note(key, "no owner reference of it names this Instance"));
    }
    if let Some(other) = references().find(|reference| !ours(reference)) {
        let text = |field: &str| other[field].as_str().unwrap_or_default();
        return Some(kept_note(key, &format!("{} {} owns it as well", text("kind"), text("name"))));
    }
    let mut templates = run.package.spec.templates.iter().flatten();
    if let Some((file, _)) = templates.find(|(_, text)| text.contains(meta::KUDO_API_VERSION)) {
        return Some(kept_note(key, &format!("template {file} of {} may apply it", run.package.key)));
    }
    why_kept(key, &child.manifest(), current)
}

/// Deletes a child in the background: its objects are there while its cleanup runs.
fn delete(run: &Run<'_>, key: &ObjectKey, current: &Value) -> Next {
    let field = |name| meta_str(current, name).unwrap_or_default().to_owned();
    let effect = Effect::Delete {
        key: key.clone(),
        uid: field("uid"),
        resource_version: field("resourceVersion"),
        propagation: Propagation::Background,
    };
    let message = format!("{key} is deleted: OperatorVersion {} no longer installs it", run.package.key);
    let note = Note { severity: Severity::Normal, reason: reason::CHILD_REMOVED.to_owned(), message };
    Next::Delete(effect, note)
}
