//! OperatorVersions: frozen while an Instance that refers to them is locked, not deleted while
//! one refers to them, and right in themselves.

use std::collections::BTreeSet;

use super::limits;
use crate::admission::Context;
use crate::admission::door::{Door, Freeze};
use crate::admission::refusal::{Field, FieldReason, Refusal};
use crate::admission::request::{Change, Operation, Request};
use crate::admission::review::Object;
use crate::admission::verdict::Verdict;
use crate::admission::view::Users;
use crate::api::interlock::{Action, Actions};
use crate::api::kudo::OperatorVersionSpec;
use crate::api::object::NamespacedName;
use crate::api::rule::Rule;
use crate::plan::check::{self, Problem};

/// How many locked Instances a refusal names.
const NAMED: usize = 3;

/// Decides on an OperatorVersion.
pub(super) fn judge(request: &Request<'_>, operation: &Operation<'_>, context: &Context<'_>) -> Verdict {
    let key = NamespacedName::new(request.namespace, request.name);
    let decided = match operation {
        Operation::Create(object) => timed(&key, object, None).and_then(|()| create(object, &key, context)),
        Operation::Update(change) => {
            timed(&key, change.object, Some(change.old)).and_then(|()| update(*change, &key, context))
        }
        Operation::Delete(_) => delete(&key, context),
    };
    decided.unwrap_or_else(|refusal| (*refusal).into())
}

fn timed(key: &NamespacedName, new: &Object<'_>, old: Option<&Object<'_>>) -> Result<(), Box<Refusal>> {
    limits::judge(|| format!("OperatorVersion {key}"), new, old)
}

fn read(object: &Object<'_>) -> Result<OperatorVersionSpec, Box<Refusal>> {
    let Some(raw) = object.spec else { return Ok(OperatorVersionSpec::default()) };
    serde_json::from_str(raw.get()).map_err(|error| {
        let field = Field::new("spec", FieldReason::Invalid, error.to_string());
        let refusal = Refusal::invalid(
            Rule::RequestUnknown,
            "the spec of the OperatorVersion cannot be read",
            vec![field],
        );
        Box::new(refusal.next(
            "write it as the schema of operatorversions.kudo.dev says (`kubectl explain operatorversions.kudo.dev.spec`)",
        ))
    })
}

/// References and values of the spec are judged, absence is not.
fn create(object: &Object<'_>, key: &NamespacedName, context: &Context<'_>) -> Result<Verdict, Box<Refusal>> {
    let found = check::problems(&read(object)?);
    let mut verdict = Verdict::allow();
    if !found.is_empty() {
        refuse(&mut verdict, invalid(key, &found), context.view.actions(&key.namespace))?;
    }
    Ok(verdict)
}

/// An error where a refusal holds; a warning, or nothing, where the settings let it pass.
fn refuse(verdict: &mut Verdict, refusal: Refusal, actions: Actions) -> Result<(), Box<Refusal>> {
    match actions.of(refusal.rule) {
        Action::Deny => return Err(Box::new(refusal)),
        Action::Warn => verdict.admit(refusal.rule, &refusal.sentence),
        Action::Off => {}
    }
    Ok(())
}

/// A problem without the numbers in its path, which move when a list grows.
fn kernel(problem: &Problem) -> (String, &str) {
    let mut path = String::new();
    for part in problem.field.split_inclusive('[') {
        path.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    (path, &problem.what)
}

/// What is wrong already may stay, so that an OperatorVersion from before can be mended in steps.
fn new_problems(new: &OperatorVersionSpec, old: &OperatorVersionSpec) -> (Vec<Problem>, usize) {
    let before = check::problems(old);
    let known: BTreeSet<(String, &str)> = before.iter().map(kernel).collect();
    let (old, new): (Vec<Problem>, Vec<Problem>) =
        check::problems(new).into_iter().partition(|problem| known.contains(&kernel(problem)));
    (new, old.len())
}

fn invalid(key: &NamespacedName, problems: &[Problem]) -> Refusal {
    let fields = problems
        .iter()
        .map(|problem| Field::new(&problem.field, FieldReason::Invalid, &problem.what))
        .collect();
    let refusal = Refusal::invalid(
        Rule::VersionInvalid,
        format!("OperatorVersion {key} refers to what it does not hold, or holds what cannot be read"),
        fields,
    )
    .why("a plan that meets this would fail half-way");
    match problems {
        [problem] => refusal.next(&problem.remedy),
        several => refusal.next(several.first().map_or("", |p| p.remedy.as_str()).to_owned() + ", and so on"),
    }
}

fn update(change: Change<'_>, key: &NamespacedName, context: &Context<'_>) -> Result<Verdict, Box<Refusal>> {
    if change.object.spec == change.old.spec {
        return Ok(Verdict::allow());
    }
    let (new, old) = (read(change.object)?, read(change.old)?);
    let mut verdict = Verdict::allow();
    if new == old {
        return Ok(verdict);
    }
    let users = context.view.users_of(key);
    let actions = context.view.actions(&key.namespace);
    if !users.locked.is_empty() {
        if context.config.freeze == Freeze::Strict {
            refuse(&mut verdict, frozen(key, &users), with_users(actions, &users, context))?;
        } else {
            verdict.warn(
                Rule::VersionFrozen,
                format!("{} Instances of this OperatorVersion run a plan now", users.locked.len()),
            );
        }
    } else if users.total > 0 && context.door != Door::Mutate {
        verdict.warn(
            Rule::VersionFrozen,
            format!("{} Instances refer to this OperatorVersion; the change runs no plan", users.total),
        );
    }
    let (found, known) = new_problems(&new, &old);
    if !found.is_empty() {
        refuse(&mut verdict, invalid(key, &found), actions)?;
    }
    if known > 0 && context.door != Door::Mutate {
        verdict.warn(
            Rule::VersionInvalid,
            format!(
                "{known} problems of before remain in this OperatorVersion; `interlock check` names them"
            ),
        );
    }
    Ok(verdict)
}

fn delete(key: &NamespacedName, context: &Context<'_>) -> Result<Verdict, Box<Refusal>> {
    let users = context.view.users_of(key);
    if users.total == 0 || context.view.namespace_terminating(&key.namespace) {
        return Ok(Verdict::allow());
    }
    let refusal = Refusal::forbidden(
        Rule::VersionInUse,
        format!("OperatorVersion {key} is used by {} and cannot be deleted", instances(users.total)),
    )
    .why("their plans, also `cleanup`, are read from it")
    .next(format!("delete or upgrade these Instances first (`kubectl get instances -n {}`)", key.namespace));
    let mut verdict = Verdict::allow();
    refuse(&mut verdict, refusal, context.view.actions(&key.namespace))?;
    Ok(verdict)
}

/// The settings of the namespaces of all locked Instances: the strictest hold.
fn with_users(own: Actions, users: &Users, context: &Context<'_>) -> Actions {
    users
        .locked
        .iter()
        .map(|(instance, _)| context.view.actions(&instance.namespace))
        .fold(own, Actions::strictest)
}

fn instances(count: usize) -> String {
    if count == 1 { "1 Instance".to_owned() } else { format!("{count} Instances") }
}

/// Only Instances of the same namespace are named: whoever may write the OperatorVersion need
/// not see others.
fn frozen(key: &NamespacedName, users: &Users) -> Refusal {
    let own = users.locked.iter().filter(|(instance, _)| instance.namespace == key.namespace);
    let named: Vec<String> =
        own.take(NAMED).map(|(instance, plan)| format!("{} (plan {plan})", instance.name)).collect();
    let others = users.locked.len() - named.len();
    let mut why = named.join(", ");
    if others > 0 {
        why.push_str(&format!("{}{others} more", if named.is_empty() { "" } else { " and " }));
    }
    Refusal::forbidden(
        Rule::VersionFrozen,
        format!("OperatorVersion {key} is frozen while a plan of {} runs", instances(users.locked.len())),
    )
    .why(format!("running: {why}"))
    .next("wait until these plans have ended, then send the change again; or publish it as a new OperatorVersion")
}
