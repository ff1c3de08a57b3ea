//! The conditions of an Instance in each of its states, as kstatus and `kubectl wait` read them.
//!
//! All well is `Ready` alone, as KUDO's clients compare the list as a whole. `Reconciling` and `Stalled` never
//! stand together. Each condition but `Ready` is absent where it does not hold.

use interlock_core::api::condition::{ConditionChange, ConditionStatus};
use interlock_core::api::meta::condition as types;
use jiff::{SignedDuration, Timestamp};

use super::readiness::Readiness;
use crate::api::Pause;
use crate::engine::lookup::{FailureKind, TaskFailure};

/// How long attempts may fail with an error that may pass before a person is asked for help.
pub const RETRY_LIMIT: SignedDuration = SignedDuration::from_mins(2);

/// A plan is scheduled or runs.
pub fn reconciling(reason: &str, message: impl Into<String>) -> Vec<ConditionChange> {
    vec![
        ConditionChange::set(types::RECONCILING, ConditionStatus::True, reason, message),
        ConditionChange::Remove(types::STALLED),
    ]
}

/// A run is paused. kstatus reads it as in progress: nothing has failed, and it goes on when a user resumes it.
pub fn paused(plan: &str, pause: &Pause) -> Vec<ConditionChange> {
    let by = if pause.by.is_empty() { String::new() } else { format!(" by {}", pause.by) };
    let Pause { since, reason, .. } = pause;
    let since = since.strftime("%Y-%m-%dT%H:%M:%SZ");
    let message = format!("plan {plan} is paused{by} since {since}: {reason}");
    reconciling(types::PAUSED, message)
}

/// Only a person can help.
pub fn stalled(reason: &str, message: impl Into<String>) -> Vec<ConditionChange> {
    vec![
        ConditionChange::set(types::STALLED, ConditionStatus::True, reason, message),
        ConditionChange::Remove(types::RECONCILING),
    ]
}

/// A task failed and is tried again, since a time.
pub fn retrying(failure: &TaskFailure, since: Timestamp, now: Timestamp) -> Vec<ConditionChange> {
    let (kind, message) = (failure.kind, failure.message.as_str());
    let over = kind != FailureKind::Interrupted && now.duration_since(since) >= RETRY_LIMIT;
    match kind.stalls().or_else(|| over.then(|| kind.reason())) {
        Some(reason) => stalled(reason, message),
        None => reconciling(types::RETRYING, message),
    }
}

/// The OperatorVersion of the spec is not there, since a time: it is waited for, and after a while only a person can help.
/// `drifts` = another spec has been carried out, whose objects are there.
pub fn awaiting_version(
    message: &str,
    drifts: bool,
    since: Timestamp,
    now: Timestamp,
) -> Vec<ConditionChange> {
    let reason = types::OPERATOR_VERSION_MISSING;
    let mut changes = match now.duration_since(since) >= RETRY_LIMIT {
        true => stalled(reason, message),
        false => reconciling(reason, message),
    };
    changes.push(Readiness::Failed(reason.to_owned(), message.to_owned()).change());
    if drifts {
        changes.push(ConditionChange::set(types::SPEC_DRIFT, ConditionStatus::True, reason, message));
    }
    changes
}

/// A plan has failed; these are owed.
pub fn failed(message: &str, owed: &[String]) -> Vec<ConditionChange> {
    let mut changes = stalled(types::PLAN_IN_FATAL_ERROR, message);
    changes.push(Readiness::Failed(types::PLAN_IN_FATAL_ERROR.to_owned(), message.to_owned()).change());
    if !owed.is_empty() {
        let status = ConditionStatus::True;
        changes.push(ConditionChange::set(types::SPEC_DRIFT, status, types::PLAN_OWED, owed_text(owed)));
    }
    changes
}

/// The spec differs from what was carried out, and that stays so until a person acts.
pub fn drifted(reason: &str, message: &str) -> Vec<ConditionChange> {
    let mut changes = stalled(reason, message);
    changes.push(Readiness::Failed(reason.to_owned(), message.to_owned()).change());
    changes.push(ConditionChange::set(types::SPEC_DRIFT, ConditionStatus::True, reason, message));
    changes
}

/// Plans that a change of the spec needs have failed.
pub fn owed(plans: &[String]) -> Vec<ConditionChange> {
    drifted(types::PLAN_OWED, &owed_text(plans))
}

fn owed_text(plans: &[String]) -> String {
    format!(
        "these plans failed and have not completed since: {}; mend the cause and trigger them again",
        plans.join(", ")
    )
}

/// Nothing is to be done; `ready` is `None` where health is not known now.
pub fn settled(ready: Option<Readiness>) -> Vec<ConditionChange> {
    let absent = [types::RECONCILING, types::STALLED, types::SPEC_DRIFT];
    ready.map(Readiness::change).into_iter().chain(absent.map(ConditionChange::Remove)).collect()
}

#[cfg(test)]
mod tests {
    use interlock_core::rejection::RejectionKind;
    use rstest::rstest;

    use super::*;

    fn named<'c>(changes: &'c [ConditionChange], type_: &str) -> Option<&'c str> {
        changes.iter().find_map(|change| match change {
            ConditionChange::Set(wanted) if wanted.type_ == type_ => Some(wanted.reason.as_str()),
            _ => None,
        })
    }

    #[rstest]
    #[case::just_now(FailureKind::Transient, 0, Some("Retrying"), None)]
    #[case::not_for_long(FailureKind::Transient, 119, Some("Retrying"), None)]
    #[case::for_two_minutes(FailureKind::Transient, 120, None, Some("TransientError"))]
    #[case::going_on(FailureKind::Interrupted, 120, Some("Retrying"), None)]
    #[case::refused(FailureKind::Rejected(RejectionKind::Forbidden), 0, None, Some("RequestRefused"))]
    #[case::no_right(FailureKind::Rejected(RejectionKind::MissingRight), 0, None, Some("RequestRefused"))]
    #[case::quota(FailureKind::Rejected(RejectionKind::QuotaExceeded), 0, None, Some("QuotaExceeded"))]
    #[case::pods(FailureKind::PodsRefused, 0, None, Some("PodsRefused"))]
    #[case::webhook(FailureKind::Rejected(RejectionKind::WebhookUnavailable), 119, Some("Retrying"), None)]
    #[case::webhook_for_long(
        FailureKind::Rejected(RejectionKind::WebhookUnavailable),
        120,
        None,
        Some("WebhookUnavailable")
    )]
    #[case::without_a_definition(FailureKind::MissingDefinition, 0, None, Some("MissingDependency"))]
    fn an_error_is_retried_until_only_a_person_can_help(
        #[case] kind: FailureKind,
        #[case] seconds: i64,
        #[case] reconciling: Option<&str>,
        #[case] stalled: Option<&str>,
    ) {
        let failure = TaskFailure { kind, message: "no".to_owned() };
        let since = Timestamp::UNIX_EPOCH;
        let changes = retrying(&failure, since, since + SignedDuration::from_secs(seconds));
        assert_eq!(named(&changes, types::RECONCILING), reconciling);
        assert_eq!(named(&changes, types::STALLED), stalled);
    }

    #[rstest]
    #[case(reconciling("R", ""))]
    #[case(stalled("R", ""))]
    #[case(failed("", &["deploy".to_owned()]))]
    #[case(drifted("R", ""))]
    #[case(owed(&["deploy".to_owned()]))]
    #[case(awaiting_version("", true, Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH))]
    #[case(awaiting_version("", false, Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH + RETRY_LIMIT))]
    #[case(settled(None))]
    fn reconciling_and_stalled_never_stand_together(#[case] changes: Vec<ConditionChange>) {
        let both = [types::RECONCILING, types::STALLED];
        let set = both.iter().filter(|type_| named(&changes, type_).is_some()).count();
        let all = |type_: &&str| {
            changes.iter().any(|change| match change {
                ConditionChange::Set(wanted) => wanted.type_ == *type_,
                ConditionChange::Remove(removed) => removed == type_,
            })
        };
        assert!(set <= 1 && both.iter().all(all), "{changes:?}");
    }
}
