//! Whether the values of parameters are allowed.

use super::delta::Delta;
use super::immutable::immutable;
use super::upgrade::Packages;
use crate::api::rule::Rule;
use crate::api::stamp::Applied;
use crate::api::values::Values;
use crate::plan::bench::Bench;
use crate::plan::objection::{Field, FieldReason, Objection, Prelude};
use crate::plan::package::Package;
use crate::plan::params;

/// Whether the values of a change are allowed: unknown parameters, immutable ones, types.
///
/// `new` is the spec without the parameters that an upgrade drops.
pub fn values(
    delta: &Delta<'_>,
    new: &Applied<'_>,
    packages: Packages<'_>,
    bench: &Bench,
) -> Result<(), Objection> {
    unknown(delta, packages.new, bench)?;
    immutable(delta, new, packages, bench)?;
    valid(packages.new, &new.parameters, bench)
}

/// Whether all values are what their parameters say.
pub fn valid(package: &Package, values: &Values<'_>, bench: &Bench) -> Result<(), Objection> {
    let problems = params::check_all(package, values);
    let Some(first) = problems.first() else { return Ok(()) };
    let more = if problems.len() > 1 { ", and so on" } else { "" };
    bench.object(
        Objection::new(
            Rule::ParameterInvalid,
            first.sentence.clone(),
            problems.iter().map(params::Problem::field).collect(),
        )
        .prelude(Prelude::Validate)
        .next(first.remedy.clone() + more),
    )
}

/// Whether a creation names only parameters that the package defines.
///
/// KUDO accepts others, and refuses them at the first update; here both are refused.
pub fn defined(package: &Package, new: &Values<'_>, bench: &Bench) -> Result<(), Objection> {
    let names: Vec<&str> =
        new.keys().map(AsRef::as_ref).filter(|key| package.parameter(key).is_none()).collect();
    no_unknown(&names, package, bench)
}

fn unknown(delta: &Delta<'_>, package: &Package, bench: &Bench) -> Result<(), Objection> {
    let names: Vec<&str> =
        delta.changed.iter().map(|(key, _)| *key).filter(|key| package.parameter(key).is_none()).collect();
    no_unknown(&names, package, bench)
}

fn no_unknown(names: &[&str], package: &Package, bench: &Bench) -> Result<(), Objection> {
    let Some(first) = names.first() else { return Ok(()) };
    let detail = format!("OperatorVersion {} defines no such parameter", package.key.name);
    bench.object(
        Objection::new(
            Rule::ParameterUnknown,
            format!("failed to find parameter {first:?} in the OperatorVersion"),
            names.iter().map(|name| Field::parameter(name, FieldReason::NotFound, detail.as_str())).collect(),
        )
        .next(format!(
            "correct the name; `kubectl get operatorversion {} -n {} -o yaml` lists the parameters",
            package.key.name, package.key.namespace
        )),
    )
}
