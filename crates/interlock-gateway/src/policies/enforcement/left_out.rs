//! What of a policy cannot be carried out.

use std::sync::Arc;

use gateway_policies::{NodeKey, PolicyId};

/// A rule of a policy that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LeftOut {
    /// The policy.
    pub(super) policy: PolicyId,
    /// The rule.
    pub(super) rule: Arc<str>,
    /// Why, and what to do.
    pub(super) why: String,
    /// The one Gateway where that is so; none = wherever the rule acts.
    pub(super) gateway: Option<NodeKey>,
}

impl LeftOut {
    /// What comes before all of a policy.
    pub(super) fn first_of(policy: &PolicyId) -> Self {
        Self { policy: policy.clone(), rule: "".into(), why: String::new(), gateway: None }
    }
}
