//! Adapts the freeze's binding to the settings: excludes the namespaces in which the webhook allows a
//! frozen edit, which the policy would otherwise deny.

use interlock_core::api::interlock::{Labels, RuleAction, Rules};
use interlock_core::api::rule::RuleGroup;

use crate::cluster::binding::ExcludedNamespaces;

/// The namespaces in which the freeze does not deny.
pub fn left_out<'a>(
    rules: &Rules,
    namespaces: impl Iterator<Item = (&'a String, &'a Labels)>,
) -> ExcludedNamespaces {
    if rules.everywhere(RuleGroup::Freeze).is_some_and(|action| action != RuleAction::Deny) {
        return ExcludedNamespaces::All;
    }
    let lenient = |labels| rules.within(Some(labels)).group(RuleGroup::Freeze) != RuleAction::Deny;
    ExcludedNamespaces::Named(
        namespaces.filter(|(_, labels)| lenient(labels)).map(|(name, _)| name.clone()).collect(),
    )
}
