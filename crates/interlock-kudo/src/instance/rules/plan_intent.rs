//! The plan intent: the effect of a write on `planExecution`.

use crate::instance::change::uid::{ScheduledOn, is_version_5, plan_uid};
use crate::instance::spec::{SpecView, WrittenExecution};

const NEVER_RUN: &str = "NEVER_RUN";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanIntent<'a> {
    /// Absent, null or `{}`: the old value is restored.
    Nothing,
    /// The old value.
    Same,
    /// Our own earlier pass, over an edit that another webhook has changed since.
    Stale,
    /// An explicitly empty name.
    Clear,
    Trigger(&'a str),
    /// A status, which only the bookkeeping user writes.
    Status,
    /// An id without a plan.
    Stray,
}

/// Reads the plan intent.
///
/// Our uid is U(plan, spec): over the old spec it is our pass over a direct trigger, which still counts
/// as the user's; any other version-5 uid is our pass over an edit. A uid copied from the old value is
/// the user's.
pub fn asked<'a>(
    new: &'a WrittenExecution<'_>,
    old: &SpecView<'_>,
    subject: ScheduledOn<'_>,
) -> PlanIntent<'a> {
    let before = &old.execution;
    if !new.said {
        return if before.is_empty() { PlanIntent::Same } else { PlanIntent::Nothing };
    }
    if new.same(before) {
        return PlanIntent::Same;
    }
    if new.plan.is_empty() {
        let stray = before.plan.is_empty() || !(new.uid.is_empty() || new.uid == before.uid);
        let carried = new.status.is_empty() || new.status == before.status;
        return match (stray, carried) {
            (true, _) => PlanIntent::Stray,
            (false, true) => PlanIntent::Clear,
            (false, false) => PlanIntent::Status,
        };
    }
    if new.plan == before.plan && new.uid == before.uid {
        return PlanIntent::Status;
    }
    if new.status == NEVER_RUN && new.uid != before.uid && is_version_5(&new.uid) {
        let ours = plan_uid(subject, &new.plan, old.hash()).to_string();
        return if new.uid == ours { PlanIntent::Trigger(&new.plan) } else { PlanIntent::Stale };
    }
    let carried = new.status.is_empty() || new.status == NEVER_RUN || new.status == before.status;
    if carried { PlanIntent::Trigger(&new.plan) } else { PlanIntent::Status }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use uuid::Uuid;

    use super::*;

    const SUBJECT: ScheduledOn<'static> = ScheduledOn { namespace: "team", name: "kafka", version: "7" };

    fn execution(plan: &'static str, uid: &str, status: &'static str) -> WrittenExecution<'static> {
        WrittenExecution { said: true, plan: plan.into(), uid: uid.to_owned().into(), status: status.into() }
    }

    fn idle() -> WrittenExecution<'static> {
        WrittenExecution::default()
    }

    fn random() -> String {
        Uuid::from_u128(0x1111_2222_3333_4444_8555_6666_7777_8888).to_string()
    }

    fn of(plan: &str, spec: &SpecView<'_>) -> String {
        plan_uid(SUBJECT, plan, spec.hash()).to_string()
    }

    fn other_spec() -> SpecView<'static> {
        let mut spec = SpecView::default();
        spec.set(&[("NODES".to_owned(), "3".to_owned())]);
        spec
    }

    #[rstest]
    #[case::absent_on_idle(idle(), idle(), PlanIntent::Same)]
    #[case::absent_on_running(idle(), execution("deploy", "u", "IN_PROGRESS"), PlanIntent::Nothing)]
    #[case::same(execution("deploy", "u", ""), execution("deploy", "u", ""), PlanIntent::Same)]
    #[case::empty_on_idle(execution("", "", ""), idle(), PlanIntent::Same)]
    #[case::clear(execution("", "", ""), execution("deploy", "u", ""), PlanIntent::Clear)]
    #[case::name_removed(
        execution("", "u", "NEVER_RUN"),
        execution("deploy", "u", "NEVER_RUN"),
        PlanIntent::Clear
    )]
    #[case::name_removed_with_a_status(
        execution("", "", "NEVER_RUN"),
        execution("deploy", "u", "COMPLETE"),
        PlanIntent::Status
    )]
    #[case::uid_alone(execution("", "u", ""), idle(), PlanIntent::Stray)]
    #[case::trigger_as_kudo_does(execution("backup", &random(), ""), idle(), PlanIntent::Trigger("backup"))]
    #[case::trigger_never_run(execution("backup", &random(), "NEVER_RUN"), idle(), PlanIntent::Trigger("backup"))]
    #[case::trigger_without_uid(execution("backup", "", ""), idle(), PlanIntent::Trigger("backup"))]
    #[case::status_smuggled(execution("backup", &random(), "COMPLETE"), idle(), PlanIntent::Status)]
    #[case::status_only(
        execution("deploy", "u", "FATAL_ERROR"),
        execution("deploy", "u", "IN_PROGRESS"),
        PlanIntent::Status
    )]
    #[case::status_carried_along(
        execution("backup", &random(), "COMPLETE"),
        execution("deploy", "u", "COMPLETE"),
        PlanIntent::Trigger("backup")
    )]
    #[case::our_pass_over_a_trigger(
        execution("backup", &of("backup", &SpecView::default()), "NEVER_RUN"),
        idle(),
        PlanIntent::Trigger("backup")
    )]
    #[case::our_pass_over_an_edit(
        execution("deploy", &of("deploy", &other_spec()), "NEVER_RUN"),
        idle(),
        PlanIntent::Stale
    )]
    #[case::uid_carried_along(
        execution("backup", &of("deploy", &other_spec()), "NEVER_RUN"),
        execution("deploy", &of("deploy", &other_spec()), "NEVER_RUN"),
        PlanIntent::Trigger("backup")
    )]
    #[case::emptied_uid(
        execution("deploy", "", "NEVER_RUN"),
        execution("deploy", "u", "NEVER_RUN"),
        PlanIntent::Trigger("deploy")
    )]
    fn what_is_asked(
        #[case] new: WrittenExecution<'_>,
        #[case] before: WrittenExecution<'static>,
        #[case] want: PlanIntent<'_>,
    ) {
        let mut old = SpecView::default();
        old.execution = before;
        assert_eq!(asked(&new, &old, SUBJECT), want);
    }
}
