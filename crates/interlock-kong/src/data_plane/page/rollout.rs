//! Rollouts of DataPlanes: the phase, the two sides with their pods, the gates, and what to do next.

use interlock_core::api::display::display;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::remedy::Remedy;
use interlock_core::kinds::page::MESSAGE_LIMIT;
use interlock_core::kinds::{fact, link};
use interlock_core::topology::Graph;
use interlock_core::topology::schema::Side;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::data_plane::labelled::DATA_PLANE_DEPLOYMENTS;
use crate::data_plane::names::DATA_PLANE;
use crate::data_plane::remedy;
use crate::data_plane::rollout::report::gate_report;
use crate::data_plane::rollout::report::gate_report::{GateState, PreviewPods};
use crate::data_plane::rollout::report::{ReportedRollout, RolloutPhase};
use crate::data_plane::rollout::side::SideState;

/// The rollout of a DataPlane.
#[derive(Debug, Serialize)]
pub(super) struct RolloutRow {
    phase: &'static str,
    since: Option<Timestamp>,
    /// The live side first.
    sides: Vec<SideRow>,
    gates: Vec<GateRow>,
    /// What to do, and a command for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

/// A set of pods.
#[derive(Debug, Serialize, PartialEq, Eq, PartialOrd, Ord)]
struct SideRow {
    /// `live` or `preview`.
    side: String,
    /// Absent for pods that another operator made.
    #[serde(skip_serializing_if = "String::is_empty")]
    colour: String,
    ready: u64,
    wanted: u64,
}

/// A gate that a staged change has to pass.
#[derive(Debug, Serialize)]
struct GateRow {
    gate: &'static str,
    state: GateState,
    /// What it waits for, or why it is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<String>,
}

impl RolloutRow {
    /// That of a DataPlane; `None` where a change takes effect at once.
    pub(super) fn of(graph: &Graph, name: &NamespacedName, object: &Value) -> Option<Self> {
        let phase = RolloutPhase::of(object);
        if phase == RolloutPhase::InPlace {
            return None;
        }
        let reported = ReportedRollout::of(object);
        let message =
            reported.as_ref().map(|reported| reported.message).filter(|message| !message.is_empty());
        let sides = sides(graph, name);
        let preview = sides.iter().find(|side| side.side == SideState::Preview.as_str());
        let pods = preview.map(|side| PreviewPods { ready: side.ready, wanted: side.wanted });
        let gates = gate_report::gates(phase, phase.waits_for_as(message).as_deref(), pods);
        let remedy = remedy::of_rollout(phase, name);
        let (next, command) = remedy.map(|Remedy { next, command }| (next, command)).unzip();
        Some(Self {
            phase: phase.as_str(),
            since: reported.and_then(|reported| reported.since?.parse().ok()),
            sides,
            gates: gates.into_iter().map(GateRow::of).collect(),
            next,
            command,
        })
    }
}

impl GateRow {
    fn of(gate: gate_report::ReportedGate) -> Self {
        Self {
            gate: gate.gate.as_str(),
            state: gate.state,
            waits_for: gate.waits_for.map(|what| display(&what, MESSAGE_LIMIT)),
        }
    }
}

/// The Deployments of a DataPlane, the live one first.
fn sides(graph: &Graph, name: &NamespacedName) -> Vec<SideRow> {
    let Some(kind) = graph.find_kind(DATA_PLANE.group, DATA_PLANE.kind) else { return Vec::new() };
    let children = graph.along(kind, &name.namespace, &name.name, Side::Child, link::DATA_PLANE);
    let deployments = children.filter(|row| &*row.id().kind.kind == DATA_PLANE_DEPLOYMENTS.name);
    let mut sides: Vec<SideRow> = deployments
        .map(|row| SideRow {
            side: row.word(fact::SIDE).unwrap_or_default().to_owned(),
            colour: row.word(fact::COLOUR).unwrap_or_default().to_owned(),
            ready: row.number(fact::READY_REPLICAS).unwrap_or(0),
            wanted: row.number(fact::REPLICAS).unwrap_or(0),
        })
        .collect();
    sides.sort();
    sides
}
