//! Instances: KUDO's rules (`pkg/webhook/instance_admission.go`) with the holes closed, the
//! freeze, and the stamp.

mod ask;
mod asked;
mod create;
mod desired;
mod locked;
mod misfit;
mod refusals;
mod unlocked;
mod update;
mod verbs;

use std::cell::{Cell, RefCell};

use super::super::request::{Operation, Request};
use super::super::verdict::{Outcome, Verdict};
use super::super::{Context, Door};
use super::limits;
use crate::plan::bench::Bench;
use ask::{Ask, Stop, name_of};

/// Decides on an Instance.
pub(super) fn judge(request: &Request<'_>, operation: &Operation<'_>, context: &Context<'_>) -> Verdict {
    let bench = Bench::new(context.view.actions(request.namespace));
    let (passed, looks_elsewhere) = (RefCell::default(), Cell::default());
    let ask = Ask { request, context, bench, passed, looks_elsewhere };
    let decided = match operation {
        Operation::Create(object) => ask.create(object),
        Operation::Update(change) => ask.update(*change),
        Operation::Delete(_) => Ok(Verdict::allow()),
    };
    let decided = decided.and_then(|verdict| ask.requests(operation, verdict));
    match decided.and_then(|verdict| timed(&ask, operation).map(|()| verdict)) {
        Ok(verdict) => tell(ask, verdict, operation),
        // The policy that asks whether the user may read it comes before the validating call.
        Err(Stop::Refused(_)) if context.door == Door::Mutate && ask.looks_elsewhere.get() => {
            Verdict::allow()
        }
        Err(Stop::Refused(refusal)) => Verdict::of(Outcome::Refuse(refusal)),
        Err(Stop::Wait(key)) => Verdict::of(Outcome::Wait(key)),
    }
}

/// How long what may take can be read.
fn timed(ask: &Ask<'_>, operation: &Operation<'_>) -> Result<(), Stop> {
    let (new, old) = match operation {
        Operation::Create(object) => (*object, None),
        Operation::Update(change) => (change.object, Some(change.old)),
        Operation::Delete(_) => return Ok(()),
    };
    let what = || format!("Instance {}", name_of(ask.request, new));
    limits::judge(what, new, old).map_err(Stop::Refused)
}

/// Tells what would have been refused.
fn tell(ask: Ask<'_>, mut verdict: Verdict, operation: &Operation<'_>) -> Verdict {
    let passed = ask.passed.take();
    let told = ask.bench.told();
    if passed.is_empty() && told.is_empty() {
        return verdict;
    }
    passed.iter().for_each(|refusal| verdict.admit(refusal.rule, &refusal.sentence));
    let (object, creation) = match operation {
        Operation::Create(object) => (*object, true),
        Operation::Update(change) => (change.old, false),
        Operation::Delete(old) => (*old, false),
    };
    let instance = name_of(ask.request, object);
    for objection in told {
        let rule = objection.rule;
        let objection = if creation { create::at_creation(objection) } else { objection };
        verdict.admit(rule, &objection.full(&instance));
    }
    verdict
}
