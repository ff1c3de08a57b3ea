//! The condition `Ready` of an idle Instance: whether what its package made is healthy.

use super::context::Context;
use super::subject::Subject;
use crate::api::condition::{self, Status, Wanted};
use crate::api::meta::condition as types;
use crate::controllers::observe::SPEAKING;
use crate::plan::drift;
use crate::plan::health::{self, Health};

/// The condition as it should be; `None` where it stays: a failed plan is said until one
/// completes, and an Instance that never ran says nothing.
pub fn condition(ctx: &Context, subject: &Subject) -> Option<Wanted> {
    let conditions = subject.conditions();
    let found = condition::find(&conditions, types::READY);
    if found.is_some_and(|c| c.reason == "PlanInFatalError") {
        return None;
    }
    let basis = subject.basis.as_ref()?;
    let wanted = |status, reason: &str, message: String| {
        Some(Wanted { type_: types::READY, status, reason: reason.to_owned(), message })
    };
    let failed = drift::failed(basis);
    if !failed.is_empty() {
        return wanted(Status::False, "PlanOwed", format!("these plans failed: {}", failed.join(", ")));
    }
    // What cannot be seen now is not healthy and not unhealthy; whoever sees it again wakes us.
    if !ctx.sees(subject, |kind| kind.group == "apps" && SPEAKING.contains(&kind.kind.as_str())) {
        return None;
    }
    let unhealthy: Vec<String> = ctx
        .store
        .children_of(&subject.key, &SPEAKING)
        .iter()
        .filter_map(|object| match health::of(object) {
            Health::Healthy => None,
            Health::Waiting(why) | Health::Failed(why) => Some(why),
        })
        .collect();
    match unhealthy.as_slice() {
        [] => wanted(Status::True, "ResourcesReady", String::new()),
        why => wanted(Status::False, "ResourceNotReady", why.join(", ")),
    }
}
