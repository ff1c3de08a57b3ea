//! Ownership of objects by the tasks of a run.

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::api::object::{Gvk, ObjectKey, meta_str};
use interlock_core::effect::Effect;
use serde_json::Value;

use super::lookup::TaskObject;
use super::render::TaskContext;

/// State shared by the tasks of one call: the owner of each object, what is being written, and the kinds being
/// defined.
///
/// An object that several unfinished tasks name belongs to the first of them, in plan order, until
/// that task is done: otherwise concurrent tasks would undo each other's writes for ever.
#[derive(Debug, Default)]
pub struct TaskOwners {
    owners: BTreeMap<TaskObject, String>,
    /// Group and kind that a CustomResourceDefinition among the objects of this call defines.
    defined: BTreeSet<(String, String)>,
    /// The task that writes an object now.
    writers: BTreeMap<ObjectKey, String>,
}

impl TaskOwners {
    /// Claims objects for a task; the text names another task that has one of them.
    pub fn claim(&mut self, context: &TaskContext<'_>, objects: &[Value]) -> Option<String> {
        let path = context.path();
        let mut taken = None;
        for object in objects {
            self.define(object);
            let Some(subject) = subject(object) else { continue };
            let owner = self.owners.entry(subject.clone()).or_insert_with(|| path.clone());
            if *owner != path {
                let TaskObject { kind, name, .. } = subject;
                taken = taken.or_else(|| Some(format!("{kind} {name} is being changed by task {owner}")));
            }
        }
        taken
    }

    fn define(&mut self, object: &Value) {
        if object["kind"] == "CustomResourceDefinition" {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let spec = &object["spec"];
            self.defined.insert((text(&spec["group"]), text(&spec["names"]["kind"])));
        }
    }

    pub fn record(&mut self, context: &TaskContext<'_>, writes: &[Effect]) {
        self.writers.extend(writes.iter().filter_map(Effect::key).map(|key| (key, context.path())));
    }

    /// The task that writes an object in this call: what is known of the object is about to change.
    pub fn writer(&self, key: &ObjectKey) -> Option<&str> {
        self.writers.get(key).map(String::as_str)
    }

    /// Releases the objects of a task that is done.
    pub fn release(&mut self, context: &TaskContext<'_>) -> BTreeSet<TaskObject> {
        let path = context.path();
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

    /// Whether a kind will be served once one of these CustomResourceDefinitions is established.
    pub fn defines(&self, gvk: &Gvk) -> bool {
        self.defined.contains(&(gvk.group.clone(), gvk.kind.clone()))
    }
}

fn subject(object: &Value) -> Option<TaskObject> {
    Some(TaskObject::new(&Gvk::of(object)?, meta_str(object, "name")?))
}
