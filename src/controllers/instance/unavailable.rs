//! While the capability of Instances does not run, no plan runs: every Instance reports that and the reason
//! in `Ready`, once, until it runs again; one with a plan also in `Stalled`, where people look for what
//! blocks a plan.

use std::time::Duration;

use interlock_core::api::interlock::DEFAULT;
use interlock_core::api::meta::condition as types;
use interlock_core::api::object::NamespacedName;
use interlock_kudo::instance::change::conditions;
use interlock_kudo::instance::change::lock;
use interlock_kudo::instance::change::readiness;
use interlock_kudo::instance::change::readiness::Readiness;
use jiff::Timestamp;

use super::api_calls::patch_status;
use super::context::InstanceContext;
use super::reconcile;
use super::status_patch::StatusChange;
use crate::cluster::supervisor::{
    CapabilityPhase, CapabilityStatus as Standing, KindStatus, Missing, NotReadyReason, WatchState, Work,
};
use crate::controllers::capabilities::{CAPABILITIES, INSTANCES};
use crate::runtime::controller::Action;

/// How long a definition may be terminating before that is reported: most are gone in a moment.
const GOING: Duration = Duration::from_secs(10);

/// Why no plan runs, for people, if the capability has waited for so long. Transient states are not
/// reported.
fn lack(status: &Standing, waited: Duration) -> Option<String> {
    let stays = || held_up(&status.kinds).filter(|_| waited >= GOING);
    let why = match &status.state {
        CapabilityPhase::Waiting(missing) => waits_for(missing).or_else(stays)?,
        CapabilityPhase::Draining(_) => stays()?,
        CapabilityPhase::Forbidden(_) | CapabilityPhase::Outdated(..) => status.state.message(),
        CapabilityPhase::Disabled => format!(
            "{INSTANCES} is switched off: set spec.capabilities.{INSTANCES}.mode of Interlock {DEFAULT} to auto"
        ),
        // Errors differ between retries, so that only the condition names them.
        CapabilityPhase::Degraded(..) => format!(
            "{} cannot be listed: condition InstancesReady of Interlock {DEFAULT} says why",
            unlisted(&status.kinds)?
        ),
        CapabilityPhase::Starting(_) | CapabilityPhase::Running(_) | CapabilityPhase::Unknown(_) => {
            return None;
        }
    };
    Some(format!("{why}; until then no plan is carried out"))
}

/// The kinds that keep a capability from running although none is missing.
fn unlisted(kinds: &[KindStatus]) -> Option<String> {
    let bad = kinds.iter().filter(|kind| kind.required && kind.watch_state != WatchState::Synced);
    let names: Vec<&str> = bad.map(|kind| kind.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn waits_for(missing: &[Missing]) -> Option<String> {
    // The mode is the same for all kinds that it blocks.
    let manual = missing.iter().find(|missing| missing.why == NotReadyReason::Manual);
    let absent = missing.iter().filter(|missing| matches!(missing.why, NotReadyReason::Absent(_)));
    let texts: Vec<String> = manual.into_iter().chain(absent).map(Missing::to_string).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// Definitions that are stuck terminating. Not reported where that of Instances terminates as well: the
/// Instances are deleted with it.
fn held_up(kinds: &[KindStatus]) -> Option<String> {
    let going: Vec<&KindStatus> = kinds.iter().filter(|kind| kind.required && kind.terminating).collect();
    if going.is_empty() || going.iter().any(|kind| carries_our_finalizer(&kind.name)) {
        return None;
    }
    let texts = going.iter().map(|KindStatus { name, .. }| {
        format!(
            "CustomResourceDefinition {name} is being deleted and does not go: metadata.finalizers of it and \
             of its objects name who holds it; let it go, and install it again"
        )
    });
    Some(texts.collect::<Vec<_>>().join("; "))
}

fn carries_our_finalizer(definition: &str) -> bool {
    let declared = CAPABILITIES.iter().find(|capability| capability.declared.name == INSTANCES);
    let finalized =
        declared.and_then(|of| of.required.iter().find(|kind| of.declared.finalizes == Some(kind.kind)));
    finalized.is_some_and(|kind| kind.name() == definition)
}

/// The present message, and when to check again.
fn lack_now(ctx: &InstanceContext) -> (Option<String>, Duration) {
    let snapshot = ctx.supervisor.snapshot();
    let snapshot = snapshot.borrow();
    let Some(status) = snapshot.get(INSTANCES) else { return (None, Duration::ZERO) };
    let waited = Duration::try_from(Timestamp::now().duration_since(status.since)).unwrap_or_default();
    (lack(status, waited), GOING.saturating_sub(waited))
}

/// Enqueues every Instance whenever the message changes.
pub async fn follow(ctx: &InstanceContext) {
    let mut snapshot = ctx.supervisor.snapshot();
    let mut known = None;
    loop {
        let says = matches!(ctx.assignment().work, Work::StatusOnly | Work::Deletions);
        let (now, left) = lack_now(ctx);
        let now = now.filter(|_| says);
        if now.is_some() && now != known {
            ctx.store.instances().into_iter().for_each(|key| ctx.queue.add(key));
        }
        known = now;
        tokio::select! {
            changed = snapshot.changed() => if changed.is_err() { std::future::pending().await },
            () = tokio::time::sleep(left), if !left.is_zero() => {}
        }
    }
}

/// Reports on an Instance why no plan runs, unless its status already does.
pub async fn say(ctx: &InstanceContext, key: &NamespacedName) -> Action {
    let (Some(message), _) = lack_now(ctx) else { return Action::AwaitChange };
    let subject = match reconcile::whole(ctx, key).await {
        Ok(subject) => subject,
        Err(outcome) => return outcome,
    };
    let mut conditions = Vec::new();
    if lock::of(&subject.instance).is_some() {
        conditions = conditions::stalled(types::MISSING_DEPENDENCY, message.as_str());
    }
    // A failed plan stays reported until one completes.
    if readiness::failed(&subject.conditions()).is_none() {
        conditions.push(Readiness::Unserved(message).change());
    }
    // Records could not be stored where the definition lacks their fields.
    let change = StatusChange { conditions, conditions_only: true, ..StatusChange::default() };
    match patch_status(ctx, &subject, change).await {
        Ok(_) => Action::AwaitChange,
        Err(failure) => {
            tracing::debug!(instance = %key, message = %failure.message, "a status was not written");
            Action::Retry
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::cluster::crds::Absence;
    use crate::cluster::supervisor::{ApiVerb, Epoch, Mode, RefusedKind, UnavailableAnswer};

    const OWN: &str = "instances.kudo.dev";
    const PACKAGES: &str = "operatorversions.kudo.dev";

    fn waiting(whys: &[NotReadyReason]) -> CapabilityPhase {
        let missing = [OWN, PACKAGES].into_iter().zip(whys);
        CapabilityPhase::Waiting(
            missing.map(|(name, why)| Missing { name: name.to_owned(), why: why.clone() }).collect(),
        )
    }

    /// This state, with these definitions being deleted.
    fn standing(state: CapabilityPhase, terminating: &[&str]) -> Standing {
        let kind = |name: &str| KindStatus {
            name: name.to_owned(),
            required: true,
            terminating: terminating.contains(&name),
            watch_state: WatchState::Synced,
        };
        Standing {
            name: INSTANCES,
            state,
            mode: Mode::Auto,
            since: Timestamp::UNIX_EPOCH,
            answer: UnavailableAnswer::Judge,
            kinds: [OWN, PACKAGES].map(kind).into(),
        }
    }

    #[rstest]
    #[case::missing(
        waiting(&[NotReadyReason::Terminating, NotReadyReason::Absent(Absence::Missing)]),
        Some("CustomResourceDefinition operatorversions.kudo.dev is not installed")
    )]
    #[case::going(waiting(&[NotReadyReason::Terminating]), None)]
    #[case::manual(
        waiting(&[NotReadyReason::Manual, NotReadyReason::Manual]),
        Some("instances.kudo.dev is served, but the mode is manual: set the mode to auto to start")
    )]
    #[case::forbidden(
        CapabilityPhase::Forbidden(RefusedKind { name: "operatorversions.kudo.dev".to_owned(), verb: ApiVerb::List }),
        Some(
            "this process may not list operatorversions.kudo.dev; grant it the verbs get, list and watch"
        )
    )]
    #[case::off(
        CapabilityPhase::Disabled,
        Some("instances is switched off: set spec.capabilities.instances.mode of Interlock default to auto")
    )]
    #[case::starting(CapabilityPhase::Starting(Epoch(1)), None)]
    #[case::running(CapabilityPhase::Running(Epoch(1)), None)]
    #[case::draining(CapabilityPhase::Draining(Epoch(1)), None)]
    #[case::unknown(CapabilityPhase::Unknown(None), None)]
    fn what_an_instance_says(#[case] state: CapabilityPhase, #[case] said: Option<&str>) {
        let said = said.map(|said| format!("{said}; until then no plan is carried out"));
        for waited in [Duration::ZERO, GOING] {
            assert_eq!(lack(&standing(state.clone(), &[]), waited), said);
        }
    }

    /// A process that ran drains, one that has just started waits.
    #[rstest]
    #[case::held_up(&[PACKAGES], GOING, true)]
    #[case::gone_in_a_moment(&[PACKAGES], GOING - Duration::from_secs(1), false)]
    #[case::their_own(&[OWN], GOING, false)]
    #[case::all_of_them(&[OWN, PACKAGES], GOING, false)]
    #[case::none(&[], GOING, false)]
    fn what_an_instance_says_of_a_definition_that_goes(
        #[values(CapabilityPhase::Draining(Epoch(1)), waiting(&[NotReadyReason::Terminating]))]
        state: CapabilityPhase,
        #[case] terminating: &[&str],
        #[case] waited: Duration,
        #[case] said: bool,
    ) {
        let found = lack(&standing(state, terminating), waited);
        let text = "CustomResourceDefinition operatorversions.kudo.dev is being deleted and does not go: ";
        assert_eq!(found.is_some_and(|message| message.starts_with(text)), said);
    }

    /// Its text does not change with the error of each retry.
    #[rstest]
    #[case::broken(WatchState::Broken("connection refused".to_owned()))]
    #[case::again(WatchState::Listing)]
    fn what_an_instance_says_of_a_kind_that_cannot_be_listed(#[case] watch_state: WatchState) {
        let mut standing =
            standing(CapabilityPhase::Degraded(Epoch(1), "connection refused".to_owned()), &[]);
        assert_eq!(lack(&standing, GOING), None, "nothing keeps it from running");
        standing
            .kinds
            .iter_mut()
            .filter(|kind| kind.name == PACKAGES)
            .for_each(|kind| kind.watch_state = watch_state.clone());
        let said = "operatorversions.kudo.dev cannot be listed: condition InstancesReady of Interlock default \
                    says why; until then no plan is carried out";
        assert_eq!(lack(&standing, GOING).as_deref(), Some(said));
    }
}
