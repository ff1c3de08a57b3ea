//! A row for each policy, and the policies of each target.

use std::collections::{BTreeMap, BTreeSet};

use gateway_policies::{
    Delivery, EffectivePolicy, NodeKey, Path, PolicyId, Subject, TargetState, conditions,
};

use super::generic::Precedence;
use super::seen::SeenPolicy;
use super::statuses::{self, StatusCondition};
use super::survey::PolicySurvey;

/// Whether a policy is accepted, by what can be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acceptance {
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// The reason, as the condition `Accepted` has it.
    pub reason: &'static str,
    /// The message of the condition.
    pub message: String,
}

/// A policy: what it targets, whether that is accepted, and what became of it.
#[derive(Clone, Debug)]
pub struct PolicyRow {
    /// The policy.
    pub id: PolicyId,
    /// Its targets, as `KIND/NAMESPACE/NAME#SECTION`.
    pub targets: Vec<String>,
    /// Whether it is accepted.
    pub accepted: Acceptance,
    /// What acts otherwise than its author may expect.
    pub warnings: Vec<String>,
    /// `Accepted` as its controller has it, where that differs.
    pub reported: Option<StatusCondition>,
    /// `Programmed` by ancestor, where its status says so.
    pub programmed: BTreeMap<String, StatusCondition>,
    /// `Enforced`, where its status says so.
    pub enforced: Option<StatusCondition>,
    /// The policies that replaced a rule of it anywhere, and the winner of each conflict that it lost.
    pub by: BTreeSet<PolicyId>,
}

/// The policies with a rule that acts on a path through a target, by target and kind.
pub type AffectedTargets = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

impl PolicySurvey {
    /// Whether a policy is accepted; none where it is not known.
    pub fn acceptance(&self, id: &PolicyId) -> Option<Acceptance> {
        self.policies.get(id).map(|own| self.accepted(id, own))
    }

    /// All policies by kind, namespace and name, and the targets that they affect.
    pub fn rows(&self) -> (Vec<PolicyRow>, AffectedTargets) {
        let mut by: BTreeMap<PolicyId, BTreeSet<PolicyId>> = BTreeMap::new();
        let mut affected = AffectedTargets::new();
        for path in self.index.paths() {
            let targets = targets_on(path);
            for (kind, effective) in self.acting(path) {
                for replaced in &effective.replaced {
                    let others = replaced.by.iter().filter(|other| **other != replaced.policy).cloned();
                    by.entry(replaced.policy.clone()).or_default().extend(others);
                }
                for target in &targets {
                    affect(&mut affected, target, &kind, &effective);
                }
            }
        }
        self.affect_without_path(&mut affected);
        let rows = self.policies.iter().map(|(id, own)| self.row(id, own, by.remove(id).unwrap_or_default()));
        (rows.collect(), affected)
    }

    /// Services, and Gateways that carry no route: no path goes through them.
    fn affect_without_path(&self, affected: &mut AffectedTargets) {
        let nodes = self.nodes().filter(|node| !node.kind.is_route());
        for node in nodes.filter(|node| self.index.paths_through(node).next().is_none()) {
            for kind in self.attached(node).iter().map(|id| &*id.kind) {
                if self.index.direct(kind, node).is_some() {
                    let acting = if self.acts_beside(kind) { usize::MAX } else { 1 };
                    let effective = self.side_by_side(kind, [node].into_iter(), acting);
                    affect(affected, &node.to_string(), kind, &effective);
                }
            }
        }
    }

    /// Whether several policies of a kind act on one target.
    pub(super) fn acts_beside(&self, kind: &str) -> bool {
        self.kinds.precedence(kind) == Some(Precedence::All)
    }

    /// One policy, without the policies that replaced rules of it; none where it is not known.
    pub fn policy_row(&self, id: &PolicyId) -> Option<PolicyRow> {
        self.policies.get(id).map(|own| self.row(id, own, BTreeSet::new()))
    }

    /// What the status of a policy says, a line for each condition.
    pub fn reported(&self, id: &PolicyId) -> Vec<String> {
        self.policies.get(id).map(|own| statuses::lines(id, &own.status)).unwrap_or_default()
    }

    fn row(&self, id: &PolicyId, own: &SeenPolicy, mut by: BTreeSet<PolicyId>) -> PolicyRow {
        let policy = self.index.policy(id);
        let nodes = policy.into_iter().flat_map(|policy| &policy.targets).map(NodeKey::to_string);
        by.extend(self.winners(id));
        let accepted = self.accepted(id, own);
        let warnings = policy.iter().flat_map(|policy| &policy.warnings).map(ToString::to_string);
        let reported = statuses::accepted(&own.status).filter(|reported| reported.status != accepted.status);
        PolicyRow {
            id: id.clone(),
            targets: nodes.chain(own.elsewhere.iter().cloned()).collect(),
            accepted,
            reported,
            warnings: warnings.chain(own.notes.iter().cloned()).collect(),
            programmed: statuses::programmed(id, &own.status),
            enforced: statuses::condition(&own.status, "Enforced"),
            by,
        }
    }

    /// The older policies that have its targets.
    fn winners(&self, id: &PolicyId) -> BTreeSet<PolicyId> {
        if self.acts_beside(&id.kind) {
            return BTreeSet::new();
        }
        let targets = self.index.state(id).into_iter().flat_map(|state| state.targets.values());
        let winners = targets.filter_map(|target| match target {
            TargetState::Conflicted(winner) => Some(winner.clone()),
            TargetState::Attached | TargetState::NotFound | TargetState::OverLimit => None,
        });
        winners.collect()
    }

    fn accepted(&self, id: &PolicyId, own: &SeenPolicy) -> Acceptance {
        let of = |status, reason, message: String| Acceptance { status, reason, message };
        if let Some(fault) = self.index.faults().get(&Subject::Policy(id.clone())) {
            return of("False", "Invalid", format!("it cannot be decoded: {fault}"));
        }
        let Some(state) = self.index.state(id) else {
            let text = |text: &str| text.to_owned();
            return match own.is_unmatched {
                true if !own.selects_outside.is_empty() => {
                    of("Unknown", "TargetUnknown", text("targets of other namespaces are not followed"))
                }
                true if !self.are_nodes_seen(&id.namespace) => of(
                    "Unknown",
                    "TargetUnknown",
                    text("no object that can be seen matches its targetSelectors"),
                ),
                true => of("False", "TargetNotFound", text("no object matches its targetSelectors")),
                false => {
                    of("Unknown", "TargetUnknown", text("its targets are no objects of the Gateway API"))
                }
            };
        };
        let mut state = state.clone();
        if self.acts_beside(&id.kind) {
            let beside =
                |own: &TargetState| matches!(own, TargetState::Conflicted(_) | TargetState::OverLimit);
            let targets = state.targets.values_mut().filter(|own| beside(own));
            targets.for_each(|target| *target = TargetState::Attached);
        }
        // What is delivered does not matter for `Accepted`, the first of the conditions.
        let accepted = conditions(&state, &|_| Delivery::Delivered).swap_remove(0);
        if let Some(target) = self.unseen_target(id).filter(|_| accepted.reason == "TargetNotFound") {
            let message = format!("its target {target} is not among the objects that can be seen");
            return of("Unknown", "TargetUnknown", message);
        }
        Acceptance {
            status: if accepted.is_true { "True" } else { "False" },
            reason: accepted.reason,
            message: accepted.message,
        }
    }
}

/// The targets on a path, as `list` names them: a route has an entry for each Gateway.
fn targets_on(path: &Path) -> Vec<String> {
    let gateway = &path.gateway;
    let set = path.listener_set.as_ref().map(NodeKey::to_string);
    let route = format!("{}@{}/{}", path.route, gateway.namespace, gateway.name);
    [gateway.to_string(), path.listener.to_string(), route].into_iter().chain(set).collect()
}

fn affect(affected: &mut AffectedTargets, target: &str, kind: &str, effective: &EffectivePolicy) {
    let sources = effective.sources();
    if !sources.is_empty() {
        let kinds = affected.entry(target.to_owned()).or_default();
        let policies = kinds.entry(kind.to_owned()).or_default();
        policies.extend(sources.into_iter().map(PolicyId::qualified_name));
    }
}
