//! Immutable parameters: what may not change, and what an upgrade must be given.

use super::delta::{Delta, Was, arrow};
use super::upgrade::Packages;
use crate::api::kudo::Parameter;
use crate::api::rule::Rule;
use crate::api::stamp::Applied;
use crate::plan::bench::Bench;
use crate::plan::objection::{Field, FieldReason, Objection, Prelude};
use crate::plan::params::{self, MASK};

fn is_immutable(parameter: Option<&Parameter>) -> bool {
    parameter.is_some_and(|p| p.immutable == Some(true))
}

/// Whether what is immutable stays as it is.
pub(super) fn immutable(
    delta: &Delta<'_>,
    new: &Applied<'_>,
    packages: Packages<'_>,
    bench: &Bench,
) -> Result<(), Objection> {
    // Where the old OperatorVersion is gone, what was immutable in it cannot be told.
    let frozen = |key: &str| {
        let before = if delta.upgrade {
            packages.old.and_then(|p| p.parameter(key))
        } else {
            packages.new.parameter(key)
        };
        is_immutable(packages.new.parameter(key)) && is_immutable(before)
    };
    let object = |sentence: String, name: &str, was: &Was<'_>, value: Option<&str>| {
        let parameter = packages.new.parameter(name);
        let field = Field::parameter(name, FieldReason::Forbidden, arrow(parameter, was, value));
        bench.object(
            Objection::new(Rule::ParameterImmutable, sentence, vec![field])
                .prelude(Prelude::Immutable)
                .next(keep(name, was, parameter)),
        )
    };
    if let Some((key, was)) = delta.changed.iter().find(|(key, _)| frozen(key)) {
        let parameter = packages.new.parameter(key);
        let value = new.parameters.get(key).map(AsRef::as_ref).unwrap_or_default();
        let (before, after) = (was.display(parameter), params::display(parameter, value));
        return object(
            format!("parameter '{key}' is immutable but was changed from '{before}' to '{after}'"),
            key,
            was,
            Some(value),
        );
    }
    if let Some((key, was)) = delta.removed.iter().find(|(key, _)| frozen(key)) {
        let parameter = packages.new.parameter(key);
        return object(
            format!("parameter '{key}' is immutable but its value '{}' was removed", was.display(parameter)),
            key,
            was,
            None,
        );
    }
    if delta.upgrade { made_immutable(new, packages, bench) } else { Ok(()) }
}

/// What to do about a value that has to stay.
fn keep(name: &str, was: &Was<'_>, parameter: Option<&Parameter>) -> String {
    let stays = match (was, was.display(parameter)) {
        (Was::Absent, _) => format!("leave spec.parameters.{name} out"),
        (_, before) if before == MASK => format!("send spec.parameters.{name} with the value that it has"),
        (_, before) => format!("send spec.parameters.{name} as '{before}'"),
    };
    format!("{stays}; another value needs another Instance")
}

/// KEP-30: what an upgrade makes immutable, or adds as immutable, must be given.
fn made_immutable(new: &Applied<'_>, packages: Packages<'_>, bench: &Bench) -> Result<(), Objection> {
    let Some(old) = packages.old else { return Ok(()) };
    let version = &packages.new.key.name;
    for parameter in packages.new.parameters().filter(|p| is_immutable(Some(p))) {
        let name = parameter.name.as_deref().unwrap_or_default();
        if new.parameters.contains_key(name) {
            continue;
        }
        let sentence = match old.parameter(name) {
            Some(before) if is_immutable(Some(before)) => continue,
            Some(_) => format!(
                "parameter '{name}' was changed to immutable in operator version {version} but no value was \
                 provided"
            ),
            None => {
                let default = parameter.default.as_deref().map(|d| params::display(Some(parameter), d));
                let hint = default.map(|d| format!(" (default would be {d})")).unwrap_or_default();
                format!(
                    "parameter '{name}' was added in operator version {version}, but no value was provided{hint}"
                )
            }
        };
        let field =
            Field::parameter(name, FieldReason::Required, "is immutable from now on, so a value is required");
        return bench.object(
            Objection::new(Rule::ParameterImmutable, sentence, vec![field])
                .prelude(Prelude::Immutable)
                .next(format!("set spec.parameters.{name} together with the new operatorVersion")),
        );
    }
    Ok(())
}
