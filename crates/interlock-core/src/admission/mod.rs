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
pub mod ids;
pub mod kind;
pub mod lister;
pub mod patch;
pub mod request;
pub mod review;
pub mod size_budget;
pub mod string_map;
pub mod violations;

use self::decision::{Decision, Outcome};
pub use self::endpoint::{
    AdmissionAnswer, Awaited, BadReview, CacheWait, Config, DecisionKind, DecisionRecord, Freeze, Reply,
    WebhookEndpoint,
};
use self::lister::{CacheState, Lister};
pub use context::RuleContext;
use jiff::Timestamp;
use kind::{GuardedKind, Handler};
use request::Request;
use review::Review;

/// Decides on the body of a call, by the rules of these kinds; requests for other kinds are denied. `now` is
/// when, for the ages in texts.
pub fn answer<'a>(
    kinds: &[&'static GuardedKind],
    endpoint: WebhookEndpoint,
    body: &'a [u8],
    lister: &dyn Lister,
    config: &Config,
    wait: CacheWait,
    now: Option<Timestamp>,
) -> Result<AdmissionAnswer<'a>, BadReview> {
    let (version, review) = decode::decode(body, kinds)?;
    let context = RuleContext { endpoint, lister, config, now, wait, partial: None };
    let handled = Handler::of(&review, kinds).and_then(|handler| Ok((handler, Request::read(&review)?)));
    let verdict = match handled {
        Ok((handler, request)) => decide(&handler, &request, &context),
        Err(denial) => Decision::from(*denial),
    };
    if let Outcome::Wait(operator_version) = verdict.outcome {
        let namespace = review.namespace.unwrap_or_default().to_string();
        return Ok(AdmissionAnswer::Wait(Awaited { operator_version, namespace }));
    }
    let body = encode::encode(version, &review, &verdict, config.docs.as_ref())?;
    Ok(AdmissionAnswer::Done(Reply { body, record: record(review, verdict) }))
}

/// Decides on a request.
pub fn decide(handler: &Handler, request: &Request<'_>, context: &RuleContext<'_>) -> Decision {
    let bookkeeping = &context.config.controller_user;
    if !bookkeeping.is_empty() && request.user == bookkeeping {
        return Decision::of(Outcome::Skip);
    }
    match handler.cache(context.lister) {
        CacheState::Synced => handler.decide(request, context),
        CacheState::Partial(why) => {
            // An awaited object might never arrive.
            let context = RuleContext { wait: CacheWait::Exhausted, partial: Some(&why), ..*context };
            handler.decide(request, &context)
        }
        CacheState::Unavailable(why) => {
            let mut verdict = handler.restore(request, context);
            verdict.add_warning(why);
            verdict
        }
    }
}

fn record<'a>(review: Review<'a>, verdict: Decision) -> DecisionRecord<'a> {
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
