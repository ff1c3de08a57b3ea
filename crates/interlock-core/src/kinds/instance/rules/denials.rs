//! Denials of requests about Instances, for people: the change, the reason, the remedy.

use crate::admission::denial::{Denial, FieldReason, ViolationField};
use crate::api::json::JsonError;
use crate::api::kudo::{ExecutionStatus, PlanStatus};
use crate::api::object::NamespacedName;
use crate::api::rule::Rule;
use crate::api::violation::SpecViolation;
use crate::kinds::instance::change::lock::Lock;
use crate::kinds::instance::status::StatusView;

/// An objection as the denial of a request about an Instance.
pub fn from_objection(objection: SpecViolation, instance: &str) -> Denial {
    let beginning = objection.beginning(instance);
    let sentence = [beginning.as_str(), &objection.sentence].concat();
    let refusal = Denial::invalid(objection.rule, sentence, objection.fields).and_more(objection.more);
    Denial { beginning: beginning.len(), next: objection.next, ..refusal }
}

/// A part of the object cannot be read.
pub fn unreadable(part: &str, error: &JsonError) -> Denial {
    Denial::invalid(
        Rule::REQUEST_UNKNOWN,
        format!("the {part} of the Instance cannot be read"),
        vec![ViolationField::new(part, FieldReason::Invalid, error.to_string())],
    )
    .next("write it as the schema of instances.kudo.dev says (`kubectl explain instances.kudo.dev.spec`)")
}

/// Fields of the spec do not match the schema.
pub fn mistyped(fields: Vec<ViolationField>) -> Denial {
    Denial::invalid(Rule::REQUEST_UNKNOWN, "the spec of the Instance cannot be read", fields).next(
        "write it so and send it again; `kubectl explain instances.kudo.dev.spec` tells what each field takes",
    )
}

/// The spec names no OperatorVersion.
pub fn version_required(instance: &str) -> Denial {
    Denial::invalid(
        Rule::VERSION_MISSING,
        format!("Instance {instance} names no OperatorVersion"),
        vec![ViolationField::new("spec.operatorVersion.name", FieldReason::Required, "a name is required")],
    )
    .next("set spec.operatorVersion.name to an OperatorVersion of the same namespace")
    .certain()
}

/// The OperatorVersion does not exist.
pub fn version_missing(instance: &str, key: &NamespacedName) -> Denial {
    Denial::invalid(
        Rule::VERSION_MISSING,
        format!("OperatorVersion {key} of Instance {instance} is not found"),
        vec![ViolationField::new(
            "spec.operatorVersion.name",
            FieldReason::NotFound,
            format!("{:?} does not exist in namespace {:?}, or is not known yet", key.name, key.namespace),
        )],
    )
    .why("what the Instance may be is decided by its OperatorVersion")
    .next(format!(
        "create it first, or correct the name; `kubectl get operatorversions -n {}` lists them",
        key.namespace
    ))
}

/// The OperatorVersion exists, but exceeds the size budget of the cache.
pub fn version_left_out(instance: &str, key: &NamespacedName, why: &str) -> Denial {
    Denial::invalid(
        Rule::VERSION_MISSING,
        format!("OperatorVersion {key} of Instance {instance} cannot be used now"),
        vec![ViolationField::new(
            "spec.operatorVersion.name",
            FieldReason::NotFound,
            format!("{:?} of namespace {:?} is left out", key.name, key.namespace),
        )],
    )
    .why(why)
    .next("delete OperatorVersions of that namespace that no Instance uses, and send it again")
}

/// The reason: the plan, its phase and step, and since when.
pub fn why_locked(lock: &Lock<'_>, status: &StatusView<'_>) -> String {
    let Some(state) = lock.status else {
        return ["plan ", lock.plan, " is scheduled and has not begun"].concat();
    };
    let place = status.record(lock.plan).as_ref().map(place).unwrap_or_default();
    ["plan ", lock.plan, " is ", state.as_str(), &place].concat()
}

fn place(entry: &PlanStatus) -> String {
    let unfinished = |status: &ExecutionStatus| !status.is_terminal();
    let phase = entry.phases.iter().flatten().find(|phase| unfinished(&phase.status));
    let step = phase.and_then(|phase| phase.steps.iter().flatten().find(|step| unfinished(&step.status)));
    let since = entry.last_updated_timestamp.as_ref().map(|time| time.0.to_string());
    let told = [
        (" at phase ", phase.map(|phase| &phase.name)),
        (", step ", step.map(|step| &step.name)),
        (", last change ", since.as_ref()),
    ];
    told.into_iter().filter_map(|(what, is)| is.map(|is| [what, is].concat())).collect()
}

/// The remedy while a plan runs.
pub fn next_locked(instance: &str) -> String {
    let (namespace, name) = instance.split_once('/').unwrap_or_default();
    let object = [name, " -n ", namespace].concat();
    [
        "wait until the plan has ended (`interlock plan wait ",
        &object,
        "`), or end it (`interlock plan abort ",
        &object,
        " --reason ...`), then send the change again",
    ]
    .concat()
}

/// A denial because of the lock.
pub fn locked(refusal: Denial, lock: &Lock<'_>, status: &StatusView<'_>, instance: &str) -> Denial {
    let plan = Some(lock.plan.to_owned());
    Denial { plan, ..refusal.why(why_locked(lock, status)).next(next_locked(instance)) }
}

/// A field of planExecution.
pub fn execution_field(name: &str, before: &str, after: &str) -> ViolationField {
    ViolationField::new(
        format!("spec.planExecution.{name}"),
        FieldReason::Forbidden,
        format!("'{before}' -> '{}'", after.chars().take(64).collect::<String>()),
    )
}

/// A field that mutation would still have to change.
pub fn not_mutated(rule: Rule, instance: &str, field: &str, detail: &str) -> Denial {
    Denial::invalid(
        rule,
        format!("Instance {instance} is not as Interlock's mutating webhook makes it"),
        vec![ViolationField::new(field, FieldReason::Invalid, detail)],
    )
    .why("another webhook changed it since, or the mutating webhook was not called")
    .next("send the request again; if it is refused again, compare `kubectl get mutatingwebhookconfigurations` with `interlock render webhooks`")
}
