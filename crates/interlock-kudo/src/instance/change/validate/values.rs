//! Validates the values of parameters: a violation for each invalid one.

use interlock_core::api::stamp::Applied;
use interlock_core::api::suggest;
use interlock_core::api::values::Values;
use interlock_core::api::violation::{FieldReason, MessagePrefix, SpecViolation, ViolationField, first_of};

use super::immutable::immutable;
use super::upgrade::ChangedPackages;
use crate::instance::change::spec_change::SpecChange;
use crate::instance::rules::ids::{PARAMETER_INVALID, PARAMETER_UNKNOWN};
use crate::package::Package;
use crate::package::params;

/// How many unknown names are compared with the parameters that there are.
const COMPARED: usize = 4;

/// Validates the values of a change: unknown parameters, immutable ones, types.
///
/// `new` is the spec without the parameters that an upgrade drops.
pub fn invalid_parameters(
    change: &SpecChange<'_>,
    new: &Applied<'_>,
    packages: ChangedPackages<'_>,
) -> Vec<SpecViolation> {
    let mut violations = unknown_in_change(change, packages.new);
    violations.extend(immutable(change, new, packages));
    violations.extend(invalid_values(packages.new, &new.parameters));
    violations
}

/// Violations by values that do not fit their parameters.
pub fn invalid_values(package: &Package, values: &Values<'_>) -> Vec<SpecViolation> {
    let problems = params::check_all(package, values).into_iter();
    let violation = |problem: params::ParameterProblem| {
        let field = problem.field();
        SpecViolation::new(PARAMETER_INVALID, problem.sentence, vec![field])
            .named()
            .prelude(MessagePrefix::Validate)
            .next(format!(
                "{} (`kubectl get operatorversion {} -n {} -o yaml` lists what each parameter takes)",
                problem.remedy, package.key.name, package.key.namespace
            ))
    };
    first_of(problems, violation)
}

/// Violations by parameters of a new Instance that the package does not define.
///
/// KUDO accepts them at creation, and rejects them at the first update; here both are denied.
pub fn unknown_parameters(package: &Package, new: &Values<'_>) -> Vec<SpecViolation> {
    unknown_among(new.keys().map(AsRef::as_ref), package)
}

fn unknown_in_change(change: &SpecChange<'_>, package: &Package) -> Vec<SpecViolation> {
    unknown_among(change.changed.iter().map(|(key, _)| *key), package)
}

fn unknown_among<'n>(names: impl Iterator<Item = &'n str>, package: &Package) -> Vec<SpecViolation> {
    let unknown = names.filter(|name| package.parameter(name).is_none());
    // A review waits for these: only the first few are compared with what there is.
    let mut compared = COMPARED;
    let violation = |name: &str| {
        let likely = compared.checked_sub(1).and_then(|left| {
            compared = left;
            let names: Vec<&str> = package.parameters().filter_map(|p| p.name.as_deref()).collect();
            suggest::did_you_mean(name, &names)
        });
        let (hint, remedy) = match &likely {
            Some(likely) => (format!("; {likely}"), format!("correct the name: {likely}")),
            None => (String::new(), "correct the name".to_owned()),
        };
        let detail = format!("OperatorVersion {} defines no such parameter{hint}", package.key.name);
        SpecViolation::new(
            PARAMETER_UNKNOWN,
            format!("failed to find parameter {name:?} in the OperatorVersion"),
            vec![ViolationField::parameter(name, FieldReason::NotFound, detail)],
        )
        .named()
        .next(format!(
            "{remedy} (`kubectl get operatorversion {} -n {} -o yaml` lists the parameters)",
            package.key.name, package.key.namespace
        ))
    };
    first_of(unknown, violation)
}
