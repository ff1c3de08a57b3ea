//! While a definition is missing that plans need besides that of Instances, nothing is carried out:
//! every Instance says so in `Ready`, once, until somebody installs it, and one with a plan in
//! `Stalled` as well, where people look for what a plan waits for.

use super::context::Context;
use super::flow::Outcome;
use super::missing::MISSING_DEPENDENCY;
use super::reconcile;
use super::send::{patch_status, wanted};
use super::writes::StatusChange;
use crate::api::condition::{self, Status};
use crate::api::meta::condition as types;
use crate::api::object::NamespacedName;
use crate::cluster::supervisor::{Sight, Work};
use crate::controllers::capabilities::INSTANCES;
use crate::plan::lock;

/// The definitions that plans need and that are missing, for people.
fn lack(ctx: &Context) -> Option<String> {
    let snapshot = ctx.supervisor.snapshot();
    let snapshot = snapshot.borrow();
    let kinds = &snapshot.get(INSTANCES)?.kinds;
    let missing: Vec<String> = kinds
        .iter()
        .filter(|kind| kind.required)
        .filter_map(|kind| match &kind.sight {
            Sight::Absent(why) => Some(format!("CustomResourceDefinition {} {why}", kind.name)),
            _ => None,
        })
        .collect();
    (!missing.is_empty()).then(|| format!("{}; until then no plan is carried out", missing.join("; ")))
}

/// Lets every Instance be looked at whenever what is missing has changed.
pub async fn follow(ctx: &Context) {
    let mut snapshot = ctx.supervisor.snapshot();
    let mut known = None;
    loop {
        let now = lack(ctx).filter(|_| ctx.assignment().work == Work::Deletions);
        if now.is_some() && now != known {
            ctx.store.instances().into_iter().for_each(|key| ctx.queue.add(key));
        }
        known = now;
        if snapshot.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

/// Says of an Instance what is missing, unless it says so.
pub async fn say(ctx: &Context, key: &NamespacedName) -> Outcome {
    let Some(message) = lack(ctx) else { return Outcome::Settled };
    let subject = match reconcile::whole(ctx, key).await {
        Ok(subject) => subject,
        Err(outcome) => return outcome,
    };
    let found = subject.conditions();
    let mut conditions = Vec::new();
    if lock::of(&subject.instance).is_some() {
        conditions.push(wanted(types::STALLED, Status::True, MISSING_DEPENDENCY, message.clone()));
    }
    // A failed plan is said until one completes.
    if condition::find(&found, types::READY).is_none_or(|ready| ready.reason != "PlanInFatalError") {
        conditions.push(wanted(types::READY, Status::Unknown, MISSING_DEPENDENCY, message));
    }
    let change = StatusChange { conditions, ..StatusChange::default() };
    match patch_status(ctx, &subject, change).await {
        Ok(_) => Outcome::Settled,
        Err(failure) => {
            tracing::debug!(instance = %key, message = %failure.message, "a status was not written");
            Outcome::Retry
        }
    }
}
