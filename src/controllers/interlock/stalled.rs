//! `Reconciling` and `Stalled` of an Interlock object, as kstatus reads them: what goes on by itself, and what needs a
//! person. At most one of them stands. Pure; the time is an argument.

use interlock_core::api::condition::ConditionStatus;
use interlock_core::api::interlock::Interlock;
use jiff::Timestamp;

use super::wanted::{ACCEPTED, PassingUntil, RULES_APPLIED, Wanted, found, wanted};
use crate::cluster::supervisor::{CapabilityPhase, NotReadyReason};

/// Something goes on, without a person.
pub(super) const RECONCILING: &str = "Reconciling";
/// Only a person can help.
pub(super) const STALLED: &str = "Stalled";

/// How long a write is repeated before a person is asked for help.
const RETRIED_FOR: jiff::SignedDuration = jiff::SignedDuration::from_secs(120);

/// Whether a state ends without a person.
pub(super) fn ends_by_itself(state: &CapabilityPhase) -> bool {
    match state {
        CapabilityPhase::Starting(_) | CapabilityPhase::Draining(_) | CapabilityPhase::Unknown(_) => true,
        CapabilityPhase::Waiting(missing) => {
            missing.first().is_some_and(|first| matches!(first.why, NotReadyReason::Terminating))
        }
        CapabilityPhase::Disabled
        | CapabilityPhase::Forbidden(_)
        | CapabilityPhase::Running(_)
        | CapabilityPhase::Degraded(..)
        | CapabilityPhase::Outdated(..) => false,
    }
}

/// The condition that says why the object is not settled, if it is not, from its other conditions.
///
/// `unready` is the summary of the required capabilities, with whether it ends by itself.
pub(super) fn condition(
    object: &Interlock,
    others: &[Wanted],
    unready: Option<(&Wanted, bool)>,
    now: Timestamp,
) -> (Option<Wanted>, PassingUntil) {
    let not_true = |type_: &str| {
        others.iter().find(|other| other.type_ == type_ && other.status != ConditionStatus::True)
    };
    if let Some(refused) = not_true(ACCEPTED) {
        return (Some(as_condition(STALLED, refused)), None);
    }
    if let Some((ready, false)) = unready {
        return (Some(as_condition(STALLED, ready)), None);
    }
    if let Some(lagging) = not_true(RULES_APPLIED) {
        let until = since(object, now) + RETRIED_FOR;
        return match now < until {
            true => (Some(as_condition(RECONCILING, lagging)), Some(until)),
            false => (Some(as_condition(STALLED, lagging)), None),
        };
    }
    (unready.map(|(ready, _)| as_condition(RECONCILING, ready)), None)
}

/// Since when the policies do not follow.
fn since(object: &Interlock, now: Timestamp) -> Timestamp {
    found(object, RULES_APPLIED)
        .filter(|before| before.status != ConditionStatus::True.as_str())
        .map_or(now, |before| before.last_transition_time.0)
}

fn as_condition(type_: &str, cause: &Wanted) -> Wanted {
    wanted(type_, ConditionStatus::True, &cause.reason, cause.message.as_str())
}
