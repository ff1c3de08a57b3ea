//! What could not be seen, so that its absence is not stated, and what would not be taken.

use gateway_policies::{
    Event, NodeKey, ObjectKind, Path, PolicyId, Refusal, RefusalReason, Subject, TargetState,
};
use serde_json::Value;

use super::survey::PolicySurvey;

impl PolicySurvey {
    /// Whether the objects of a kind in a namespace were all listed.
    pub fn is_seen(&self, kind: ObjectKind, namespace: &str) -> bool {
        let mut unlisted = self.unlisted.iter().filter(|own| own.kind == kind.name());
        unlisted.all(|own| own.listed_namespace.as_deref() == Some(namespace))
    }

    /// Whether all objects of a namespace that policies can target were listed.
    pub(super) fn are_nodes_seen(&self, namespace: &str) -> bool {
        ObjectKind::ALL.into_iter().all(|kind| self.is_seen(kind, namespace))
    }

    /// The kinds of which policies may act on a path that are not seen to, and why.
    pub fn unknown_on(&self, path: &Path) -> impl Iterator<Item = (&str, &'static str)> {
        let is_outside = |namespace: &str| {
            path.nodes().any(|node| !node.namespace.is_empty() && &*node.namespace != namespace)
        };
        let policies = self.unlisted.iter().filter(|own| self.kinds.get(&own.kind).is_some());
        let unknown = policies.filter(move |own| own.listed_namespace.as_deref().is_none_or(is_outside));
        let selecting = self.selecting.iter().filter(move |((_, selected), namespaces)| {
            let mut nodes = path.nodes().filter(|node| node.kind == *selected);
            nodes.any(|node| namespaces.iter().any(|own| *own != node.namespace))
        });
        let unlisted = unknown.map(|own| (own.kind.as_str(), "not all of its policies can be listed"));
        let selecting =
            selecting.map(|((kind, _), _)| (&**kind, "targets of other namespaces are not followed"));
        unlisted.chain(selecting)
    }

    /// The name of the reason of a refusal, and what it means. A parent that could not be seen may exist.
    pub fn reason(&self, refusal: &Refusal) -> (&'static str, &'static str) {
        match refusal.reason {
            RefusalReason::ParentNotFound if !self.is_parent_seen(&refusal.parent) => {
                ("ParentUnknown", "the parent is not among the objects that can be seen")
            }
            reason => (reason.name(), reason.explanation()),
        }
    }

    /// Whether a parent, as a refusal names it, and the Gateways of its ListenerSets were listed.
    fn is_parent_seen(&self, parent: &str) -> bool {
        let mut parts = parent.split('/');
        let (kind, namespace) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let kind = ObjectKind::ALL.into_iter().find(|own| own.name() == kind);
        let is_set = kind.is_some_and(ObjectKind::is_listener_set);
        let are_gateways_seen = self.unlisted.iter().all(|own| own.kind != ObjectKind::Gateway.name());
        kind.is_none_or(|kind| self.is_seen(kind, namespace)) && (!is_set || are_gateways_seen)
    }

    /// A target that was not found, and may be among the objects that could not be seen.
    pub(super) fn unseen_target(&self, id: &PolicyId) -> Option<&NodeKey> {
        let targets = self.index.state(id).into_iter().flat_map(|state| &state.targets);
        let mut absent = targets.filter(|(_, own)| **own == TargetState::NotFound).map(|(target, _)| target);
        absent.find(|target| !self.is_seen(target.kind, &target.namespace))
    }

    /// Why an object would not be taken: it does not decode, or is an invalid policy.
    pub fn why_not_taken(&self, object: &Value) -> Option<String> {
        let Ok(Event::Delete(subject)) = self.index.deletion(object) else { return None };
        if let Some(fault) = self.index.faults().get(&subject) {
            return Some(fault.clone());
        }
        let Subject::Policy(id) = subject else { return None };
        let violations = self.index.state(&id)?.violations.iter().map(ToString::to_string);
        let violations: Vec<String> = violations.collect();
        (!violations.is_empty()).then(|| violations.join("; "))
    }

    /// Two policies without `creationTimestamp` on one target: which of them is older is not known.
    pub fn of_unknown_age(&self) -> Option<(&PolicyId, &PolicyId)> {
        let is_new = |id: &PolicyId| self.index.policy(id).is_some_and(|own| own.created.is_none());
        let states = self.policies.keys().filter_map(|id| self.index.state(id));
        let mut losers = states.filter(|state| is_new(&state.id)).flat_map(|state| {
            let winners = state.targets.values().filter_map(|target| match target {
                TargetState::Conflicted(winner) => Some(winner),
                TargetState::Attached | TargetState::NotFound | TargetState::OverLimit => None,
            });
            winners.map(move |winner| (&state.id, winner))
        });
        losers.find(|(id, winner)| is_new(winner) && !self.acts_beside(&id.kind))
    }
}
