//! Admission as a pure room: bytes -> request -> rules -> verdict and patch -> bytes.
//!
//! [`answer`] is the way in for the server, [`decide`] for everything else. Mutation and
//! validation are one function: it computes the object as it must be; a mutating door patches
//! what differs, a validating door refuses it. Dry run decides alike.

mod context;
pub mod decode;
pub mod door;
pub mod encode;
pub mod parameters;
pub mod patch;
pub mod refusal;
pub mod request;
pub mod review;
pub mod room;
pub mod rules;
pub mod snapshot;
pub mod spec;
pub mod stamp;
pub mod status;
pub mod verdict;
pub mod view;

#[cfg(test)]
mod tests;

pub use context::Context;
pub use door::{Answer, BadReview, Config, Door, Freeze, Patience, Record, Reply, VerdictKind};
use request::{Request, Subject};
use review::Review;
use verdict::{Outcome, Verdict};
use view::{Standing, View};

/// Decides on the body of a call.
pub fn answer(
    door: Door,
    body: &[u8],
    view: &dyn View,
    config: &Config,
    patience: Patience,
) -> Result<Answer, BadReview> {
    let (version, review) = decode::decode(body)?;
    let context = Context { door, view, config, patience };
    let verdict = match Request::read(&review) {
        Ok(request) => decide(&request, &context),
        Err(refusal) => Verdict::from(*refusal),
    };
    if let Outcome::Wait(key) = verdict.outcome {
        return Ok(Answer::Wait(key));
    }
    let body = encode::encode(version, &review, &verdict)?;
    Ok(Answer::Done(Reply { body, record: record(&review, verdict) }))
}

/// Decides on a request.
pub fn decide(request: &Request<'_>, context: &Context<'_>) -> Verdict {
    let bookkeeping = &context.config.controller_user;
    if !bookkeeping.is_empty() && request.user == bookkeeping {
        return Verdict::of(Outcome::Skip);
    }
    // What is seen of Instances says nothing about gateways.
    if matches!(request.subject, Subject::Gateway(..) | Subject::FlavorSource(..)) {
        return rules::judge(request, context);
    }
    match context.view.standing() {
        Standing::Whole => rules::judge(request, context),
        Standing::ObjectAlone(why) => {
            // Nothing that is waited for would come.
            let verdict = rules::judge(request, &Context { patience: Patience::Exhausted, ..*context });
            soften(verdict, why)
        }
        Standing::Nothing(why) => {
            let mut verdict = Verdict::allow();
            verdict.remark(why);
            verdict
        }
    }
}

/// What a rule says of objects that are not seen as they are is only a warning.
fn soften(verdict: Verdict, why: String) -> Verdict {
    match verdict.refusal() {
        Some(refusal) if refusal.rule.reads_others() => {
            let mut softened = Verdict::allow();
            softened.remark(why);
            softened.warn(refusal.rule, refusal.sentence.clone());
            softened
        }
        _ => verdict,
    }
}

fn record(review: &Review<'_>, verdict: Verdict) -> Record {
    let metadata = review.old_object.as_ref().or(review.object.as_ref()).map(|o| &o.metadata);
    let name = review.name.as_deref().or(metadata.and_then(|m| m.name.as_deref()));
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    Record {
        uid: review.uid.as_str().to_owned(),
        operation: review.operation.as_str().to_owned(),
        group: review.kind.group.as_str().to_owned(),
        kind: review.kind.kind.as_str().to_owned(),
        namespace: text(review.namespace.as_deref()),
        name: text(name),
        user: text(review.user_info.username.as_deref()),
        rules: verdict.rules().collect(),
        admitted: verdict.admitted.iter().map(|rule| rule.id()).collect(),
        verdict: verdict.kind(),
        plan: verdict.plan,
        dry_run: review.dry_run.unwrap_or_default(),
    }
}
