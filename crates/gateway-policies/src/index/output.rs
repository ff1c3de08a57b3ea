//! Outputs: effective policies by path or target, shared by those that have the same policies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::effective::{self, EffectivePolicy};
use crate::kind::PolicyKind;
use crate::policy::{Policy, PolicyId};

/// What one policy does in an output.
#[derive(Debug)]
pub(super) struct Part {
    pub policy: PolicyId,
    pub is_live: bool,
    pub is_replaced: bool,
    pub replaced_by: BTreeSet<PolicyId>,
}

/// An effective policy, and what each policy does in it.
#[derive(Debug)]
pub(super) struct Output {
    pub effective: Arc<EffectivePolicy>,
    pub parts: Vec<Part>,
}

impl Output {
    fn new(effective: EffectivePolicy) -> Self {
        let mut replaced: BTreeMap<&PolicyId, BTreeSet<&PolicyId>> = BTreeMap::new();
        for own in &effective.replaced {
            replaced.entry(&own.policy).or_default().extend(own.by.iter());
        }
        let sources = effective.sources();
        let part = |policy: &PolicyId| {
            let by = replaced.get(policy);
            Part {
                policy: policy.clone(),
                is_live: sources.contains(policy),
                is_replaced: by.is_some(),
                replaced_by: by.into_iter().flatten().map(|by| (*by).clone()).collect(),
            }
        };
        let parts = effective.policies.iter().map(part).collect();
        Self { effective: Arc::new(effective), parts }
    }
}

/// The outputs of one event, by their policies. A route without `sectionName` has a path for each listener, and all
/// of them have the same policies: their output is computed once and stored once.
#[derive(Default)]
pub(super) struct Folds<'a>(BTreeMap<Vec<&'a PolicyId>, Arc<Output>>);

impl<'a> Folds<'a> {
    /// The output of policies of one kind, from the root to the leaf; none where there are none.
    pub fn of(&mut self, kind: &dyn PolicyKind, policies: &[&'a Policy]) -> Option<Arc<Output>> {
        let ids: Vec<&PolicyId> = policies.iter().map(|policy| &policy.id).collect();
        if ids.is_empty() {
            return None;
        }
        let fold = || Arc::new(Output::new(effective::fold(policies, &|key| kind.is_rule(key))));
        Some(self.0.entry(ids).or_insert_with(fold).clone())
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }
}
