//! What the model remembers of a path: which runs started on which spec, and what was broken on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use interlock_core::api::meta::{LAST_APPLIED_SPEC, plan};
use interlock_core::api::object::annotation;
use interlock_kudo::api::ExecutionStatus;
use interlock_kudo::instance::change::lock;
use serde_json::Value;

use super::super::view::InstanceView;
use super::objects::Objects;
use super::package::{CLEANED, DEPLOYED, UPDATED, key};

/// The parameters of a spec.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Params {
    pub a: String,
    pub b: String,
    pub c: String,
}

impl Params {
    pub fn of(parameters: &Value) -> Self {
        let text = |name: &str| parameters[name].as_str().unwrap_or_default().to_owned();
        Self { a: text("A"), b: text("B"), c: text("C") }
    }

    /// Whether the data of a ConfigMap is made from them.
    pub fn makes(&self, data: &Value) -> bool {
        data["A"] == self.a.as_str() && data["B"] == self.b.as_str()
    }
}

/// A run, and the parameters that it started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub uid: String,
    pub params: Params,
}

#[derive(Clone, Default)]
pub struct Ledger {
    /// The parameters of every spec that was written, by its hash.
    specs: BTreeMap<String, Params>,
    /// The last run of each plan.
    pub runs: BTreeMap<String, Started>,
    /// Every run.
    pub uids: BTreeSet<String>,
    /// The parameters of the first run, and of the last one.
    pub first: Option<Params>,
    pub last: Option<Params>,
    /// The run that admission has promised to a user.
    pub promised: Option<String>,
    /// Whether `cleanup` has become COMPLETE.
    pub cleaned: bool,
    /// Whether an Event says that it does not run.
    pub skipped: bool,
    pub broken: Option<String>,
}

impl Ledger {
    /// A spec of this hash may be run from now on.
    pub fn knows(&mut self, hash: &str, params: Params) {
        self.specs.insert(hash.to_owned(), params);
    }

    /// Whether it may be.
    pub fn is_known(&self, hash: &str) -> bool {
        self.specs.contains_key(hash)
    }

    pub fn breaks(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    /// A new state of the Instance.
    pub fn instance_written(&mut self, before: Option<&Value>, after: &Arc<Value>, objects: &Objects) {
        let view = InstanceView::read(&key(), after.clone()).unwrap();
        self.knows(view.hash.as_str(), Params::of(&after["spec"]["parameters"]));
        let before = before.map(|before| InstanceView::read(&key(), Arc::new(before.clone())).unwrap());
        let entries = view.entries();
        let running: Vec<&String> =
            entries.iter().filter(|(_, entry)| entry.status.is_running()).map(|(plan, _)| plan).collect();
        if running.len() > 1 {
            self.breaks(format!("several plans run: {running:?}"));
        }
        for (plan, entry) in entries.iter() {
            if entry.status == ExecutionStatus::NeverRun {
                continue;
            }
            if entry.uid.is_empty() {
                self.breaks(format!("plan {plan} runs without a uid"));
            }
            if self.uids.insert(entry.uid.clone()) {
                self.start(plan, &entry.uid, &view);
            }
            let ended = before.as_ref().and_then(|before| before.entries().get(plan).cloned());
            let ended = ended.is_some_and(|old| old.uid == entry.uid && old.status == entry.status);
            if entry.status == ExecutionStatus::Complete && !ended {
                self.complete(plan, objects);
            }
        }
    }

    fn start(&mut self, plan: &str, uid: &str, view: &InstanceView) {
        let Some(basis) = &view.basis else {
            return self.breaks(format!("plan {plan} starts, and no status tells on which spec"));
        };
        let Some(params) = self.specs.get(basis.hash.as_str()).cloned() else {
            return self.breaks(format!("plan {plan} starts on a spec that nobody wrote"));
        };
        let first = self.first.get_or_insert_with(|| params.clone());
        if first.c != params.c {
            self.breaks(format!("plan {plan} starts on a spec that admission refuses: {params:?}"));
        }
        self.last = Some(params.clone());
        self.runs.insert(plan.to_owned(), Started { uid: uid.to_owned(), params });
    }

    /// A plan has become COMPLETE.
    fn complete(&mut self, plan: &str, objects: &Objects) {
        let Some(run) = self.runs.get(plan) else { return };
        let made = match plan {
            plan::CLEANUP => {
                if let Some(left) = CLEANED.iter().find(|name| objects.data(name).is_some()) {
                    self.breaks(format!("plan cleanup is COMPLETE, and {left} is there"));
                }
                self.cleaned = true;
                return;
            }
            plan::UPDATE => UPDATED,
            _ => DEPLOYED,
        };
        let wrong = made.iter().find(|name| !objects.data(name).is_some_and(|data| run.params.makes(data)));
        if let Some(name) = wrong {
            let (found, wanted) = (objects.data(name), &run.params);
            self.breaks(format!("plan {plan} is COMPLETE, and {name} is {found:?}, not of {wanted:?}"));
        }
    }

    /// A process has written a child. What one makes that wakes up while the Instance is being deleted goes with it.
    pub fn child_written(&mut self, child: &Value, owner: Option<&Value>) {
        let stays = owner.is_some_and(|owner| owner["metadata"]["deletionTimestamp"].is_null());
        let is_of_last = self.last.as_ref().is_some_and(|params| params.makes(&child["data"]));
        if stays && !is_of_last {
            let (name, data) = (&child["metadata"]["name"], &child["data"]);
            self.breaks(format!("{name} becomes {data}, which is not of the last run: {:?}", self.last));
        }
    }

    /// The Instance is gone. What a process makes that wakes up after `cleanup` goes with its owner; and where admission
    /// refuses every spec that it could run on, an Event says so.
    pub fn instance_gone(&mut self, instance: &Value, objects: &Objects) {
        let left = CLEANED.iter().find(|name| objects.data(name).is_some());
        let may_stay = self.cleaned || self.skipped && self.is_refused(instance);
        if let Some(left) = left.filter(|_| !may_stay) {
            self.breaks(format!("the Instance is gone, and its cleanup has not deleted {left}"));
        }
        self.promised = None;
    }

    /// Whether neither the spec nor the stamp is one that admission would have admitted.
    fn is_refused(&self, instance: &Value) -> bool {
        let refused = |spec: &Value| {
            self.first.as_ref().is_some_and(|first| first.c != Params::of(&spec["parameters"]).c)
        };
        let stamp = annotation(instance, LAST_APPLIED_SPEC).map(serde_json::from_str::<Value>);
        refused(&instance["spec"]) && stamp.and_then(Result::ok).is_none_or(|stamp| refused(&stamp["spec"]))
    }

    /// Admission has admitted an edit.
    pub fn admitted(&mut self, before: &Value, after: &Value) {
        let read = |object: &Value| InstanceView::read(&key(), Arc::new(object.clone())).unwrap();
        let (old, new) = (read(before), read(after));
        if lock::of(&old.instance).is_some() && old.hash != new.hash {
            self.breaks("an edit of a locked Instance was admitted".to_owned());
        }
    }
}
