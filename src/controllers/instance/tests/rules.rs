//! The rules of the protocol that the model can go without, one at a time, and what is then found.
//!
//! A rule is taken away where the process meets its surroundings (an answer, a write, a review), so that the code
//! under test stays as it is.

use interlock_core::api::meta;
use interlock_core::api::stamp::Envelope;
use interlock_kudo::api::Instance;
use interlock_kudo::instance::change::lock;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::super::view::InstanceView;
use super::package::key;

/// A rule that is taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Without {
    /// A write of the Instance counts only on the version that it was decided on. (All writes are conditional.)
    Versions,
    /// So does a later write of a child.
    ChildVersions,
    /// The first write of a child is a POST, which no object of that name survives unchanged.
    FirstWriteCreates,
    /// A run is proved to be current before its objects are written.
    Proof,
    /// The clear of `planExecution` carries a test on its uid.
    TestOfClear,
    /// A status tells of a step after its effects are there.
    EffectsFirst,
    /// A run writes the stamped spec, whatever the spec is meanwhile.
    StampedSpec,
    /// A run whose stamp is lost starts anew.
    LostStamp,
    /// The durable basis of drift is in status, where no edit drops it.
    Basis,
    /// The basis stays that of the last run, and the spec is compared with it.
    Drift,
    /// Plans that differences have triggered are owed until they are COMPLETE.
    Owed,
    /// A running entry that `planExecution` does not name is put back.
    PutBack,
    /// What admission would have refused is reported.
    Report,
    /// A stamp that status does not vouch for is judged before a run starts on it.
    Judgement,
    /// A locked Instance is frozen.
    Lock,
    /// Admission puts back a `planExecution` that a write leaves out.
    Restoration,
    /// A status that others have written is put back only by the holder of the lease.
    Holder,
    /// The finalizer keeps a deleted Instance until its cleanup has run.
    Finalizer,
}

impl Without {
    /// The Instance as the process sees it.
    pub fn seen(self, object: &Value) -> Value {
        let mut seen = object.clone();
        let instance = Instance::deserialize(object).unwrap();
        let running = lock::of(&instance).is_some();
        match self {
            Self::Drift if !running => follow_spec(&mut seen),
            Self::StampedSpec if running => {
                follow_spec(&mut seen);
                restamp(&mut seen);
            }
            Self::LostStamp if running && lost_stamp(object) => {
                follow_spec(&mut seen);
                restamp(&mut seen);
            }
            Self::PutBack => forget_unnamed(&mut seen, &instance),
            Self::Judgement => vouch(&mut seen),
            Self::Finalizer => seen["metadata"]["finalizers"] = json!([meta::FINALIZER]),
            _ => {}
        }
        seen
    }
}

/// Lets the basis be that of the present spec.
fn follow_spec(object: &mut Value) {
    let hash = view(object).hash;
    if object["status"]["lastApplied"].is_object() {
        object["status"]["lastApplied"]["hash"] = json!(hash);
    }
}

/// Lets the stamp be that of the present spec.
fn restamp(object: &mut Value) {
    let read = view(object);
    if let Some(stamp) = super::super::patches::stamp(&read, &read.spec) {
        object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(stamp);
    }
}

/// Whether the stamp is not that of the last run.
fn lost_stamp(object: &Value) -> bool {
    let read = view(object);
    let hash = read.stamp.as_ref().map(|stamp| &stamp.hash);
    read.basis.as_ref().is_some_and(|basis| hash != Some(&basis.hash))
}

/// Leaves out running entries that `planExecution` does not name.
fn forget_unnamed(seen: &mut Value, instance: &Instance) {
    let named = instance.spec.plan_execution.as_ref().map_or("", |execution| execution.uid());
    let entries = seen.pointer_mut("/status/planStatus").and_then(Value::as_object_mut);
    let found = |uid: &str| {
        instance
            .status
            .iter()
            .flat_map(|status| status.plan_status.values())
            .any(|entry| entry.uid == uid && entry.status.is_running())
    };
    if let Some(entries) = entries {
        entries.retain(|_, entry| entry["uid"].as_str().is_none_or(|uid| uid == named || !found(uid)));
    }
}

/// Lets the status vouch for the stamp.
fn vouch(object: &mut Value) {
    let stamp = object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC].as_str();
    let Some(stamp) = stamp.and_then(Envelope::parse).map(Envelope::into_owned) else { return };
    if object["status"]["lastApplied"].is_object() {
        object["status"]["lastApplied"]["previous"] = json!({"hash": stamp.hash});
    }
}

fn view(object: &Value) -> InstanceView {
    InstanceView::read(&key(), object.clone().into()).unwrap()
}
