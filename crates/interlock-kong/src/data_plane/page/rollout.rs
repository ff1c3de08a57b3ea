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
use crate::data_plane::rollout::report::gate_report;
use crate::data_plane::rollout::report::gate_report::{PreviewPods, ReportedGate};
use crate::data_plane::rollout::report::next_step::NextStep;
use crate::data_plane::rollout::report::totals;
use crate::data_plane::rollout::report::{ReportedRollout, RolloutPhase};
use crate::data_plane::rollout::side::SideState;

/// The rollout of a DataPlane.
#[derive(Debug, Serialize)]
pub(super) struct RolloutRow {
    phase: &'static str,
    since: Option<Timestamp>,
    /// The live side first.
    sides: Vec<SideRow>,
    gates: Vec<ReportedGate>,
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

impl RolloutRow {
    /// That of a DataPlane; `None` where a change takes effect at once.
    pub(super) fn of(graph: &Graph, name: &NamespacedName, object: &Value) -> Option<Self> {
        let row =
            graph.row(graph.find_kind(DATA_PLANE.group, DATA_PLANE.kind)?, &name.namespace, &name.name)?;
        let phase = RolloutPhase::named(row.word(fact::PHASE)?);
        if phase == RolloutPhase::InPlace {
            return None;
        }
        // What is reported of an earlier spec is no news of this one.
        let reported = ReportedRollout::of(object).filter(|reported| reported.is_current);
        let phase = reported
            .as_ref()
            .map(ReportedRollout::phase)
            .filter(|found| found.as_str() == phase.as_str())
            .unwrap_or(phase);
        let message = reported
            .as_ref()
            .map(|reported| display(reported.message, MESSAGE_LIMIT))
            .filter(|message| !message.is_empty());
        let sides = sides(graph, name);
        let preview = sides.iter().find(|side| side.side == SideState::Preview.as_str());
        let pods = preview.map(|side| PreviewPods { ready: side.ready, wanted: side.wanted });
        let gates = gate_report::gates(phase, phase.waits_for_as(message.as_deref()).as_deref(), pods);
        let step = row.number(totals::NEXT_STEP.name).and_then(NextStep::numbered);
        // Where nothing is on its way, nothing presses to record what is live.
        let step = step.filter(|step| *step != NextStep::CompareSpec || phase.gate().is_some());
        let remedy = step.map(|step| step.remedy(name));
        let (next, command) = remedy.map(|Remedy { next, command }| (next, command)).unzip();
        Some(Self {
            phase: phase.as_str(),
            since: reported.and_then(|reported| reported.since?.parse().ok()),
            sides,
            gates,
            next,
            command,
        })
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
