//! Denials of requests about Instances, for people: the change, the reason, the remedy.

use interlock_core::admission::denial::{Denial, FieldReason, ViolationField};
use interlock_core::admission::ids::REQUEST_UNKNOWN;
use interlock_core::api::age::age;
use interlock_core::api::json::Misfit;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::rule::Rule;
use interlock_core::api::suggest;
use interlock_core::api::violation::{InstanceCommand, SpecViolation};
use jiff::Timestamp;

use super::commands;
use crate::api::{ExecutionStatus, PlanStatus};
use crate::instance::change::lock::Lock;
use crate::instance::change::plan_request::{PlanRequest, PlanVerb};
use crate::instance::rules::ids::{VERSION_LEFT_OUT, VERSION_MISSING, VERSION_REQUIRED};
use crate::instance::status::StatusView;

/// An objection as the denial of a request about an Instance.
pub fn from_objection(objection: SpecViolation, instance: &str) -> Denial {
    let beginning = objection.beginning(instance);
    let sentence = [beginning.as_str(), &objection.sentence].concat();
    let refusal = Denial::invalid(objection.rule, sentence, objection.fields).and_more(objection.more);
    let command = objection.command.map(|command| commands::text(command, instance));
    let next = match (objection.next, command) {
        (Some(next), Some(command)) => Some(format!("{next} ({command})")),
        (next, command) => next.or(command),
    };
    Denial { beginning: beginning.len(), names_field: objection.names_field, next, ..refusal }
}

/// A part of the object cannot be read: the field of it that does not fit, if one can be named.
pub fn unreadable(part: &str, misfit: Option<Misfit>) -> Denial {
    let field = match misfit {
        Some(misfit) => misfit.field(part),
        None => ViolationField::new(part, FieldReason::Invalid, "does not fit its schema"),
    };
    Denial::invalid(REQUEST_UNKNOWN, format!("the {part} of the Instance cannot be read"), vec![field])
        .next(format!("write it as its schema says (`kubectl explain instances.kudo.dev.{part}`)"))
}

/// Fields of the spec do not match the schema.
pub fn mistyped(fields: Vec<ViolationField>) -> Denial {
    Denial::invalid(REQUEST_UNKNOWN, "the spec of the Instance cannot be read", fields).next(
        "write it so and send it again; `kubectl explain instances.kudo.dev.spec` tells what each field takes",
    )
}

/// The spec names no OperatorVersion.
pub fn version_required(instance: &str) -> Denial {
    Denial::invalid(
        VERSION_REQUIRED,
        format!("Instance {instance} names no OperatorVersion"),
        vec![ViolationField::new("spec.operatorVersion.name", FieldReason::Required, "a name is required")],
    )
    .next(format!(
        "set spec.operatorVersion.name to an OperatorVersion of the same namespace (`kubectl get operatorversions -n \
         {}` lists them)",
        instance.split_once('/').unwrap_or_default().0
    ))
    .certain()
}

/// The OperatorVersion does not exist.
/// `known` are names that the user may know: those of the namespace of the Instance, if it is there.
pub fn version_missing(instance: &str, key: &NamespacedName, known: &[String]) -> Denial {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let correct = suggest::did_you_mean(&key.name, &known)
        .map_or("or correct the name".to_owned(), |found| ["or correct the name: ", &found].concat());
    Denial::invalid(
        VERSION_MISSING,
        format!("OperatorVersion {key} of Instance {instance} is not found"),
        vec![ViolationField::new(
            "spec.operatorVersion.name",
            FieldReason::NotFound,
            format!("{:?} does not exist in namespace {:?}, or is not known yet", key.name, key.namespace),
        )],
    )
    .named()
    .why("nothing of the Instance is carried out before its OperatorVersion is there")
    .next(format!("create it, {correct} (`kubectl get operatorversions -n {}` lists them)", key.namespace))
}

/// The warning that the OperatorVersion is waited for.
pub fn awaited(key: &NamespacedName, known: &[String]) -> String {
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let correct =
        suggest::did_you_mean(&key.name, &known).map_or(String::new(), |found| ["; ", &found].concat());
    format!("OperatorVersion {key} is not there: nothing is carried out until it is{correct}")
}

/// The OperatorVersion exists, but exceeds the size budget of the cache.
pub fn version_left_out(instance: &str, key: &NamespacedName, why: &str) -> Denial {
    Denial::invalid(
        VERSION_LEFT_OUT,
        format!("OperatorVersion {key} of Instance {instance} cannot be used now"),
        vec![ViolationField::new(
            "spec.operatorVersion.name",
            FieldReason::NotFound,
            format!("{:?} of namespace {:?} is left out", key.name, key.namespace),
        )],
    )
    .why(why)
    .next(format!(
        "delete OperatorVersions of that namespace that no Instance uses (`kubectl get operatorversions,instances -n {}` \
         lists both), and send it again",
        key.namespace
    ))
}

/// The reason: the plan, since when it runs, its phase and step.
pub fn why_locked(lock: &Lock<'_>, status: &StatusView<'_>, now: Option<Timestamp>) -> String {
    let Some(state) = lock.status else {
        return ["plan ", lock.plan, " is scheduled and has not begun"].concat();
    };
    let started = status.started(lock.uid);
    let since = match (started, now) {
        (Some(started), Some(now)) => [" for ", &age(started, now)].concat(),
        (Some(started), None) => format!(" since {started}"),
        (None, _) => String::new(),
    };
    let record = status.record(lock.plan);
    let place = record.as_ref().map(place).unwrap_or_default();
    let touched = record.and_then(|entry| entry.last_updated_timestamp).filter(|_| started.is_none());
    let touched = match (touched, now) {
        (Some(time), Some(now)) => [", last change ", &age(time.0, now), " ago"].concat(),
        (Some(time), None) => format!(", last change {}", time.0),
        (None, _) => String::new(),
    };
    ["plan ", lock.plan, " is ", state.as_str(), &since, &place, &touched].concat()
}

fn place(entry: &PlanStatus) -> String {
    let unfinished = |status: &ExecutionStatus| !status.is_terminal();
    let phase = entry.phases.iter().flatten().find(|phase| unfinished(&phase.status));
    let step = phase.and_then(|phase| phase.steps.iter().flatten().find(|step| unfinished(&step.status)));
    let told = [(" at phase ", phase.map(|phase| &phase.name)), (", step ", step.map(|step| &step.name))];
    told.into_iter().filter_map(|(what, is)| is.map(|is| [what, is].concat())).collect()
}

/// A denial because of the lock; `request` is the plan request that the Instance carries, if any.
pub fn locked(
    refusal: Denial,
    lock: &Lock<'_>,
    (status, request): (&StatusView<'_>, Option<&str>),
    instance: &str,
    now: Option<Timestamp>,
) -> Denial {
    let plan = Some(lock.plan.to_owned());
    let pause = pause(lock, status, request);
    let next = commands::next_locked(instance, lock, pause.as_ref().map(|(_, nonce)| nonce.as_str()));
    let pause = pause.map_or("", |(text, _)| text);
    let why = [why_locked(lock, status, now).as_str(), pause].concat();
    Denial { plan, ..refusal.why(why).next(next) }
}

/// That a run does not go on by itself, to continue a sentence about it, and the nonce of the request for that.
fn pause(lock: &Lock<'_>, status: &StatusView<'_>, request: Option<&str>) -> Option<(&'static str, String)> {
    let of_run = |run: &str| run == lock.uid && !run.is_empty();
    let asked = request.and_then(|text| text.parse::<PlanRequest>().ok()).filter(|asked| of_run(&asked.run));
    let requests = status.requests().filter(|requests| of_run(&requests.run) && requests.paused.is_some());
    match (requests, asked) {
        // What it waits for is on its way.
        (Some(_), Some(asked)) if asked.verb == PlanVerb::Resume => None,
        (Some(requests), _) => {
            // Others may have written the record while the guards were away, without it.
            let nonce = requests.answered.unwrap_or_else(|| lock.uid.chars().take(8).collect());
            Some((", and is paused", nonce))
        }
        (None, Some(asked)) if asked.verb == PlanVerb::Pause => Some((", and is to pause", asked.nonce)),
        (None, _) => None,
    }
}

/// A remedy with a command about the Instance.
pub fn next(text: &str, command: InstanceCommand, instance: &str) -> String {
    [text, " (", &commands::text(command, instance), ")"].concat()
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
    .next("send the request again; if it is refused again, compare `kubectl get mutatingwebhookconfigurations -o yaml` with `interlock render webhooks`")
}
