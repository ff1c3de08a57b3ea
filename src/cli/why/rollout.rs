//! The rollout of a DataPlane, for the DataPlane itself and for what it is made of.

use interlock_core::api::object::meta_str;
use interlock_kong::data_plane::rollout::gate_report;
use interlock_kong::data_plane::rollout::gate_report::{PreviewPods, ReportedGate};
use interlock_kong::data_plane::rollout::object_side::ObjectSide;
use interlock_kong::data_plane::rollout::report::ReportedPhase;
use interlock_kong::data_plane::rollout::side::{Colour, SideState};
use interlock_kong::data_plane::rollout::summary::RolloutSummary;
use serde::Serialize;
use serde_json::Value;

use super::data_plane::DataPlaneObjects;

/// The rollout of a DataPlane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct RolloutAnswer {
    /// What is live, what is staged, what it waits for, and the next command.
    #[serde(flatten)]
    summary: RolloutSummary,
    /// The sets of pods, the live one first.
    sides: Vec<SidePods>,
    /// In the order in which they are passed; none where nothing is on its way.
    gates: Vec<ReportedGate>,
}

/// A set of pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct SidePods {
    /// Name of its Deployment.
    deployment: String,
    /// `live` or `preview`, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    side: Option<&'static str>,
    /// Absent for pods that another operator made.
    #[serde(skip_serializing_if = "Option::is_none")]
    colour: Option<&'static str>,
    ready: u64,
    wanted: u64,
}

impl RolloutAnswer {
    /// The rollout of a DataPlane.
    pub(super) fn of(data_plane: &Value, objects: &DataPlaneObjects) -> Self {
        let summary = RolloutSummary::of(data_plane, objects.live_spec.as_ref());
        let deployments = objects.deployments.iter().flatten();
        let mut sides: Vec<SidePods> =
            deployments.map(|deployment| SidePods::of(deployment, data_plane)).collect();
        let order = |side: &SidePods| (side.side.is_none(), side.side, side.deployment.clone());
        sides.sort_by_key(order);
        let preview = sides.iter().find(|side| side.side == Some(SideState::Preview.as_str()));
        let pods = preview.map(|side| PreviewPods { ready: side.ready, wanted: side.wanted });
        let gates = gate_report::gates(summary.phase, summary.waits_for.as_deref(), pods);
        Self { summary, sides, gates }
    }

    /// Lines about the DataPlane itself.
    pub(super) fn lines(&self) -> Vec<String> {
        let Self { summary, sides, gates } = self;
        let since = summary.since.as_ref().map_or_else(String::new, |since| format!(" since {since}"));
        let mut lines = vec![format!("rollout {}{since}", summary.phase), format!("live: {}", summary.live)];
        if let Some(staged) = &summary.staged {
            lines.push(format!("staged: spec {}", staged.hash.short()));
            lines.extend(staged.changes.fields.iter().map(|field| format!("  {field}")));
            if staged.changes.more > 0 {
                lines.push(format!("  and {} more", staged.changes.more));
            }
        }
        lines.extend(sides.iter().map(SidePods::line));
        lines.extend(gates.iter().map(ToString::to_string));
        if let Some(waits_for) = summary.waits_for.as_ref().filter(|_| gates.is_empty()) {
            lines.push(format!("waits for: {waits_for}"));
        }
        if summary.phase == ReportedPhase::InPlace {
            lines.push(
                "changes take effect at once, without spec.deployment.rollout.strategy.blueGreen".to_owned(),
            );
        }
        lines.extend(summary.next.as_ref().map(|next| format!("next: {next}")));
        lines
    }

    /// Lines about an object that belongs to the DataPlane.
    pub(super) fn lines_of_child(&self, object: &Value, data_plane: Option<&Value>) -> Vec<String> {
        let RolloutSummary { namespace, name, phase, .. } = &self.summary;
        let side = data_plane.and_then(|of| ObjectSide::of(object, of).text());
        let mut lines = vec![match side {
            Some(side) => format!("part of {side} of DataPlane {namespace}/{name}"),
            None => format!("belongs to DataPlane {namespace}/{name}"),
        }];
        let closed = self.gates.iter().find(|gate| gate.waits_for.is_some());
        let waits = closed.map_or_else(String::new, |gate| format!("; {gate}"));
        lines.push(format!("rollout {phase}{waits}"));
        lines.push(format!("next: `interlock why dataplane/{namespace}/{name}`"));
        lines
    }
}

impl SidePods {
    fn of(deployment: &Value, data_plane: &Value) -> Self {
        let ObjectSide { colour, state } = ObjectSide::of(deployment, data_plane);
        let count = |value: &Value| value.as_u64().unwrap_or(0);
        Self {
            deployment: meta_str(deployment, "name").unwrap_or_default().to_owned(),
            side: state.map(SideState::as_str),
            colour: colour.map(Colour::as_str),
            ready: count(&deployment["status"]["readyReplicas"]),
            wanted: count(&deployment["spec"]["replicas"]),
        }
    }

    fn line(&self) -> String {
        let Self { deployment, side, colour, ready, wanted } = self;
        let words: Vec<&str> = [*side, *colour].into_iter().flatten().collect();
        let which = if words.is_empty() { "pods".to_owned() } else { words.join(" ") };
        format!("{which}: {ready} of {wanted} pods ready, Deployment {deployment}")
    }
}
