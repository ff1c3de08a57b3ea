//! OperatorVersions: frozen while an Instance that refers to them is locked, not deleted while an
//! Instance refers to them, and valid in themselves.

use std::collections::BTreeSet;

use interlock_core::admission::RuleContext;
use interlock_core::admission::decision::Decision;
use interlock_core::admission::denial::{Denial, FieldReason, ViolationField};
use interlock_core::admission::endpoint::{Freeze, WebhookEndpoint};
use interlock_core::admission::ids::REQUEST_UNKNOWN;
use interlock_core::admission::request::{ObjectChange, Operation, Request};
use interlock_core::admission::review::ReviewObject;
use interlock_core::admission::violations::Violations;
use interlock_core::api::interlock::Actions;
use interlock_core::api::json;
use interlock_core::api::object::NamespacedName;
use interlock_core::kinds::namespace::is_terminating;
use sha2::{Digest, Sha256};

use super::PackageUsers;
use crate::api::OperatorVersionSpec;
use crate::engine::validate;
use crate::engine::validate::{Collector, Findings, PackageProblem, Problems, Wrong};
use crate::operator_version::ids::{VERSION_DEPENDENCIES, VERSION_FROZEN, VERSION_IN_USE, VERSION_INVALID};
use crate::operator_version::packages;
use crate::package::dependencies;
use crate::package::dependencies::DependencyProblem;
use crate::time_limits;

/// How many locked Instances a denial names.
const NAMED: usize = 3;
/// How many problems are named as warnings: the API server cuts them all short where they are longer than 4 KiB.
const WARNED: usize = 8;

/// Decides on an OperatorVersion.
pub fn decide(request: &Request<'_>, context: &RuleContext<'_>) -> Decision {
    let key = NamespacedName::new(request.namespace, request.name);
    let violations = Violations::new(context.lister.actions(&key.namespace), context);
    let mut verdict = Decision::allow();
    let decided = match &request.operation {
        Operation::Create(object) => create(object, &key, context, &violations, &mut verdict),
        Operation::Update(change) => update(*change, &key, context, &violations, &mut verdict),
        Operation::Delete(_) => {
            delete(&key, context, &violations);
            Ok(())
        }
    };
    if let Err(unreadable) = decided {
        return (*unreadable).into();
    }
    violations.decide(verdict)
}

fn limits(
    key: &NamespacedName,
    new: &ReviewObject<'_>,
    old: Option<&ReviewObject<'_>>,
    violations: &Violations<'_>,
) {
    let object = || format!("operatorversion {} -n {}", key.name, key.namespace);
    time_limits::violations(|| format!("OperatorVersion {key}"), object, new, old)
        .for_each(|denial| violations.push(denial));
}

fn read(object: &ReviewObject<'_>) -> Result<OperatorVersionSpec, Box<Denial>> {
    let Some(raw) = object.spec else { return Ok(OperatorVersionSpec::default()) };
    serde_json::from_str(raw.get()).map_err(|error| {
        let field = json::of_error(raw.get(), &error).field("spec");
        let refusal = Denial::invalid(
            REQUEST_UNKNOWN,
            "the spec of the OperatorVersion cannot be read",
            vec![field],
        );
        Box::new(refusal.next(
            "write it as the schema of operatorversions.kudo.dev says (`kubectl explain operatorversions.kudo.dev.spec`)",
        ))
    })
}

/// Validates references and values of the spec, not absent ones.
fn create(
    object: &ReviewObject<'_>,
    key: &NamespacedName,
    context: &RuleContext<'_>,
    violations: &Violations<'_>,
    verdict: &mut Decision,
) -> Result<(), Box<Denial>> {
    limits(key, object, None, violations);
    let spec = read(object)?;
    judge(validate::findings(&spec), key, context, violations, verdict);
    if let Some(problem) = dependencies(&spec, key, context) {
        violations.push(dependent(key, &problem));
    }
    Ok(())
}

/// Refuses what every Instance would fail on, and warns of the rest.
fn judge(
    Findings { errors, warnings }: Findings,
    key: &NamespacedName,
    context: &RuleContext<'_>,
    violations: &Violations<'_>,
    verdict: &mut Decision,
) {
    if !errors.first.is_empty() {
        violations.push(invalid(key, errors));
    }
    if context.endpoint == WebhookEndpoint::Mutate {
        return;
    }
    for problem in warnings.first.iter().take(WARNED) {
        verdict.warn_in_full(VERSION_INVALID, &problem.to_string());
    }
    let more = warnings.more + warnings.first.len().saturating_sub(WARNED);
    if more > 0 {
        verdict.warn_in_full(VERSION_INVALID, &format!("and {more} more problems"));
    }
}

/// What is wrong with the packages that an OperatorVersion installs, as far as they are known.
fn dependencies(
    spec: &OperatorVersionSpec,
    key: &NamespacedName,
    context: &RuleContext<'_>,
) -> Option<DependencyProblem> {
    let known = packages(context);
    let lookup = |name: &str| known.operator_version(&NamespacedName::new(&key.namespace, name));
    dependencies::problem(&key.name, spec, &lookup)
}

fn dependent(key: &NamespacedName, problem: &DependencyProblem) -> Denial {
    let field = ViolationField::new("spec.tasks", FieldReason::Invalid, problem.to_string());
    Denial::invalid(
        VERSION_DEPENDENCIES,
        format!("the packages that OperatorVersion {key} installs cannot be carried out"),
        vec![field],
    )
    .why("each Instance of it would make others without end, or more than it may")
    .next(format!(
        "change the tasks of kind KudoOperator in one of these OperatorVersions (`kubectl get operatorversions -n {} \
         -o yaml` shows them)",
        key.namespace
    ))
}

/// Hash of a problem without the numbers in its path, which shift when a list grows. There may be many
/// thousands.
fn kernel(wrong: &Wrong<'_>) -> [u8; 32] {
    let PackageProblem { field, what, .. } = wrong.write();
    let mut path = String::with_capacity(field.len());
    for part in field.split_inclusive('[') {
        path.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    // The length marks the end of the path.
    let hash = Sha256::new().chain_update(path.len().to_le_bytes()).chain_update(path).chain_update(what);
    hash.finalize().into()
}

/// Existing problems may stay, so that an old OperatorVersion can be fixed in steps.
///
/// Returns the new problems, and the number of old ones.
fn new_problems(new: &OperatorVersionSpec, old: &OperatorVersionSpec) -> (Findings, usize) {
    let mut before = BTreeSet::new();
    validate::each(old, &mut |wrong| {
        before.insert(kernel(wrong));
    });
    let (mut found, mut known) = (Collector::default(), 0);
    validate::each(new, &mut |wrong| match !before.is_empty() && before.contains(&kernel(wrong)) {
        true => {
            known += 1;
            found.know(wrong);
        }
        false => found.add(wrong),
    });
    (found.findings(new), known)
}

fn invalid(key: &NamespacedName, problems: Problems) -> Denial {
    let Problems { first, more } = problems;
    let remedy = first.first().map_or("", |problem| &problem.remedy).to_owned();
    let more_remedies = if first.len() > 1 { ", and so on" } else { "" };
    let fields = first
        .into_iter()
        .map(|problem| ViolationField::new(problem.field, FieldReason::Invalid, problem.what))
        .collect();
    Denial::invalid(
        VERSION_INVALID,
        format!("OperatorVersion {key} refers to what it does not hold, or holds what cannot be read"),
        fields,
    )
    .and_more(more)
    .why("no Instance could be created with it, or upgraded to it: the plan that this runs would fail half-way")
    .next(format!(
        "{remedy}{more_remedies} (`kubectl explain operatorversions.kudo.dev.spec` tells what each field takes)"
    ))
}

fn update(
    change: ObjectChange<'_>,
    key: &NamespacedName,
    context: &RuleContext<'_>,
    violations: &Violations<'_>,
    verdict: &mut Decision,
) -> Result<(), Box<Denial>> {
    limits(key, change.object, Some(change.old), violations);
    if change.object.spec == change.old.spec {
        return Ok(());
    }
    let (new, old) = (read(change.object)?, read(change.old)?);
    if new == old {
        return Ok(());
    }
    let users = packages(context).users_of(key);
    if !users.locked.is_empty() {
        if context.config.freeze == Freeze::Strict {
            let denial = frozen(key, &users);
            let actions = with_users(context.lister.actions(&key.namespace), &users, context);
            violations.push_as(actions.of(denial.rule), denial);
        } else {
            verdict.warn(
                VERSION_FROZEN,
                format!("{} Instances of this OperatorVersion run a plan now", users.locked.len()),
            );
        }
    } else if users.total > 0 && context.endpoint != WebhookEndpoint::Mutate {
        verdict.warn(
            VERSION_FROZEN,
            format!("{} Instances refer to this OperatorVersion; the change runs no plan", users.total),
        );
    }
    let (found, known) = new_problems(&new, &old);
    judge(found, key, context, violations, verdict);
    // What was wrong before may stay, while the rest is mended.
    if let Some(problem) = dependencies(&new, key, context)
        && dependencies(&old, key, context).as_ref() != Some(&problem)
    {
        violations.push(dependent(key, &problem));
    }
    if known > 0 && context.endpoint != WebhookEndpoint::Mutate {
        verdict.warn(
            VERSION_INVALID,
            format!(
                "{known} problems of before remain in this OperatorVersion; `interlock check` names them"
            ),
        );
    }
    Ok(())
}

fn delete(key: &NamespacedName, context: &RuleContext<'_>, violations: &Violations<'_>) {
    let users = packages(context).users_of(key);
    if users.total == 0 || is_terminating(context, &key.namespace) {
        return;
    }
    let denial = Denial::forbidden(
        VERSION_IN_USE,
        format!("OperatorVersion {key} is used by {} and cannot be deleted", instances(users.total)),
    )
    .why("their plans, also `cleanup`, are read from it")
    .next(format!("delete or upgrade these Instances first (`kubectl get instances -n {}`)", key.namespace));
    violations.push(denial);
}

/// The settings of the namespaces of all locked Instances: the strictest win.
fn with_users(own: Actions, users: &PackageUsers, context: &RuleContext<'_>) -> Actions {
    users
        .locked
        .iter()
        .map(|(instance, _)| context.lister.actions(&instance.namespace))
        .fold(own, Actions::strictest)
}

fn instances(count: usize) -> String {
    if count == 1 { "1 Instance".to_owned() } else { format!("{count} Instances") }
}

/// Names only Instances of the same namespace: users who may write the OperatorVersion need not see
/// others.
fn frozen(key: &NamespacedName, users: &PackageUsers) -> Denial {
    let own = users.locked.iter().filter(|(instance, _)| instance.namespace == key.namespace);
    let named: Vec<String> =
        own.take(NAMED).map(|(instance, plan)| format!("{} (plan {plan})", instance.name)).collect();
    let others = users.locked.len() - named.len();
    let mut why = named.join(", ");
    if others > 0 {
        why.push_str(&format!("{}{others} more", if named.is_empty() { "" } else { " and " }));
    }
    Denial::forbidden(
        VERSION_FROZEN,
        format!("OperatorVersion {key} is frozen while a plan of {} runs", instances(users.locked.len())),
    )
    .why(format!("running: {why}"))
    .next(format!(
        "wait until these plans have ended (`kubectl get instances -n {}` lists them), then send the change again; or \
         publish it as a new OperatorVersion",
        key.namespace
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    /// Every task that a plan names and that does not exist is a problem.
    fn spec(named: &[String]) -> OperatorVersionSpec {
        let steps: Vec<_> = named
            .iter()
            .enumerate()
            .map(|(i, task)| json!({"name": format!("s{i}"), "tasks": [task]}))
            .collect();
        let plans = json!({"deploy": {"phases": [{"name": "p", "steps": steps}]}});
        serde_json::from_value(json!({"plans": plans})).unwrap()
    }

    fn lost(numbers: impl Iterator<Item = usize>) -> Vec<String> {
        numbers.map(|i| format!("t{i}")).collect()
    }

    /// Problems are distinguished, however many there are. (before, after) -> new, known
    #[rstest]
    #[case::all_stay(0..200, 0..200, (0, 200))]
    #[case::some_go(0..200, 50..150, (0, 100))]
    #[case::one_comes_behind_all(0..200, 0..201, (1, 200))]
    #[case::one_comes_before_all(1..200, 0..200, (1, 199))]
    #[case::all_come(0..0, 0..200, (200, 0))]
    #[case::all_differ(0..200, 200..400, (200, 0))]
    fn problems_are_counted_and_told_apart(
        #[case] before: std::ops::Range<usize>,
        #[case] after: std::ops::Range<usize>,
        #[case] expected: (usize, usize),
    ) {
        let (found, known) = new_problems(&spec(&lost(after)), &spec(&lost(before)));
        assert_eq!(found.warnings, Problems::default());
        let found = found.errors;
        assert_eq!((found.first.len() + found.more, known), expected);
        let refusal = invalid(&NamespacedName::new("ns", "ov"), found);
        assert_eq!(refusal.fields.len() + refusal.more, expected.0);
        let more = format!("\n  and {} more", expected.0.saturating_sub(1));
        assert_eq!(refusal.text(None).contains(&more), expected.0 > 2, "{}", refusal.text(None));
        assert!(refusal.fields.len() <= 16);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        /// As if all problems were written out and compared.
        #[test]
        fn what_is_known_is_what_was_there(
            before in prop::collection::vec("[a-f]", 0..8), after in prop::collection::vec("[a-h]", 0..8),
        ) {
            let known = after.iter().filter(|task| before.contains(task)).count();
            let (found, counted) = new_problems(&spec(&after), &spec(&before));
            let found = found.errors;
            prop_assert_eq!((found.first.len(), counted), (after.len() - known, known));
            let wanted: Vec<String> = after
                .iter()
                .filter(|task| !before.contains(task))
                .map(|task| format!("there is no task \"{task}\""))
                .collect();
            prop_assert_eq!(found.first.into_iter().map(|p| p.what).collect::<Vec<_>>(), wanted);
        }
    }
}
