//! What admission would have said to a spec that it never saw: the same pure rules.

use super::context::Context;
use super::subject::{Subject, missing_defaults};
use crate::admission::view::View;
use crate::api::interlock::Action;
use crate::api::meta::plan::DEPLOY;
use crate::api::rule::Rule;
use crate::api::stamp::Applied;
use crate::plan::judge::{self, Before, Packages};
use crate::plan::next::Refusal;
use crate::plan::objection::Objection;
use crate::plan::package::Package;

/// The refusal of the spec that is there, by the first violation that the settings enforce; `None`
/// where it would have been accepted, and where its OperatorVersion is not there to judge it.
pub fn refusal(ctx: &Context, subject: &Subject, stamped: Option<&Applied<'static>>) -> Option<Refusal> {
    let version = &subject.spec.operator_version;
    let known = stamped.is_some_and(|spec| spec.operator_version == *version);
    if version.namespace != subject.key.namespace && !known {
        return Some(Refusal {
            rule: Rule::VersionNamespace.id().to_owned(),
            message: format!(
                "OperatorVersion {}/{} is in another namespace, and nobody has seen to it that whoever refers to it may \
                 read it",
                version.namespace, version.name
            ),
        });
    }
    let new = ctx.package(version)?;
    let actions = ctx.store.actions(&subject.key.namespace);
    let violations = match &subject.basis {
        Some(basis) => {
            let of_stamp = || ctx.package(&stamped?.operator_version);
            let old = ctx.package_of_basis(subject).or_else(of_stamp);
            let packages = Packages { new: &new, old: old.as_deref() };
            let goes_back = judge::goes_back(subject.stamp.as_ref(), &subject.spec);
            let before = Before { basis, stamp: stamped, goes_back };
            judge::unseen(before, &subject.spec, packages)
        }
        None => creation(&new, &subject.spec),
    };
    let enforced = violations.into_iter().find(|violation| actions.of(violation.rule) == Action::Deny);
    enforced.map(|violation| Refusal { rule: violation.rule.id().to_owned(), message: violation.sentence })
}

fn creation(package: &Package, spec: &Applied<'static>) -> Vec<Objection> {
    if package.plan(DEPLOY).is_none() {
        let sentence = "couldn't find 'deploy' plan in the operatorVersion";
        return vec![Objection::new(Rule::PlanUnknown, sentence, Vec::new())];
    }
    let mut violations = judge::defined(package, &spec.parameters);
    let mut values = spec.parameters.clone();
    let defaults = missing_defaults(package, spec);
    values.extend(defaults.map(|(name, default)| (name.to_owned().into(), default.to_owned().into())));
    violations.extend(judge::valid(package, &values));
    violations
}
