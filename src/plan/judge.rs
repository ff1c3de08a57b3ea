//! What a change of an Instance's spec comes to: the plan it triggers, or an objection.
//!
//! The webhook asks this about `oldObject` and `object`, the reconciler about the basis and a
//! spec that admission never saw: what is admitted is what is executed.

use std::borrow::Cow;
use std::collections::BTreeSet;

use semver::Version;

use super::basis::{Basis, Difference};
use super::bench::Bench;
use super::objection::{Field, FieldReason, Objection, Prelude};
use super::package::Package;
use super::params::{self, MASK};
use super::trigger::{self, TriggerError};
use crate::api::kudo::Parameter;
use crate::api::meta::plan::{CLEANUP, DEPLOY};
use crate::api::rule::Rule;
use crate::api::stamp::{Applied, VersionRef};
use crate::api::values::Values;

/// What a parameter was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Was<'a> {
    /// Not given.
    Absent,
    /// This.
    Value(Cow<'a, str>),
    /// Something else; only its hash is known.
    Unknown,
}

impl Was<'_> {
    fn display(&self, parameter: Option<&Parameter>) -> String {
        match self {
            Self::Absent => String::new(),
            Self::Value(value) => params::display(parameter, value).into_owned(),
            Self::Unknown => MASK.to_owned(),
        }
    }
}

/// How a spec differs from what was before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta<'a> {
    /// Whether the OperatorVersion differs, in name or namespace; nothing else of the reference
    /// counts.
    pub upgrade: bool,
    /// Parameters that were added or whose value changed, with what they were.
    pub changed: Vec<(&'a str, Was<'a>)>,
    /// Parameters that were removed, with what they were.
    pub removed: Vec<(Cow<'a, str>, Was<'a>)>,
}

impl<'a> Delta<'a> {
    /// From one spec to another.
    pub fn between(old: &'a Applied<'_>, new: &'a Applied<'_>) -> Self {
        let upgrade = old.operator_version != new.operator_version;
        let mut delta = Self { upgrade, ..Self::default() };
        let value = |text: &'a str| Was::Value(Cow::Borrowed(text));
        let mut before = old.parameters.iter().peekable();
        for (key, after) in &new.parameters {
            while let Some((gone, was)) = before.next_if(|(other, _)| *other < key) {
                delta.removed.push((Cow::Borrowed(gone.as_ref()), value(was)));
            }
            match before.next_if(|(other, _)| *other == key) {
                Some((_, was)) if was == after => {}
                Some((_, was)) => delta.changed.push((key, value(was))),
                None => delta.changed.push((key, Was::Absent)),
            }
        }
        delta.removed.extend(before.map(|(gone, was)| (Cow::Borrowed(gone.as_ref()), value(was))));
        delta
    }

    /// From a basis, of which only hashes are known, to a spec; `None` where not even those are.
    pub fn since(basis: &Basis, new: &'a Applied<'_>) -> Option<Self> {
        let (upgrade, changed, removed) = match basis.difference(new) {
            Difference::None => return Some(Self::default()),
            Difference::Somewhere => return None,
            Difference::Parts { operator_version, changed, removed } => (operator_version, changed, removed),
        };
        let known = basis.detail.as_ref().map(|d| &d.parameters);
        let was = |key: &str| match known.is_some_and(|k| k.contains_key(key)) {
            true => Was::Unknown,
            false => Was::Absent,
        };
        Some(Self {
            upgrade,
            changed: new
                .parameters
                .keys()
                .filter(|key| changed.contains(key.as_ref()))
                .map(|key| (key.as_ref(), was(key)))
                .collect(),
            removed: removed.into_iter().map(|key| (Cow::Owned(key), Was::Unknown)).collect(),
        })
    }

    /// Names of all parameters that differ.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.changed.iter().map(|(key, _)| *key).chain(self.removed.iter().map(|(key, _)| key.as_ref()))
    }

    /// The fields that differ, for people.
    pub fn fields(
        &self,
        new: &Applied<'_>,
        old: Option<&VersionRef<'_>>,
        package: Option<&Package>,
    ) -> Vec<Field> {
        let mut fields = Vec::new();
        if self.upgrade {
            let before = old.map_or("?", |v| v.name.as_ref());
            let after = &new.operator_version.name;
            fields.push(Field::new(
                "spec.operatorVersion",
                FieldReason::Forbidden,
                format!("{before:?} -> {after:?}"),
            ));
        }
        let definition = |key: &str| package.and_then(|p| p.parameter(key));
        for (key, was) in &self.changed {
            let value = new.parameters.get(key).map(AsRef::as_ref).unwrap_or_default();
            fields.push(Field::parameter(
                key,
                FieldReason::Forbidden,
                arrow(definition(key), was, Some(value)),
            ));
        }
        for (key, was) in &self.removed {
            fields.push(Field::parameter(key, FieldReason::Forbidden, arrow(definition(key), was, None)));
        }
        fields
    }
}

fn arrow(parameter: Option<&Parameter>, was: &Was<'_>, value: Option<&str>) -> String {
    let before = match was {
        Was::Absent => "(not set)".to_owned(),
        known => format!("'{}'", known.display(parameter)),
    };
    let after = value.map_or("(removed)".to_owned(), |v| format!("'{}'", params::display(parameter, v)));
    format!("{before} -> {after}")
}

/// The OperatorVersions of a change.
#[derive(Clone, Copy)]
pub struct Packages<'a> {
    /// Of the new spec.
    pub new: &'a Package,
    /// Of the old one; the same where it is no upgrade, `None` where it is gone.
    pub old: Option<&'a Package>,
}

/// Parameters that an upgrade takes out of the spec: the old OperatorVersion defines them, the
/// new one does not (KEP-30).
pub fn dropped<'a>(packages: Packages<'_>, new: &'a Values<'_>, delta: &Delta<'_>) -> Vec<&'a str> {
    let Some(old) = packages.old.filter(|_| delta.upgrade) else { return Vec::new() };
    new.keys()
        .map(AsRef::as_ref)
        .filter(|key| packages.new.parameter(key).is_none() && old.parameter(key).is_some())
        .filter(|key| !delta.changed.iter().any(|(changed, _)| changed == key))
        .collect()
}

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
    bench.object(
        Objection::new(
            Rule::ParameterInvalid,
            first.sentence.clone(),
            problems.iter().map(params::Problem::field).collect(),
        )
        .prelude(Prelude::Validate),
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

fn is_immutable(parameter: Option<&Parameter>) -> bool {
    parameter.is_some_and(|p| p.immutable == Some(true))
}

fn immutable(
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
    let object = |sentence: String, name: &str, detail: String| {
        bench.object(
            Objection::new(
                Rule::ParameterImmutable,
                sentence,
                vec![Field::parameter(name, FieldReason::Forbidden, detail)],
            )
            .prelude(Prelude::Immutable),
        )
    };
    if let Some((key, was)) = delta.changed.iter().find(|(key, _)| frozen(key)) {
        let parameter = packages.new.parameter(key);
        let value = new.parameters.get(key).map(AsRef::as_ref).unwrap_or_default();
        let (before, after) = (was.display(parameter), params::display(parameter, value));
        return object(
            format!("parameter '{key}' is immutable but was changed from '{before}' to '{after}'"),
            key,
            arrow(parameter, was, Some(value)),
        );
    }
    if let Some((key, was)) = delta.removed.iter().find(|(key, _)| frozen(key)) {
        let parameter = packages.new.parameter(key);
        return object(
            format!("parameter '{key}' is immutable but its value '{}' was removed", was.display(parameter)),
            key,
            arrow(parameter, was, None),
        );
    }
    if delta.upgrade { made_immutable(new, packages, bench) } else { Ok(()) }
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

/// Whether an upgrade goes where it may: the same operator, up, and from a version that the new
/// one lists. What is absent or not semver is not judged.
pub fn path(from: &VersionRef<'_>, packages: Packages<'_>, bench: &Bench) -> Result<(), Objection> {
    let new = packages.new;
    let object = |sentence: String, detail: String| {
        bench.object(Objection::new(
            Rule::UpgradePath,
            sentence,
            vec![Field::new("spec.operatorVersion.name", FieldReason::Forbidden, detail)],
        ))
    };
    let arrow = format!("{:?} -> {:?}", from.name, new.key.name);
    if let Some(old) = packages.old {
        let (before, after) = (old.operator(), new.operator());
        if !before.is_empty() && !after.is_empty() && before != after {
            return object(
                format!("the new OperatorVersion is of operator {after:?}, not {before:?}"),
                arrow,
            );
        }
        let versions = (Version::parse(old.version()), Version::parse(new.version()));
        if let (Ok(before), Ok(after)) = versions
            && after < before
        {
            return object(format!("version {after} is lower than {before}"), arrow);
        }
    }
    let listed = new.spec.upgradable_from.as_deref().unwrap_or_default();
    if !listed.is_empty() && !listed.iter().any(|r| r.name() == from.name) {
        let names: Vec<&str> = listed.iter().map(|r| r.name()).collect();
        return object(
            format!("OperatorVersion {} can be upgraded to from [{}] only", new.key.name, names.join(" ")),
            arrow,
        );
    }
    Ok(())
}

/// What a change runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Triggered {
    /// Nothing: only parameters changed that nobody defines.
    Nothing,
    /// A plan.
    Plan(String),
    /// Several plans, and the settings let that pass: the reconciler runs them one after another.
    Several,
}

/// What a change runs.
pub fn plan(delta: &Delta<'_>, packages: Packages<'_>, bench: &Bench) -> Result<Triggered, Objection> {
    let triggered = triggered(delta, packages, bench)?;
    if !delta.upgrade {
        return Ok(triggered);
    }
    match triggered {
        Triggered::Several => return Ok(Triggered::Several),
        Triggered::Plan(plan) if plan != DEPLOY => {
            bench.object(upgrade_and_edit(&plan, delta, packages))?;
            return Ok(Triggered::Several);
        }
        Triggered::Plan(_) | Triggered::Nothing => {}
    }
    match trigger::upgrade_plan(packages.new) {
        Some(plan) => Ok(Triggered::Plan(plan.to_owned())),
        None => Err(Objection::new(
            Rule::PlanUnknown,
            "couldn't find any suitable plan that would be triggered by an OperatorVersion upgrade",
            vec![Field::new(
                "spec.operatorVersion.name",
                FieldReason::Invalid,
                format!("OperatorVersion {} has no plan upgrade, update or deploy", packages.new.key.name),
            )],
        )),
    }
}

fn upgrade_and_edit(plan: &str, delta: &Delta<'_>, packages: Packages<'_>) -> Objection {
    Objection::new(
        Rule::UpgradeAndEdit,
        format!(
            "upgrade to new OperatorVersion {} together with a parameter update triggering '{plan}' is not \
             allowed",
            go_reference(&packages.new.key.name, None)
        ),
        changed_fields(delta),
    )
    .next("upgrade first; change these parameters when the upgrade has ended")
}

/// What changed and removed parameters run.
pub fn triggered(delta: &Delta<'_>, packages: Packages<'_>, bench: &Bench) -> Result<Triggered, Objection> {
    let counted: BTreeSet<&str> = delta
        .changed
        .iter()
        .map(|(key, _)| *key)
        .filter(|key| !delta.upgrade || packages.old.is_none_or(|old| old.parameter(key).is_some()))
        .chain(delta.removed.iter().map(|(key, _)| key.as_ref()))
        .collect();
    let plans = trigger::plans(packages.new, counted.iter().copied())
        .map_err(|error| undefined_trigger(&error, delta))?;
    if plans.contains(CLEANUP) {
        return Err(cleanup(changed_fields(delta)));
    }
    if plans.len() > 1 {
        let names: Vec<&str> = plans.iter().map(String::as_str).collect();
        let objection = Objection::new(
            Rule::PlanMultiple,
            format!("triggering multiple plans: [[{}]] at once is not allowed", names.join(" ")),
            changed_fields(delta),
        );
        bench.object(
            objection.next("make one change per plan, each when the plan of the one before has ended"),
        )?;
        return Ok(Triggered::Several);
    }
    Ok(plans.into_iter().next().map_or(Triggered::Nothing, Triggered::Plan))
}

/// Only the controller runs `cleanup`, when the Instance is deleted.
pub fn cleanup(fields: Vec<Field>) -> Objection {
    Objection::new(
        Rule::PlanCleanup,
        "only the controller schedules the 'cleanup' plan when the instance is deleted",
        fields,
    )
    .next("delete the Instance to have 'cleanup' run")
}

fn undefined_trigger(error: &TriggerError, delta: &Delta<'_>) -> Objection {
    Objection::new(Rule::PlanUnknown, error.to_string(), changed_fields(delta))
        .next("correct the OperatorVersion: a trigger must name one of its plans")
}

fn changed_fields(delta: &Delta<'_>) -> Vec<Field> {
    let mut fields: Vec<Field> = delta
        .keys()
        .map(|key| Field::parameter(key, FieldReason::Forbidden, "is changed by this request"))
        .collect();
    if fields.is_empty() {
        fields.push(Field::new("spec", FieldReason::Forbidden, "is changed by this request"));
    }
    fields
}

/// A reference as KUDO prints it: a Go struct of seven strings.
pub fn go_reference(name: &str, namespace: Option<&str>) -> String {
    format!("{{ {} {name}    }}", namespace.unwrap_or_default())
}

/// What admission would say to a spec that it never saw, compared with the basis; `stamp` is the
/// spec of the basis where it is still to be had.
///
/// Several triggers are no objection here: the reconciler runs the plans one after another.
pub fn unseen(
    basis: &Basis,
    stamp: Option<&Applied<'_>>,
    spec: &Applied<'_>,
    packages: Packages<'_>,
    bench: &Bench,
) -> Result<(), Objection> {
    let known = stamp.filter(|stamp| stamp.hash() == basis.hash);
    let delta = match known {
        Some(before) => Some(Delta::between(before, spec)),
        None => Delta::since(basis, spec),
    };
    let Some(delta) = delta else { return valid(packages.new, &spec.parameters, bench) };
    if delta.upgrade
        && let Some(before) = known
    {
        path(&before.operator_version, packages, bench)?;
    }
    values(&delta, spec, packages, bench)?;
    match triggered(&delta, packages, &Bench::strict()) {
        Err(objection) if objection.rule != Rule::PlanMultiple => Err(objection),
        _ => Ok(()),
    }
}
