//! Writes of policies, and of what policies are attached to: what can never act is refused, and what a write would change
//! for others is said.

mod foresight;
pub mod ids;
mod judgement;
mod whole;
mod write;

use interlock_core::admission::RuleContext;
use interlock_core::admission::decision::Decision;
use interlock_core::admission::denial::Denial;
use interlock_core::admission::endpoint::WebhookEndpoint;
use interlock_core::admission::lister::{Aside, CacheState};
use interlock_core::admission::request::{Operation, Request};
use interlock_core::admission::review::ReviewObject;
use interlock_core::admission::violations::Violations;
use interlock_core::api::interlock::{Actions, RuleAction};
use interlock_core::api::resource::Resource;
use interlock_core::api::rule::RuleGroup;
use interlock_core::kinds::capabilities::ATTACHMENTS;
use interlock_core::kinds::inventory::ReadKinds;

use self::foresight::Foreseen;
use self::ids::{POLICY_COVERAGE, POLICY_EFFECT};
use self::write::Write;
use super::attachments::AttachmentGraph;

/// Warnings of one write. The API server cuts all that a request has at 4 KiB.
const WARNINGS: usize = 6;

/// Decides on a write of a policy, or of an object that policies are attached to.
pub(crate) fn decide(resource: &Resource, request: &Request<'_>, context: &RuleContext<'_>) -> Decision {
    let actions = context.lister.actions(request.namespace);
    let is_on = |group| actions.group(group) != RuleAction::Off;
    let is_off = !is_on(RuleGroup::Policies) && !is_on(RuleGroup::Coverage)
        || matches!(context.lister.cache(ATTACHMENTS.name), CacheState::Unavailable(_));
    if is_off || context.endpoint != WebhookEndpoint::Validate {
        return Decision::allow();
    }
    let (new, old) = match &request.operation {
        Operation::Create(object) => (Some(*object), None),
        Operation::Update(change) => (Some(change.object), Some(change.old)),
        Operation::Delete(object) => (None, Some(*object)),
    };
    if new.or(old).is_some_and(|object| object.metadata.deletion_timestamp.is_some()) {
        return Decision::allow();
    }
    let read = |object: &ReviewObject<'_>| write::object_of(resource, request, object);
    let write = Write { new: new.map(read), old: old.map(read) };
    // A tenant decides how many rules and paths there are.
    match context.lister.kinds().get::<dyn Aside>() {
        Some(aside) => {
            let mut decision = None;
            aside.run(&mut || decision = Some(judged(resource, &write, &actions, context)));
            decision.unwrap_or_else(Decision::allow)
        }
        None => judged(resource, &write, &actions, context),
    }
}

fn judged(resource: &Resource, write: &Write, actions: &Actions, context: &RuleContext<'_>) -> Decision {
    let is_on = |group| actions.group(group) != RuleAction::Off;
    let violations = Violations::new(*actions, context);
    let mut warnings = Vec::new();
    if is_on(RuleGroup::Policies) {
        let graph = context.lister.kinds().get::<AttachmentGraph>();
        let by_envoy = graph.is_some_and(|graph| graph.read(|linked| linked.enforcement.is_configured()));
        warnings = judgement::judge(resource, write, &violations, by_envoy);
    }
    if !violations.refuse() {
        let foreseen = foreseen(write, context);
        if is_on(RuleGroup::Policies) {
            warnings.extend(foreseen.warnings);
        }
        foreseen.uncovered.into_iter().for_each(|sentence| violations.push(uncovered(sentence)));
    }
    let mut decision = Decision::allow();
    for warning in warnings.iter().take(WARNINGS) {
        decision.warn_in_full(POLICY_EFFECT, warning);
    }
    if let Some(more) = warnings.len().checked_sub(WARNINGS).filter(|more| *more > 0) {
        decision.add_warning(format!("and {more} more; `interlock policies effective --diff` shows all"));
    }
    violations.decide(decision)
}

fn foreseen(write: &Write, context: &RuleContext<'_>) -> Foreseen {
    let listers = context.lister.kinds();
    let (Some(graph), Some(read)) = (listers.get::<AttachmentGraph>(), listers.get::<dyn ReadKinds>()) else {
        return Foreseen::default();
    };
    foresight::foresee(graph, read, write)
}

fn uncovered(sentence: String) -> Denial {
    Denial::forbidden(POLICY_COVERAGE, sentence).next(
        "create an AuthPolicy for the Gateway, or for a listener of it, first (`kubectl get authpolicies -A` lists what there \
         is)",
    )
}

#[cfg(test)]
mod tests;
