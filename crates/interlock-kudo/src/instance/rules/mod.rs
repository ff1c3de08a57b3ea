//! Instances: KUDO's rules (`pkg/webhook/instance_admission.go`) with the holes closed, the freeze, the
//! last-applied annotation and the history of runs.

pub mod status;

mod commands;
mod context;
mod create;
mod denials;
pub mod ids;
mod locked;
mod mutation;
mod plan_intent;
mod plan_request;
mod room;
mod type_errors;
mod unlocked;
mod update;

use interlock_core::admission::RuleContext;
use interlock_core::admission::decision::{Decision, Outcome};
use interlock_core::admission::request::{Operation, Request};
use interlock_core::admission::review::Annotations;

use self::context::{Evaluation, Rejection, name_of};
use self::mutation::Mutation;
use super::spec::SpecView;
use crate::instance::rules::ids::VERSION_MISSING;
use crate::time_limits;

/// Decides on an Instance: all rules collect violations, the object is completed, and then the decision
/// follows.
pub fn decide(request: &Request<'_>, context: &RuleContext<'_>) -> Decision {
    let operation = &request.operation;
    let evaluation = Evaluation::new(request, context);
    let completed = match operation {
        Operation::Create(object) => evaluation.create(object),
        Operation::Update(change) => evaluation.update(*change),
        Operation::Delete(_) => Ok(Decision::allow()),
    };
    let completed = completed.and_then(|completed| evaluation.requests(operation, completed));
    limits(&evaluation, operation);
    room::violation(&evaluation, operation).into_iter().for_each(|denial| evaluation.violations.push(denial));
    // The validating call denies instead: it runs after the policy that checks the user's read access,
    // and finds the same violations in the object as received.
    let asks_blindly = evaluation.asks_blindly();
    if asks_blindly {
        if evaluation.violations.refuse() {
            return Decision::allow();
        }
        evaluation.violations.clear();
    }
    match completed {
        Ok(mut completed) => {
            let awaited = evaluation.awaited.get().filter(|text| !asks_blindly && !text.is_empty());
            awaited.into_iter().for_each(|text| completed.warn(VERSION_MISSING, text));
            evaluation.violations.decide(completed)
        }
        Err(Rejection::Unreadable(denial)) => Decision::of(Outcome::Refuse(denial)),
        Err(Rejection::Wait(key)) => Decision::of(Outcome::Wait(key)),
    }
}

/// Restores the fields that Interlock owns on an Instance, and nothing else: evaluates no rule, and
/// schedules no plan.
pub fn restore(request: &Request<'_>, context: &RuleContext<'_>) -> Decision {
    let evaluation = Evaluation::new(request, context);
    let none = Annotations::default();
    let (object, before) = match &request.operation {
        Operation::Create(object) => (*object, &none),
        Operation::Update(change) => (change.object, &change.old.metadata.annotations),
        Operation::Delete(_) => return Decision::allow(),
    };
    if !context.endpoint.patches() {
        return Decision::allow();
    }
    let mut verdict = Mutation::restoring(before).finish(&evaluation, object, &SpecView::default());
    update::warn_restored(&mut verdict, &object.metadata.annotations, before);
    verdict
}

/// Denies unreadable time limits.
fn limits(evaluation: &Evaluation<'_>, operation: &Operation<'_>) {
    let (new, old) = match operation {
        Operation::Create(object) => (*object, None),
        Operation::Update(change) => (change.object, Some(change.old)),
        Operation::Delete(_) => return,
    };
    let what = || format!("Instance {}", name_of(evaluation.request, new));
    let object = || format!("instance {}", commands::object(&name_of(evaluation.request, new)));
    time_limits::violations(what, object, new, old).for_each(|denial| evaluation.violations.push(denial));
}
