//! Instances: KUDO's rules (`pkg/webhook/instance_admission.go`) with the holes closed, the freeze, the
//! last-applied annotation and the history of runs.

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
use super::super::{RuleContext, WebhookEndpoint};
use super::limits;
use ask::{Ask, Stop, name_of};
use desired::Desired;

/// Decides on an Instance: all rules collect violations, the object is completed, and then the decision
/// follows.
pub(super) fn judge(request: &Request<'_>, operation: &Operation<'_>, context: &RuleContext<'_>) -> Verdict {
    let ask = Ask::new(request, context);
    let completed = match operation {
        Operation::Create(object) => ask.create(object),
        Operation::Update(change) => ask.update(*change),
        Operation::Delete(_) => Ok(Verdict::allow()),
    };
    let completed = completed.and_then(|completed| ask.requests(operation, completed));
    limits(&ask, operation);
    // The validating call denies instead: it runs after the policy that checks the user's read access,
    // and finds the same violations in the object as received.
    if context.door == WebhookEndpoint::Mutate && ask.looks_elsewhere.get() {
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

/// Restores the fields that Interlock owns on an Instance, and nothing else: evaluates no rule, and
/// schedules no plan.
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

/// Denies unreadable time limits.
fn limits(ask: &Ask<'_>, operation: &Operation<'_>) {
    let (new, old) = match operation {
        Operation::Create(object) => (*object, None),
        Operation::Update(change) => (change.object, Some(change.old)),
        Operation::Delete(_) => return,
    };
    let what = || format!("Instance {}", name_of(ask.request, new));
    limits::violations(what, new, old).for_each(|denial| ask.violations.push(denial));
}
