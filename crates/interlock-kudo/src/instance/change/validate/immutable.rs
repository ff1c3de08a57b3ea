//! Immutable parameters: they must not change, and an upgrade must set those that it adds.

use interlock_core::api::stamp::Applied;
use interlock_core::api::violation::{
    FieldReason, InstanceCommand, MessagePrefix, SpecViolation, ViolationField, first_of,
};

use super::upgrade::ChangedPackages;
use crate::api::Parameter;
use crate::instance::change::spec_change::{PreviousValue, SpecChange, arrow};
use crate::instance::rules::ids::PARAMETER_IMMUTABLE;
use crate::package::params;
use crate::package::params::MASK;

fn is_immutable(parameter: Option<&Parameter>) -> bool {
    parameter.is_some_and(|p| p.immutable == Some(true))
}

/// Violations by immutable parameters that change.
pub(super) fn immutable(
    change: &SpecChange<'_>,
    new: &Applied<'_>,
    packages: ChangedPackages<'_>,
) -> Vec<SpecViolation> {
    // Without the old OperatorVersion, its immutable parameters are unknown.
    let frozen = |key: &str| {
        let before = if change.upgrade {
            packages.old.and_then(|p| p.parameter(key))
        } else {
            packages.new.parameter(key)
        };
        is_immutable(packages.new.parameter(key)) && is_immutable(before)
    };
    let violation = |sentence: String, name: &str, was: &PreviousValue<'_>, value: Option<&str>| {
        let parameter = packages.new.parameter(name);
        let field = ViolationField::parameter(name, FieldReason::Forbidden, arrow(parameter, was, value));
        SpecViolation::new(PARAMETER_IMMUTABLE, sentence, vec![field])
            .named()
            .prelude(MessagePrefix::Immutable)
            .next(keep(name, was, parameter))
            .command(InstanceCommand::Show)
    };
    let changed = first_of(change.changed.iter().filter(|(key, _)| frozen(key)), |(key, was)| {
        let parameter = packages.new.parameter(key);
        let value = new.parameters.get(key).map(AsRef::as_ref).unwrap_or_default();
        let values = match parameter.filter(|parameter| params::shown(parameter)) {
            Some(_) => {
                let (before, after) = (was.display(parameter), params::display(parameter, value));
                format!(" from '{before}' to '{after}'")
            }
            None => String::new(),
        };
        violation(format!("parameter '{key}' is immutable but was changed{values}"), key, was, Some(value))
    });
    let removed = first_of(change.removed.iter().filter(|(key, _)| frozen(key)), |(key, was)| {
        let before = was.display(packages.new.parameter(key));
        let value = if before == MASK { String::new() } else { format!(" '{before}'") };
        let sentence = format!("parameter '{key}' is immutable but its value{value} was removed");
        violation(sentence, key, was, None)
    });
    let required = if change.upgrade { made_immutable(new, packages) } else { Vec::new() };
    changed.into_iter().chain(removed).chain(required).collect()
}

/// The remedy that restores a value.
fn keep(name: &str, was: &PreviousValue<'_>, parameter: Option<&Parameter>) -> String {
    let stays = match (was, was.display(parameter)) {
        (PreviousValue::Absent, _) => format!("leave spec.parameters.{name} out"),
        (_, before) if before == MASK => format!("send spec.parameters.{name} with the value that it has"),
        (_, before) => format!("send spec.parameters.{name} as '{before}'"),
    };
    format!("{stays}; another value needs another Instance")
}

/// KEP-30: parameters that an upgrade makes immutable, or adds as immutable, must be set.
fn made_immutable(new: &Applied<'_>, packages: ChangedPackages<'_>) -> Vec<SpecViolation> {
    let Some(old) = packages.old else { return Vec::new() };
    let version = &packages.new.key.name;
    let absent = packages.new.parameters().filter(|p| is_immutable(Some(p))).filter_map(|parameter| {
        let name = parameter.name.as_deref().unwrap_or_default();
        let before = old.parameter(name);
        let given = new.parameters.contains_key(name) || is_immutable(before);
        (!given).then_some((parameter, name, before))
    });
    first_of(absent, |(parameter, name, before)| {
        let sentence = if before.is_some() {
            format!(
                "parameter '{name}' was changed to immutable in operator version {version} but no value was \
                 provided"
            )
        } else {
            let default = parameter.default.as_deref().map(|d| params::display(Some(parameter), d));
            let hint = default.map(|d| format!(" (default would be {d})")).unwrap_or_default();
            format!(
                "parameter '{name}' was added in operator version {version}, but no value was provided{hint}"
            )
        };
        let field = ViolationField::parameter(
            name,
            FieldReason::Required,
            "is immutable from now on, so a value is required",
        );
        SpecViolation::new(PARAMETER_IMMUTABLE, sentence, vec![field])
            .prelude(MessagePrefix::Immutable)
            .named()
            .next(format!(
                "set spec.parameters.{name} together with the new operatorVersion (`kubectl get operatorversion {version} -n \
                 {} -o yaml` says what it takes)",
                packages.new.key.namespace
            ))
    })
}
