//! The conditions of a policy: Kuadrant's for the whole policy, and GEP-713's by ancestor.
//!
//! They have no transition time: who writes them keeps that of a condition whose status did not change.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use crate::limits;
use crate::node::NodeKey;
use crate::policy::PolicyId;
use crate::state::{AncestorState, PolicyState, TargetState};

/// A condition of a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Condition {
    /// `type`.
    pub kind: &'static str,
    /// `status`, which is never Unknown.
    pub is_true: bool,
    /// `reason`.
    pub reason: &'static str,
    /// `message`.
    pub message: String,
    /// `observedGeneration`.
    pub observed_generation: i64,
}

/// How far the outputs under an ancestor have come. Only who writes outputs knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// All outputs are in force.
    Delivered,
    /// Outputs are on their way; the text names what is awaited.
    Pending(String),
    /// An output cannot be rendered or is refused; the text says why.
    Failed(String),
}

/// The status of a policy for one ancestor (GEP-713, `PolicyAncestorStatus`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AncestorStatus {
    /// The Gateway, or the target of a direct policy or of one that reaches no Gateway.
    pub ancestor: NodeKey,
    /// The conditions, by type.
    pub conditions: Vec<Condition>,
}

/// Kuadrant's conditions: `Accepted`, and `Enforced` where it is accepted.
///
/// Kuadrant has no reason for a partial enforcement; its message says it.
pub fn conditions(state: &PolicyState, delivery: &dyn Fn(&NodeKey) -> Delivery) -> Vec<Condition> {
    let accepted = accepted(state);
    let mut conditions = vec![accepted];
    if conditions[0].is_true {
        conditions.push(enforced(state, delivery));
    }
    conditions
}

/// The conditions by ancestor, sorted by ancestor: `Accepted`, and `Programmed` where it is accepted.
///
/// There are at most `room`: a status has [`limits::ANCESTORS`], less those of other controllers. Where there are more, the
/// last one that fits has the condition `Aggregated`, and speaks for those that are left out.
pub fn ancestor_statuses(
    state: &PolicyState,
    delivery: &dyn Fn(&NodeKey) -> Delivery,
    room: usize,
) -> Vec<AncestorStatus> {
    let mut statuses: BTreeMap<NodeKey, Vec<Condition>> = BTreeMap::new();
    for (ancestor, own) in &state.ancestors {
        let accepted = accepted_under(state);
        let is_accepted = accepted.is_true;
        let conditions = statuses.entry(ancestor.clone()).or_default();
        conditions.push(accepted);
        if is_accepted {
            conditions.push(programmed(state, own, &delivery(ancestor)));
        }
    }
    for (target, own) in &state.targets {
        // An attached target without a path has no ancestor but itself.
        if *own == TargetState::Attached && !state.ancestors.is_empty() {
            continue;
        }
        if let Some(refusal) = refusal(state, &BTreeMap::from([(target, own)])) {
            statuses.entry(target.object()).or_insert_with(|| vec![refusal]);
        }
    }
    let count = statuses.len();
    let mut statuses: Vec<AncestorStatus> = statuses
        .into_iter()
        .map(|(ancestor, conditions)| AncestorStatus { ancestor, conditions })
        .take(room)
        .collect();
    if let Some(last) = statuses.last_mut().filter(|_| count > room) {
        let left_out = count - room;
        let message =
            format!("{left_out} further ancestors are left out: a status holds {}", limits::ANCESTORS);
        last.conditions.push(condition(state, "Aggregated", true, "Aggregated", message));
        last.conditions.sort();
    }
    statuses
}

fn accepted(state: &PolicyState) -> Condition {
    let targets: BTreeMap<&NodeKey, &TargetState> = state.targets.iter().collect();
    let is_attached = state.targets.values().any(|target| *target == TargetState::Attached);
    if let Some(refusal) = refusal(state, &targets).filter(|_| !is_attached || !state.violations.is_empty()) {
        return refusal;
    }
    let mut message = format!("{} has been accepted", state.id.kind);
    let left_out = state.targets.iter().filter(|(_, own)| **own != TargetState::Attached);
    let left_out: Vec<&NodeKey> = left_out.map(|(target, _)| target).collect();
    if !left_out.is_empty() {
        message += &format!("; it is not attached to {}", names(left_out.iter()));
    }
    condition(state, "Accepted", true, "Accepted", message)
}

/// The policy has outputs under the ancestor, so that only its own fields can be wrong.
fn accepted_under(state: &PolicyState) -> Condition {
    refusal(state, &BTreeMap::new()).unwrap_or_else(|| {
        condition(state, "Accepted", true, "Accepted", format!("{} has been accepted", state.id.kind))
    })
}

/// Why the policy, or all that it does for some targets, is not accepted.
fn refusal(state: &PolicyState, targets: &BTreeMap<&NodeKey, &TargetState>) -> Option<Condition> {
    let kind = &state.id.kind;
    let refused = |reason, message| Some(condition(state, "Accepted", false, reason, message));
    if !state.violations.is_empty() {
        let mut message = format!("{kind} is invalid: {}", names(state.violations.iter()));
        if state.has_last_valid {
            message += "; the last valid version stays in force";
        }
        return refused("Invalid", message);
    }
    let conflicts = targets.values().filter_map(|target| match target {
        TargetState::Conflicted(winner) => Some(winner),
        TargetState::Attached | TargetState::NotFound | TargetState::OverLimit => None,
    });
    let winners: BTreeSet<&PolicyId> = conflicts.collect();
    if !winners.is_empty() {
        let winners = names(winners.iter().map(|winner| winner.qualified_name()));
        return refused(
            "Conflicted",
            format!("{kind} is conflicted by {winners}: the target has an older policy"),
        );
    }
    let of = |wanted: &TargetState| -> Vec<&NodeKey> {
        targets.iter().filter(|(_, own)| **own == wanted).map(|(target, _)| *target).collect()
    };
    let over = of(&TargetState::OverLimit);
    if !over.is_empty() {
        let targets = names(over.iter());
        return refused("Invalid", format!("{kind} is over the limit of policies of its kind on {targets}"));
    }
    let absent = of(&TargetState::NotFound);
    if absent.is_empty() {
        return None;
    }
    refused("TargetNotFound", format!("{kind} target {} was not found", names(absent.iter())))
}

fn enforced(state: &PolicyState, delivery: &dyn Fn(&NodeKey) -> Delivery) -> Condition {
    let kind = &state.id.kind;
    let enforced = |is_true, reason, message| condition(state, "Enforced", is_true, reason, message);
    if state.ancestors.is_empty() {
        let message = format!("{kind} is not in the path to any existing routes");
        return enforced(false, "Unknown", message);
    }
    let live: Vec<&NodeKey> =
        state.ancestors.iter().filter(|(_, own)| own.is_live).map(|(ancestor, _)| ancestor).collect();
    if live.is_empty() {
        return enforced(false, "Overridden", overridden(state, state.ancestors.values()));
    }
    let (mut failed, mut pending) = (BTreeSet::new(), BTreeSet::new());
    for ancestor in live {
        match delivery(ancestor) {
            Delivery::Delivered => false,
            Delivery::Pending(what) => pending.insert(what),
            Delivery::Failed(why) => failed.insert(why),
        };
    }
    if !failed.is_empty() {
        let message = format!("{kind} has encountered some issues: {}", names(failed.iter()));
        return enforced(false, "Unknown", message);
    }
    if !pending.is_empty() {
        let awaited = names(pending.iter());
        let message = format!("{kind} waiting for the following components to sync: [{awaited}]");
        return enforced(false, "Unknown", message);
    }
    let is_partial = state.ancestors.values().any(|own| own.is_replaced);
    let how = if is_partial { "partially" } else { "successfully" };
    enforced(true, "Enforced", format!("{kind} has been {how} enforced"))
}

/// GEP-713, `Programmed`: Programmed or PartiallyProgrammed, and Overridden or Reconciling where it is false.
fn programmed(state: &PolicyState, own: &AncestorState, delivery: &Delivery) -> Condition {
    let kind = &state.id.kind;
    let programmed = |is_true, reason, message| condition(state, "Programmed", is_true, reason, message);
    if !own.is_live {
        return programmed(false, "Overridden", overridden(state, [own]));
    }
    match delivery {
        Delivery::Failed(why) => programmed(false, "Reconciling", format!("{kind} is not programmed: {why}")),
        Delivery::Pending(what) => programmed(false, "Reconciling", format!("{kind} is waiting for {what}")),
        Delivery::Delivered if own.is_replaced => {
            let by = names(own.replaced_by.iter().map(PolicyId::qualified_name));
            programmed(
                true,
                "PartiallyProgrammed",
                format!("{kind} is programmed; some rules are overridden by [{by}]"),
            )
        }
        Delivery::Delivered => programmed(true, "Programmed", format!("{kind} is programmed")),
    }
}

fn overridden<'a>(state: &PolicyState, ancestors: impl IntoIterator<Item = &'a AncestorState>) -> String {
    let by: BTreeSet<&PolicyId> = ancestors.into_iter().flat_map(|own| &own.replaced_by).collect();
    format!("{} is overridden by [{}]", state.id.kind, names(by.into_iter().map(PolicyId::qualified_name)))
}

fn condition(
    state: &PolicyState,
    kind: &'static str,
    is_true: bool,
    reason: &'static str,
    message: String,
) -> Condition {
    Condition { kind, is_true, reason, message, observed_generation: state.generation }
}

/// Names, sorted by their source and bounded by [`limits::NAMES_IN_MESSAGE`].
pub(crate) fn names<T: Display>(all: impl Iterator<Item = T>) -> String {
    let all: Vec<String> = all.map(|name| name.to_string()).collect();
    let shown = all.iter().take(limits::NAMES_IN_MESSAGE).map(String::as_str).collect::<Vec<_>>().join(" ");
    match all.len().saturating_sub(limits::NAMES_IN_MESSAGE) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
