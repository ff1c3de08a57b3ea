//! Admission without I/O: bytes -> request -> rules -> decision and patch -> bytes.
//!
//! The server calls [`answer`], everything else [`decide`]. Mutation and validation are one function:
//! it computes the object as it must be; a mutating endpoint patches the differences, a validating one
//! denies them. A dry run gets the same decision.

mod context;
pub mod decision;
pub mod decode;
pub mod denial;
pub mod encode;
pub mod endpoint;
pub mod lister;
pub mod patch;
pub mod request;
pub mod review;
pub mod size_budget;
pub mod static_lister;
pub mod violations;

use self::decision::{Outcome, Verdict};
pub use self::endpoint::{
    AdmissionAnswer, Awaited, BadReview, CacheWait, Config, DecisionRecord, Freeze, Reply, VerdictKind,
    WebhookEndpoint,
};
use self::lister::{CacheState, Lister};
pub use context::RuleContext;
use request::{Request, RequestedObject};
use review::Review;

/// Decides on the body of a call.
pub fn answer<'a>(
    door: WebhookEndpoint,
    body: &'a [u8],
    view: &dyn Lister,
    config: &Config,
    patience: CacheWait,
) -> Result<AdmissionAnswer<'a>, BadReview> {
    let (version, review) = decode::decode(body)?;
    let context = RuleContext { door, view, config, patience, partial: None };
    let verdict = match Request::read(&review) {
        Ok(request) => decide(&request, &context),
        Err(refusal) => Verdict::from(*refusal),
    };
    if let Outcome::Wait(operator_version) = verdict.outcome {
        let namespace = review.namespace.unwrap_or_default().to_string();
        return Ok(AdmissionAnswer::Wait(Awaited { operator_version, namespace }));
    }
    let body = encode::encode(version, &review, &verdict)?;
    Ok(AdmissionAnswer::Done(Reply { body, record: record(review, verdict) }))
}

/// Decides on a request.
pub fn decide(request: &Request<'_>, context: &RuleContext<'_>) -> Verdict {
    let bookkeeping = &context.config.controller_user;
    if !bookkeeping.is_empty() && request.user == bookkeeping {
        return Verdict::of(Outcome::Skip);
    }
    // The state of the Instance cache does not concern gateways.
    if matches!(request.subject, RequestedObject::Gateway(..) | RequestedObject::FlavorSource(..)) {
        return crate::kinds::dispatch::judge(request, context);
    }
    match context.view.cache() {
        CacheState::Synced => crate::kinds::dispatch::judge(request, context),
        CacheState::Partial(why) => {
            // An awaited object might never arrive.
            let context = RuleContext { patience: CacheWait::Exhausted, partial: Some(&why), ..*context };
            crate::kinds::dispatch::judge(request, &context)
        }
        CacheState::Unavailable(why) => {
            let mut verdict = crate::kinds::dispatch::restore(request, context);
            verdict.remark(why);
            verdict
        }
    }
}

fn record<'a>(review: Review<'a>, verdict: Verdict) -> DecisionRecord<'a> {
    let named = || review.old_object.or(review.object).and_then(|object| object.metadata.name);
    let name = review.name.or_else(named);
    DecisionRecord {
        uid: review.uid,
        operation: review.operation,
        group: review.kind.group,
        kind: review.kind.kind,
        namespace: review.namespace.unwrap_or_default(),
        name: name.unwrap_or_default(),
        user: review.user_info.username.unwrap_or_default(),
        rules: verdict.rules().collect(),
        admitted: verdict.admitted.iter().map(|rule| rule.id()).collect(),
        verdict: verdict.kind(),
        plan: verdict.plan,
        dry_run: review.dry_run.unwrap_or_default(),
    }
}
