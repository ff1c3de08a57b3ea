//! The policies, and which of them target which node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::node::NodeKey;
use crate::policy::{Policy, PolicyId, Precedence};

#[derive(Clone, Debug, Default)]
pub(super) struct Policies {
    by_id: BTreeMap<PolicyId, Policy>,
    /// By target and kind, the older one first. Policies that are being deleted are left out.
    attached: BTreeMap<NodeKey, BTreeMap<Arc<str>, BTreeSet<Precedence>>>,
    /// By the object of the target.
    of_object: BTreeMap<NodeKey, BTreeSet<PolicyId>>,
}

impl Policies {
    /// Stores or removes a policy. Returns the version of before; none where nothing changed.
    pub fn replace(&mut self, id: &PolicyId, new: Option<Policy>) -> Option<Option<Policy>> {
        if self.by_id.get(id) == new.as_ref() {
            return None;
        }
        let old = self.by_id.remove(id);
        if let Some(old) = &old {
            self.detach(old);
        }
        if let Some(new) = new {
            self.attach(&new);
            self.by_id.insert(id.clone(), new);
        }
        Some(old)
    }

    fn attach(&mut self, policy: &Policy) {
        for target in &policy.targets {
            self.of_object.entry(target.object()).or_default().insert(policy.id.clone());
            if !policy.is_deleting {
                let kinds = self.attached.entry(target.clone()).or_default();
                kinds.entry(policy.id.kind.clone()).or_default().insert(policy.precedence());
            }
        }
    }

    fn detach(&mut self, policy: &Policy) {
        for target in &policy.targets {
            if let Some(ids) = self.of_object.get_mut(&target.object()) {
                ids.remove(&policy.id);
                if ids.is_empty() {
                    self.of_object.remove(&target.object());
                }
            }
            let Some(kinds) = self.attached.get_mut(target) else { continue };
            if let Some(attached) = kinds.get_mut(&policy.id.kind) {
                attached.remove(&policy.precedence());
                if attached.is_empty() {
                    kinds.remove(&policy.id.kind);
                }
            }
            if kinds.is_empty() {
                self.attached.remove(target);
            }
        }
    }

    pub fn get(&self, id: &PolicyId) -> Option<&Policy> {
        self.by_id.get(id)
    }

    pub fn all(&self) -> impl Iterator<Item = &Policy> {
        self.by_id.values()
    }

    /// The policies of a kind on a target, the older one first.
    pub fn on(&self, target: &NodeKey, kind: &str) -> impl Iterator<Item = &Policy> {
        let attached = self.attached.get(target).and_then(|kinds| kinds.get(kind));
        attached.into_iter().flatten().filter_map(move |precedence| self.by_id.get(&precedence.id))
    }

    /// Whether a policy is among the oldest of its kind on a target.
    pub fn is_among_first(&self, most: usize, target: &NodeKey, id: &PolicyId) -> bool {
        let attached = self.attached.get(target).and_then(|kinds| kinds.get(&id.kind));
        attached.into_iter().flatten().take(most).any(|own| own.id == *id)
    }

    /// The policies of all kinds that target an object or a section of it.
    pub fn of_object(&self, object: &NodeKey) -> impl Iterator<Item = &Policy> {
        self.of_object.get(object).into_iter().flatten().filter_map(move |id| self.by_id.get(id))
    }
}
