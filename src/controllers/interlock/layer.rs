//! The second layer of the freeze follows the settings: its binding leaves out the namespaces in
//! which the webhook lets a frozen edit pass, which the policy would else refuse all the same.

use interlock_core::api::interlock::{Action, Labels, Rules};
use interlock_core::api::rule::RuleGroup;

use crate::cluster::binding::LeftOut;

/// The namespaces in which the freeze does not deny.
pub fn left_out<'a>(rules: &Rules, namespaces: impl Iterator<Item = (&'a String, &'a Labels)>) -> LeftOut {
    if rules.everywhere(RuleGroup::Freeze).is_some_and(|action| action != Action::Deny) {
        return LeftOut::All;
    }
    let lenient = |labels| rules.within(Some(labels)).group(RuleGroup::Freeze) != Action::Deny;
    LeftOut::Named(namespaces.filter(|(_, labels)| lenient(labels)).map(|(name, _)| name.clone()).collect())
}
