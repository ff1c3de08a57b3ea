//! Instances: KUDO's rules (`pkg/webhook/instance_admission.go`) with the holes closed, the freeze, the
//! last-applied annotation and the history of runs.

pub mod status;

mod context;
mod create;
mod denials;
pub mod ids;
mod locked;
mod mutation;
mod plan_intent;
mod plan_request;
mod type_errors;
mod unlocked;
mod update;

use self::context::{Ask, Stop, name_of};
use self::mutation::Desired;
use super::spec::SpecView;
use crate::admission::decision::{Outcome, Verdict};
use crate::admission::request::{Operation, Request};
use crate::admission::review::Annotations;
use crate::admission::{RuleContext, WebhookEndpoint};
use crate::kinds::time_limits;

/// Decides on an Instance: all rules collect violations, the object is completed, and then the decision
/// follows.
pub fn decide(request: &Request<'_>, context: &RuleContext<'_>) -> Verdict {
    let operation = &request.operation;
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
    if context.endpoint == WebhookEndpoint::Mutate && ask.looks_elsewhere.get() {
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
pub fn restore(request: &Request<'_>, context: &RuleContext<'_>) -> Verdict {
    let ask = Ask::new(request, context);
    let none = Annotations::default();
    let (object, before) = match &request.operation {
        Operation::Create(object) => (*object, &none),
        Operation::Update(change) => (change.object, &change.old.metadata.annotations),
        Operation::Delete(_) => return Verdict::allow(),
    };
    if !context.endpoint.patches() {
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
    time_limits::violations(what, new, old).for_each(|denial| ask.violations.push(denial));
}
