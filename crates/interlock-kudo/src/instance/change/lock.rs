//! The lock: the one predicate that rules, policies and engine share.
//!
//! An Instance is locked when `spec.planExecution.planName` is set and not (the entry of that
//! plan in `status.planStatus` has the same uid and is terminal), or when any entry of
//! `status.planStatus` is running. So the status write that ends a run unlocks.

use crate::api::{ExecutionStatus, Instance};

/// The fields of an entry of `status.planStatus` that decide about the lock.
#[derive(Clone, Copy, Debug)]
pub struct LockEntry<'a> {
    /// Key in `planStatus`.
    pub plan: &'a str,
    /// Id of the execution, empty when there is none.
    pub uid: &'a str,
    pub status: &'a ExecutionStatus,
}

/// Why an Instance is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock<'a> {
    /// The plan that holds the lock.
    pub plan: &'a str,
    /// Id of its execution, empty where none was written.
    pub uid: &'a str,
    /// Its recorded state; `None` when it is scheduled and has no record yet.
    pub status: Option<&'a ExecutionStatus>,
}

/// Whether an entry of `planStatus` with the id `entry` records the run `uid`: without an id, none does.
pub fn records(entry: &str, uid: &str) -> bool {
    entry == uid && !uid.is_empty()
}

/// The lock that `planExecution` and `planStatus` imply, if any. `plan_name` and `uid` are those of
/// `spec.planExecution`, empty when absent.
pub fn lock<'a>(
    plan_name: &'a str,
    uid: &'a str,
    entries: impl Iterator<Item = LockEntry<'a>>,
) -> Option<Lock<'a>> {
    let mut scheduled = (!plan_name.is_empty()).then_some(Lock { plan: plan_name, uid, status: None });
    let mut running = None;
    for entry in entries {
        if entry.plan == plan_name && records(entry.uid, uid) {
            if entry.status.is_terminal() {
                scheduled = None;
            } else if let Some(lock) = &mut scheduled {
                lock.status = Some(entry.status);
            }
        }
        if entry.status.is_running() {
            running = running.or(Some(Lock { plan: entry.plan, uid: entry.uid, status: Some(entry.status) }));
        }
    }
    scheduled.or(running)
}

/// The lock of a typed Instance.
pub fn of(instance: &Instance) -> Option<Lock<'_>> {
    let execution = instance.spec.plan_execution.as_ref();
    let entries = instance.status.iter().flat_map(|s| {
        s.plan_status.iter().map(|(plan, entry)| LockEntry { plan, uid: &entry.uid, status: &entry.status })
    });
    lock(execution.map_or("", |e| e.plan()), execution.map_or("", |e| e.uid()), entries)
}
