//! While the capability of Instances does not run, nothing is carried out: every Instance says so in
//! `Ready`, and why, once, until it runs again; one with a plan in `Stalled` as well, where people
//! look for what a plan waits for.

use super::context::Context;
use super::flow::Outcome;
use super::missing::MISSING_DEPENDENCY;
use super::reconcile;
use super::send::{patch_status, wanted};
use super::writes::StatusChange;
use crate::api::condition::{self, Status};
use crate::api::interlock::DEFAULT;
use crate::api::meta::condition as types;
use crate::api::object::NamespacedName;
use crate::cluster::supervisor::{Lack, Missing, State, Work};
use crate::controllers::capabilities::INSTANCES;
use crate::plan::lock;

/// Why nothing is carried out, for people. What passes is not said: a definition that is being
/// deleted is gone in a moment.
fn lack(state: &State) -> Option<String> {
    let why = match state {
        State::Waiting(missing) => waits_for(missing)?,
        State::Forbidden(_) => state.message(),
        State::Disabled => format!(
            "{INSTANCES} is switched off: set spec.capabilities.{INSTANCES}.mode of Interlock {DEFAULT} to auto"
        ),
        State::Starting(_) | State::Running(_) | State::Degraded(..) => return None,
        State::Draining(_) | State::Unknown(_) => return None,
    };
    Some(format!("{why}; until then no plan is carried out"))
}

fn waits_for(missing: &[Missing]) -> Option<String> {
    // The mode is one, whichever kinds it keeps from being used.
    let manual = missing.iter().find(|missing| missing.why == Lack::Manual);
    let absent = missing.iter().filter(|missing| matches!(missing.why, Lack::Absent(_)));
    let texts: Vec<String> = manual.into_iter().chain(absent).map(Missing::to_string).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn lack_now(ctx: &Context) -> Option<String> {
    let snapshot = ctx.supervisor.snapshot();
    let snapshot = snapshot.borrow();
    lack(&snapshot.get(INSTANCES)?.state)
}

/// Lets every Instance be looked at whenever what there is to say has changed.
pub async fn follow(ctx: &Context) {
    let mut snapshot = ctx.supervisor.snapshot();
    let mut known = None;
    loop {
        let says = matches!(ctx.assignment().work, Work::Say | Work::Deletions);
        let now = lack_now(ctx).filter(|_| says);
        if now.is_some() && now != known {
            ctx.store.instances().into_iter().for_each(|key| ctx.queue.add(key));
        }
        known = now;
        if snapshot.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

/// Says of an Instance why nothing is carried out, unless it says so.
pub async fn say(ctx: &Context, key: &NamespacedName) -> Outcome {
    let Some(message) = lack_now(ctx) else { return Outcome::Settled };
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

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::cluster::crds::Absence;
    use crate::cluster::supervisor::{Epoch, Refused, Verb};

    fn waiting(whys: &[Lack]) -> State {
        let names = ["instances.kudo.dev", "operatorversions.kudo.dev"];
        let missing = names.iter().zip(whys);
        State::Waiting(
            missing.map(|(name, why)| Missing { name: (*name).to_owned(), why: why.clone() }).collect(),
        )
    }

    #[rstest]
    #[case::missing(
        waiting(&[Lack::Leaving, Lack::Absent(Absence::Missing)]),
        Some("CustomResourceDefinition operatorversions.kudo.dev is not installed")
    )]
    #[case::going(waiting(&[Lack::Leaving]), None)]
    #[case::manual(
        waiting(&[Lack::Manual, Lack::Manual]),
        Some("instances.kudo.dev is there, but the mode is manual: set it to auto to start")
    )]
    #[case::forbidden(
        State::Forbidden(Refused { name: "operatorversions.kudo.dev".to_owned(), verb: Verb::List }),
        Some(
            "this process may not list operatorversions.kudo.dev; grant it the verbs get, list and watch"
        )
    )]
    #[case::off(
        State::Disabled,
        Some("instances is switched off: set spec.capabilities.instances.mode of Interlock default to auto")
    )]
    #[case::starting(State::Starting(Epoch(1)), None)]
    #[case::running(State::Running(Epoch(1)), None)]
    #[case::draining(State::Draining(Epoch(1)), None)]
    #[case::unknown(State::Unknown(None), None)]
    fn what_an_instance_says(#[case] state: State, #[case] said: Option<&str>) {
        let said = said.map(|said| format!("{said}; until then no plan is carried out"));
        assert_eq!(lack(&state), said);
    }
}
