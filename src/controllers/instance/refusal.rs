//! Applies the admission rules to a spec that bypassed admission: the same pure rules.

use interlock_core::admission::lister::Overridden;
use interlock_core::api::interlock::RuleAction;
use interlock_core::api::rule::Rule;
use interlock_core::api::stamp::{Applied, VersionRef};
use interlock_core::api::violation::SpecViolation;
use interlock_kudo::instance::change::baseline::Baseline;
use interlock_kudo::instance::change::creation;
use interlock_kudo::instance::change::creation::Creation;
use interlock_kudo::instance::change::next::DriftRefusal;
use interlock_kudo::instance::change::validate;
use interlock_kudo::instance::change::validate::{Before, ChangedPackages};
use interlock_kudo::instance::rules::ids::VERSION_NAMESPACE;
use interlock_kudo::package::Package;
use jiff::Timestamp;

use super::context::InstanceContext;
use super::view::InstanceView;

/// The first enforced violation of a spec that status does not vouch for; `None` where admission would have
/// accepted it, and where its OperatorVersion does not exist. `stamped` is the spec of the stamp.
pub fn refusal(
    ctx: &InstanceContext,
    subject: &InstanceView,
    stamped: Option<&Applied<'static>>,
    spec: &Applied<'static>,
) -> Option<DriftRefusal> {
    if let Some(refusal) = unadmitted(subject, stamped, &spec.operator_version) {
        return Some(refusal);
    }
    let mut enforced = enforced(ctx, subject, stamped, spec);
    let refused = enforced.find(|violation| overriding(ctx, subject, violation.rule).is_none())?;
    Some(DriftRefusal { rule: refused.rule.id().to_owned(), message: refused.sentence, passes: false })
}

/// The violations of a spec that only Overrides admit, each with the name of its Override.
pub fn overridden(
    ctx: &InstanceContext,
    subject: &InstanceView,
    stamped: Option<&Applied<'static>>,
    spec: &Applied<'static>,
) -> Vec<(SpecViolation, String)> {
    let enforced = enforced(ctx, subject, stamped, spec);
    enforced
        .filter_map(|violation| {
            let name = overriding(ctx, subject, violation.rule)?;
            Some((violation, name))
        })
        .collect()
}

/// The Override that admits what a rule denies. Who wrote the spec is not known here: admission has compared the
/// user, and what was written past it, while an Override of that object and rule holds, is as good as that.
fn overriding(ctx: &InstanceContext, subject: &InstanceView, rule: Rule) -> Option<String> {
    let of = Overridden { uid: subject.uid(), rule, user: None, now: Timestamp::now() };
    rule.can_be_overridden().then(|| ctx.store.overridden(of)).flatten()
}

/// The violations of a spec that the settings of its namespace deny.
fn enforced(
    ctx: &InstanceContext,
    subject: &InstanceView,
    stamped: Option<&Applied<'static>>,
    spec: &Applied<'static>,
) -> impl Iterator<Item = SpecViolation> + use<> {
    let actions = ctx.store.actions(&subject.key.namespace);
    let violations = violations(ctx, subject, stamped, spec);
    violations.into_iter().filter(move |violation| actions.of(violation.rule) == RuleAction::Deny)
}

fn violations(
    ctx: &InstanceContext,
    subject: &InstanceView,
    stamped: Option<&Applied<'static>>,
    spec: &Applied<'static>,
) -> Vec<SpecViolation> {
    let Some(new) = ctx.package(&spec.operator_version) else { return Vec::new() };
    match &subject.basis {
        Some(basis) => since(ctx, subject, (basis, stamped), spec, &new),
        None if subject.has_run() && spec.hash() == subject.hash => Vec::new(), // An older KUDO's, taken as it is.
        None if subject.has_run() => validate::invalid_values(&new, &spec.parameters),
        None => {
            let complete = Creation::new(&new, &spec.parameters).spec(spec);
            creation::violations(&new, &spec.parameters, &complete.parameters)
        }
    }
}

/// Only admission compares a reference with the rights of its author. A stamp with the same reference as
/// the spec proves that it did; either alone may have been written past it.
fn unadmitted(
    subject: &InstanceView,
    stamped: Option<&Applied<'static>>,
    version: &VersionRef<'_>,
) -> Option<DriftRefusal> {
    let admitted = stamped.is_some_and(|stamped| stamped.operator_version == subject.spec.operator_version);
    if version.namespace == subject.key.namespace || admitted {
        return None;
    }
    let message = format!(
        "OperatorVersion {}/{} is in another namespace, and read access of whoever refers to it was never verified",
        version.namespace, version.name
    );
    Some(DriftRefusal { rule: VERSION_NAMESPACE.id().to_owned(), message, passes: false })
}

/// Violations of a spec that follows an earlier one.
fn since(
    ctx: &InstanceContext,
    subject: &InstanceView,
    (basis, stamped): (&Baseline, Option<&Applied<'static>>),
    spec: &Applied<'static>,
    new: &Package,
) -> Vec<SpecViolation> {
    let before = stamped.filter(|stamped| stamped.hash() == basis.hash).or_else(|| {
        let previous = subject.stamp.as_ref()?.previous.as_ref()?;
        previous.kept.inline().filter(|spec| previous.hash == basis.hash && spec.hash() == basis.hash)
    });
    let of_before = || ctx.package(&before?.operator_version);
    let old = ctx.package_of_basis(subject).or_else(of_before);
    let version = old.as_deref().map(|old| VersionRef {
        name: old.key.name.as_str().into(),
        namespace: old.key.namespace.as_str().into(),
    });
    let packages = ChangedPackages { new, old: old.as_deref() };
    let goes_back = basis.reverts_to(spec);
    validate::edit_past_admission(
        Before { baseline: basis, stamp: before, version: version.as_ref(), is_revert: goes_back },
        spec,
        packages,
    )
}
