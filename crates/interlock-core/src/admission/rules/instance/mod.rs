//! Instances: KUDO's rules (`pkg/webhook/instance_admission.go`) with the holes closed, the
//! freeze, the stamp and the history of runs.

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

use super::super::request::{Operation, Request};
use super::super::review::Annotations;
use super::super::spec::SpecView;
use super::super::verdict::{Outcome, Verdict};
use super::super::{Door, RuleContext};
use super::limits;
use ask::{Ask, Stop, name_of};
use desired::Desired;

/// Decides on an Instance: all rules collect what violates them, the object is completed, and then
/// it is decided.
pub(super) fn judge(request: &Request<'_>, operation: &Operation<'_>, context: &RuleContext<'_>) -> Verdict {
    let ask = Ask::new(request, context);
    let completed = match operation {
        Operation::Create(object) => ask.create(object),
        Operation::Update(change) => ask.update(*change),
        Operation::Delete(_) => Ok(Verdict::allow()),
    };
    let completed = completed.and_then(|completed| ask.requests(operation, completed));
    limits(&ask, operation);
    // The policy that asks whether the user may read it comes before the validating call, which finds
    // the same: in the object as it came, where it refuses it.
    if context.door == Door::Mutate && ask.looks_elsewhere.get() {
        if ask.violations.refuse() {
            return Verdict::allow();
        }
        ask.violations.clear();
    }
    match completed {
        Ok(completed) => ask.violations.decide(completed),
        Err(Stop::Unreadable(denial)) => Verdict::of(Outcome::Refuse(denial)),
        Err(Stop::Wait(key)) => Verdict::of(Outcome::Wait(key)),
    }
}

/// Puts back what is Interlock's own on an Instance, and nothing else: no rule is asked, and no plan
/// is scheduled.
pub(super) fn restore(
    request: &Request<'_>,
    operation: &Operation<'_>,
    context: &RuleContext<'_>,
) -> Verdict {
    let ask = Ask::new(request, context);
    let none = Annotations::default();
    let (object, before) = match operation {
        Operation::Create(object) => (*object, &none),
        Operation::Update(change) => (change.object, &change.old.metadata.annotations),
        Operation::Delete(_) => return Verdict::allow(),
    };
    if !context.door.patches() {
        return Verdict::allow();
    }
    let mut verdict = Desired::restored(before).settle(&ask, object, &SpecView::default());
    update::warn_undone(&mut verdict, &object.metadata.annotations, before);
    verdict
}

/// How long what may take can be read.
fn limits(ask: &Ask<'_>, operation: &Operation<'_>) {
    let (new, old) = match operation {
        Operation::Create(object) => (*object, None),
        Operation::Update(change) => (change.object, Some(change.old)),
        Operation::Delete(_) => return,
    };
    let what = || format!("Instance {}", name_of(ask.request, new));
    limits::violations(what, new, old).for_each(|denial| ask.violations.push(denial));
}
