//! Creation of an Instance: the webhook completes a new object, the reconciler one that admission
//! never saw.

use interlock_core::api::meta::plan::{CLEANUP, DEPLOY};
use interlock_core::api::stamp::Applied;
use interlock_core::api::values::Values;
use interlock_core::api::violation::{FieldReason, SpecViolation, ViolationField};

use super::validate;
use crate::instance::rules::ids::PLAN_UNKNOWN;
use crate::package::Package;

/// The plan that a new Instance runs.
pub const PLAN: &str = DEPLOY;

/// The fields that a new Instance gets besides plan and last-applied spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creation<'p> {
    /// Whether it needs the finalizer: the package has a plan `cleanup`.
    pub finalizer: bool,
    /// Immutable parameters with a default and without a value: they get the default as their value
    /// (KUDO `instance_admission.go`).
    pub defaults: Vec<(&'p str, &'p str)>,
}

impl<'p> Creation<'p> {
    /// Of an Instance of a package with these parameters.
    pub fn new(package: &'p Package, parameters: &Values<'_>) -> Self {
        let immutable = package.parameters().filter(|p| p.immutable == Some(true));
        let defaults = immutable
            .filter_map(|p| Some((p.name.as_deref()?, p.default.as_deref()?)))
            .filter(|(name, _)| !parameters.contains_key(name))
            .collect();
        Self { finalizer: package.plan(CLEANUP).is_some(), defaults }
    }

    /// Whether an Instance has all of it.
    pub fn is_complete(&self, has_finalizer: bool) -> bool {
        self.defaults.is_empty() && (has_finalizer || !self.finalizer)
    }

    /// The spec that the plan runs on, which becomes the last-applied one.
    pub fn spec(&self, given: &Applied<'_>) -> Applied<'static> {
        let mut spec = given.clone().into_owned();
        let owned = |text: &str| text.to_owned().into();
        spec.parameters.extend(self.defaults.iter().map(|(name, value)| (owned(name), owned(value))));
        spec
    }
}

/// The violations by a new Instance. `given` are its parameters as written, `complete` those with
/// the defaults of [`Creation`].
pub fn violations(package: &Package, given: &Values<'_>, complete: &Values<'_>) -> Vec<SpecViolation> {
    let no_deploy = package.plan(PLAN).is_none().then(|| no_deploy(package));
    let unknown = validate::unknown_parameters(package, given);
    no_deploy.into_iter().chain(unknown).chain(validate::invalid_values(package, complete)).collect()
}

fn no_deploy(package: &Package) -> SpecViolation {
    SpecViolation::new(
        PLAN_UNKNOWN,
        "couldn't find 'deploy' plan in the operatorVersion",
        vec![ViolationField::new(
            "spec.operatorVersion.name",
            FieldReason::Invalid,
            format!("OperatorVersion {} has no plan 'deploy'", package.key.name),
        )],
    )
    .next(format!(
        "use an OperatorVersion with a plan 'deploy' (`kubectl get operatorversions -n {}` lists them)",
        package.key.namespace
    ))
}

#[cfg(test)]
mod tests {
    use interlock_core::api::object::NamespacedName;
    use interlock_core::api::rule::Rule;
    use interlock_core::api::stamp::VersionRef;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::instance::rules::ids::PARAMETER_UNKNOWN;

    fn package(plans: &[&str]) -> Package {
        let plans: serde_json::Map<_, _> = plans.iter().map(|plan| ((*plan).to_owned(), json!({}))).collect();
        let parameters = json!([
            {"name": "SIZE", "immutable": true, "default": "3"},
            {"name": "ZONE", "immutable": true},
            {"name": "WORKERS", "default": "2"},
        ]);
        let spec = serde_json::from_value(json!({"plans": plans, "parameters": parameters})).unwrap();
        Package::new(NamespacedName::new("ns", "v1"), spec)
    }

    fn spec(parameters: &[(&'static str, &'static str)]) -> Applied<'static> {
        let operator_version = VersionRef { name: "v1".into(), namespace: "ns".into() };
        let parameters = parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Applied { operator_version, parameters }
    }

    #[rstest]
    #[case::without_a_value(&["deploy"], &[("WORKERS", "5")], false, &[("SIZE", "3")])]
    #[case::with_its_value(&["deploy"], &[("SIZE", "5")], false, &[])]
    #[case::with_a_cleanup(&["deploy", "cleanup"], &[("SIZE", "5")], true, &[])]
    fn a_new_instance(
        #[case] plans: &[&str],
        #[case] parameters: &[(&'static str, &'static str)],
        #[case] finalizer: bool,
        #[case] defaults: &[(&'static str, &'static str)],
    ) {
        let (package, given) = (package(plans), spec(parameters));
        let creation = Creation::new(&package, &given.parameters);
        assert_eq!(creation, Creation { finalizer, defaults: defaults.to_vec() });
        let complete = creation.spec(&given);
        assert_eq!(complete, spec(&[parameters, defaults].concat()));
        let again = Creation::new(&package, &complete.parameters);
        assert!(again.is_complete(true));
        assert_eq!(again.is_complete(false), !finalizer);
    }

    #[test]
    fn all_its_violations_are_found() {
        let package = package(&["cleanup"]);
        let given = spec(&[("SICE", "5")]);
        let found = violations(&package, &given.parameters, &given.parameters);
        let rules: Vec<Rule> = found.iter().map(|violation| violation.rule).collect();
        assert_eq!(rules, [PLAN_UNKNOWN, PARAMETER_UNKNOWN]);
    }
}
