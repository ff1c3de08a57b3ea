//! Writes of an Instance: its spec, its `planExecution`, its finalizer and its stamp.

use interlock_core::admission::Freeze;
use interlock_core::admission::ids::STAMP_MISMATCH;
use interlock_core::api::meta;
use interlock_core::kinds::descriptor::PolicyOptions;
use interlock_core::kinds::descriptor::cel;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::instance_policy::{guard, policy};
use super::lock_in_cel::LOCKED;
use crate::instance::rules::ids::{
    FINALIZER_KEPT, HISTORY_OWNER, INSTANCE_DELETING, PLAN_CLEANUP, PLAN_OVERRIDE, PLAN_RUNNING, PLAN_STATUS,
    PLAN_UID,
};

/// A locked Instance keeps its spec. A policy of its own: its binding excludes the namespaces in which the
/// settings permit frozen edits.
pub const FREEZE: &str = meta::install::FREEZE_BINDING;
/// A locked Instance keeps its `planExecution` and our finalizer, one that is being deleted its spec.
pub const LOCK: &str = "interlock-lock";
/// `planExecution` is written as a trigger or not at all.
pub const PLAN_EXECUTION: &str = "interlock-plan-execution";

/// The plan that holds the lock, for people.
const HOLDER: [(&str, &str); 2] = [
    (
        "holder",
        "variables.scheduled ? variables.oldPlan : (variables.running.size() > 0 ? variables.running[0] : '')",
    ),
    (
        "state",
        "variables.scheduled && variables.entry.?uid.orValue('') != variables.oldUid ? 'scheduled' \
         : variables.past[?variables.holder].?status.orValue('scheduled')",
    ),
];

/// The applied part of the spec, compared as the stamp's hash covers it: name and namespace of the
/// OperatorVersion, the namespace defaulted, and the parameters.
const SPEC: [(&str, &str); 4] = [
    ("oldVersion", "oldObject.?spec.?operatorVersion.?namespace.orValue('')"),
    ("newVersion", "object.?spec.?operatorVersion.?namespace.orValue('')"),
    (
        "sameVersion",
        "object.?spec.?operatorVersion.?name.orValue('') == oldObject.?spec.?operatorVersion.?name.orValue('') \
         && (variables.newVersion == '' ? request.namespace : variables.newVersion) \
         == (variables.oldVersion == '' ? request.namespace : variables.oldVersion)",
    ),
    ("sameParameters", "object.?spec.?parameters.orValue({}) == oldObject.?spec.?parameters.orValue({})"),
];

/// `planExecution` before and after; there is no old object on CREATE.
const EXECUTION: [(&str, &str); 7] = [
    ("oldStatus", "variables.old.?status.orValue('')"),
    ("newPlan", "object.?spec.?planExecution.?planName.orValue('')"),
    ("newUid", "object.?spec.?planExecution.?uid.orValue('')"),
    ("newStatus", "object.?spec.?planExecution.?status.orValue('')"),
    (
        "sameExecution",
        "variables.newPlan == variables.oldPlan && variables.newUid == variables.oldUid \
         && variables.newStatus == variables.oldStatus",
    ),
    (
        "usedUp",
        "variables.past.exists(p, variables.past[p].?uid.orValue('') == variables.newUid \
         && variables.past[p].?status.orValue('') in ['COMPLETE', 'FATAL_ERROR'])",
    ),
    ("deleting", "has(object.metadata.deletionTimestamp)"),
];

/// Annotations that only Interlock writes: the stamp and the history of runs.
const OURS: [(&str, &str); 4] = [
    ("newStamp", "object.?metadata.?annotations[?'interlock.dev/last-applied-spec'].orValue('')"),
    (
        "oldStamp",
        "oldObject == null ? '' : oldObject.?metadata.?annotations[?'interlock.dev/last-applied-spec'].orValue('')",
    ),
    ("newHistory", "object.?metadata.?annotations[?'plan.interlock.dev/history'].orValue('')"),
    (
        "oldHistory",
        "oldObject == null ? '' : oldObject.?metadata.?annotations[?'plan.interlock.dev/history'].orValue('')",
    ),
];

/// Changes of `planExecution` that a locked Instance permits.
fn execution_kept(freeze: Freeze) -> String {
    match freeze {
        Freeze::Strict => "variables.sameExecution".to_owned(),
        // A restart of the running plan, as the webhook writes it; `cleanup` while deleting.
        Freeze::SamePlan => format!(
            "variables.sameExecution || ({}) || (variables.newPlan == 'cleanup' && variables.deleting)",
            restart()
        ),
    }
}

fn restart() -> String {
    format!("variables.newPlan == variables.holder && {SCHEDULES}")
}

/// Whether `planExecution` has the form in which the webhook schedules a run.
const SCHEDULES: &str =
    "variables.newUid != '' && variables.newUid != variables.oldUid && variables.newStatus == 'NEVER_RUN'";

const WHILE_IT_RUNS: &str =
    "while plan ' + variables.holder + ' is ' + variables.state + '; wait until it has ended";

/// The API server reports only one denial, from policies in no defined order: where [`LOCK`] denies because
/// of `planExecution` or the deletion, this policy does not.
pub fn freeze(options: &PolicyOptions) -> ValidatingAdmissionPolicy {
    let mut variables = LOCKED.to_vec();
    variables.extend(EXECUTION);
    variables.extend(HOLDER);
    variables.extend(SPEC);
    let parameters = match options.freeze {
        Freeze::Strict => "variables.sameParameters".to_owned(),
        Freeze::SamePlan => format!("variables.sameParameters || ({})", restart()),
    };
    let execution = execution_kept(options.freeze);
    let validations = vec![guard(
        options,
        PLAN_RUNNING,
        &format!(
            "!variables.locked || variables.deleting || !({execution}) || (variables.sameVersion && ({parameters}))"
        ),
        "the spec is frozen while a plan is scheduled or runs; wait until it has ended",
        &format!("the spec is frozen {WHILE_IT_RUNS}"),
    )];
    policy(FREEZE, ("instances", &["UPDATE"]), &variables, validations, options)
}

pub fn lock(options: &PolicyOptions) -> ValidatingAdmissionPolicy {
    let mut variables = LOCKED.to_vec();
    variables.extend(EXECUTION);
    variables.extend(HOLDER);
    variables.extend(SPEC);
    let execution = execution_kept(options.freeze);
    let finalizer = cel::string(meta::FINALIZER);
    let kept = format!(
        "!({finalizer} in oldObject.?metadata.?finalizers.orValue([])) \
         || {finalizer} in object.?metadata.?finalizers.orValue([])"
    );
    let validations = vec![
        guard(
            options,
            PLAN_OVERRIDE,
            &format!("!variables.locked || {execution}"),
            "spec.planExecution is frozen while a plan is scheduled or runs; wait until it has ended",
            &format!("spec.planExecution is frozen {WHILE_IT_RUNS}"),
        ),
        guard(
            options,
            FINALIZER_KEPT,
            &format!("!variables.locked || {kept}"),
            "our finalizer stays while a plan is scheduled or runs; wait until it has ended",
            &format!("finalizer {} stays {WHILE_IT_RUNS}", meta::FINALIZER),
        ),
        guard(
            options,
            INSTANCE_DELETING,
            "!variables.deleting || (variables.sameVersion && variables.sameParameters)",
            "the spec does not change while the Instance is being deleted; let the deletion end",
            "the spec does not change while the Instance is being deleted; let the deletion end",
        ),
    ];
    policy(LOCK, ("instances", &["UPDATE"]), &variables, validations, options)
}

pub fn plan_execution(options: &PolicyOptions) -> ValidatingAdmissionPolicy {
    let mut variables = LOCKED.to_vec();
    variables.extend(EXECUTION);
    variables.extend(HOLDER);
    variables.extend(OURS);
    // Where the lock denies, this policy does not.
    let frozen = format!("variables.locked && !({})", execution_kept(options.freeze));
    variables.push(("frozen", &frozen));
    let cleanup = match options.freeze {
        Freeze::Strict => "variables.newPlan != 'cleanup'",
        Freeze::SamePlan => "variables.newPlan != 'cleanup' || variables.deleting",
    };
    let validations = vec![
        guard(
            options,
            PLAN_STATUS,
            &format!(
                "variables.frozen || variables.sameExecution \
                 || (variables.newPlan == '' && (variables.newUid == '' || variables.newUid == variables.oldUid) && (variables.newStatus == '' || variables.newStatus == variables.oldStatus)) \
                 || (variables.newPlan != '' && {SCHEDULES})"
            ),
            "spec.planExecution is changed only to nothing, or to a planName with a new uid and status NEVER_RUN; leave its status to Interlock",
            "spec.planExecution is changed only to nothing, or to a planName with a new uid and status NEVER_RUN; leave its status to Interlock",
        ),
        guard(
            options,
            PLAN_UID,
            "variables.frozen || variables.sameExecution || variables.newPlan == '' || !variables.usedUp",
            "spec.planExecution.uid is that of a run that has ended; a new run needs a new uid",
            "spec.planExecution.uid is that of a run that has ended; a new run needs a new uid",
        ),
        guard(
            options,
            PLAN_CLEANUP,
            &format!("variables.frozen || variables.sameExecution || {cleanup}"),
            "only Interlock schedules plan cleanup, when the Instance is deleted; delete the Instance to have it run",
            "only Interlock schedules plan cleanup, when the Instance is deleted; delete the Instance to have it run",
        ),
        guard(
            options,
            INSTANCE_DELETING,
            "variables.frozen || variables.sameExecution || !variables.deleting || variables.newPlan == '' || variables.newPlan == 'cleanup'",
            "no plan but cleanup is scheduled while the Instance is being deleted; let the deletion end",
            "no plan but cleanup is scheduled while the Instance is being deleted; let the deletion end",
        ),
        guard(
            options,
            STAMP_MISMATCH,
            // Matches only the head: the cost of a regular expression grows with the text.
            "variables.newStamp == variables.oldStamp || variables.newStamp == '' \
             || (variables.newStamp.size() > 96 && variables.newStamp.endsWith('}') && variables.newStamp.substring(0, 96)\
             .matches('^\\\\{\"v\":1,\"hash\":\"sha256:[0-9a-f]{64}\",\"(spec|ref)\":'))",
            "annotation interlock.dev/last-applied-spec is written by Interlock; leave it as it is, or drop it",
            "annotation interlock.dev/last-applied-spec is written by Interlock; leave it as it is, or drop it",
        ),
        guard(
            options,
            HISTORY_OWNER,
            "variables.newHistory == variables.oldHistory || variables.newHistory == ''",
            "annotation plan.interlock.dev/history is written by Interlock; leave it as it is, or drop it",
            "annotation plan.interlock.dev/history is written by Interlock; leave it as it is, or drop it",
        ),
    ];
    policy(PLAN_EXECUTION, ("instances", &["CREATE", "UPDATE"]), &variables, validations, options)
}
