//! Plan requests on an Instance, and its runs as history entries.

use std::collections::BTreeSet;

use interlock_core::api::meta;
use interlock_core::api::object::annotation;
use interlock_kudo::api::{HeldObject, PlanStatus};
use interlock_kudo::instance::change::history;
use interlock_kudo::instance::change::lock::{self, LockEntry};
use interlock_kudo::instance::change::plan_request;
use interlock_kudo::instance::change::plan_request::{PendingRequest, PlanVerb, RequestResolution, Runs};

use super::context::InstanceContext;
use super::view::InstanceView;

/// The request, if it is valid and was written under the policy that guards it.
pub(super) fn asked(ctx: &InstanceContext, subject: &InstanceView) -> Option<PendingRequest> {
    if !ctx.requests.guarded(subject) {
        return None;
    }
    subject.asked().ok().flatten()
}

/// The objects that a request lets the run take over that it starts.
pub(super) fn adopted(subject: &InstanceView, asked: &PendingRequest) -> BTreeSet<HeldObject> {
    let held = subject.requests.as_ref().filter(|_| asked.request.verb == PlanVerb::Adopt);
    let held = held.filter(|requests| requests.run == asked.request.run);
    held.map(|requests| requests.held_by.clone()).unwrap_or_default()
}

/// The objects that no Instance made and that a run takes over: as recorded, or, before it begins, as asked.
pub(super) fn adopts(ctx: &InstanceContext, subject: &InstanceView, run: &str) -> BTreeSet<HeldObject> {
    if let Some(requests) = subject.requests.as_ref().filter(|requests| requests.run == run) {
        return requests.adopts.clone();
    }
    let asked = asked(ctx, subject).filter(|asked| asked.new_run == run);
    asked.map(|asked| adopted(subject, &asked)).unwrap_or_default()
}

/// Whether a request ends or pauses a run.
pub(super) fn interrupts(ctx: &InstanceContext, subject: &InstanceView, run: &str) -> bool {
    asked(ctx, subject).is_some_and(|asked| {
        let verb = asked.request.verb;
        matches!(verb, PlanVerb::Abort { .. } | PlanVerb::Restart | PlanVerb::Pause)
            && asked.request.run == run
    })
}

/// The request that the clear of `planExecution` also removes.
pub(super) fn answered<'s>(ctx: &InstanceContext, subject: &'s InstanceView) -> Option<&'s str> {
    let asked = asked(ctx, subject)?;
    let entries = subject.entries();
    let entries: Vec<LockEntry<'_>> =
        entries.iter().map(|(plan, e)| LockEntry { plan, uid: &e.uid, status: &e.status }).collect();
    let (plan, uid, requests) = (subject.plan(), subject.plan_uid(), subject.requests.as_ref());
    let resolution = plan_request::resolve(&asked, Runs { plan, uid, entries: &entries, requests });
    let over = matches!(resolution, RequestResolution::Clear | RequestResolution::Done);
    annotation(&subject.object, meta::REQUEST).filter(|_| over)
}

/// A run as a history entry.
pub(super) fn run_of(
    ctx: &InstanceContext,
    subject: &InstanceView,
    plan: &str,
    entry: &PlanStatus,
) -> history::EndedRun {
    let ran = subject.basis.as_ref().and_then(|basis| basis.run.as_ref()).filter(|ran| ran.uid == entry.uid);
    let asked = asked(ctx, subject).filter(|asked| match asked.request.verb {
        PlanVerb::Abort { .. } | PlanVerb::Restart | PlanVerb::Pause | PlanVerb::Resume => {
            asked.request.run == entry.uid
        }
        PlanVerb::Retry | PlanVerb::Adopt => asked.new_run == entry.uid,
    });
    history::EndedRun {
        plan: plan.to_owned(),
        uid: entry.uid.clone(),
        hash: subject.basis.as_ref().map(|basis| basis.hash.clone()),
        result: entry.status.clone(),
        start: ran.map(|ran| ran.started),
        end: entry.last_updated_timestamp.as_ref().map(|time| time.0).filter(|_| entry.status.is_terminal()),
        asked: asked.iter().map(history::CarriedOutRequest::from).collect(),
    }
}

/// The finished execution that `planExecution` names, for the history.
pub(super) fn finished_run(ctx: &InstanceContext, subject: &InstanceView) -> Option<history::EndedRun> {
    let entries = subject.entries();
    let entry = entries
        .get(subject.plan())
        .filter(|e| lock::records(&e.uid, subject.plan_uid()) && e.status.is_terminal())?;
    Some(run_of(ctx, subject, subject.plan(), entry))
}
