//! What `interlock why` tells of a DataPlane, its rollout, and of what it is made of.

use interlock_core::api::condition::Condition;
use interlock_core::api::meta::condition::LIVE_SPEC_RECORDED;
use interlock_core::api::object::meta_str;
use interlock_core::api::revision;
use interlock_core::api::revision::PartsReader;
use interlock_core::kinds::capabilities::DATA_PLANES;
use interlock_core::kinds::story::{
    Asked, Reading, Story, Subject, Told, Which, became, current_state, one_line,
};
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use super::flavor::gateway::unread_spec;
use super::rollout::report::gate_report;
use super::rollout::report::gate_report::{PreviewPods, ReportedGate};
use super::rollout::report::object_side::ObjectSide;
use super::rollout::report::summary::RolloutSummary;
use super::rollout::side::{Colour, SideState};
use crate::api::labels;

pub(super) static STORY: Story = Story {
    capability: DATA_PLANES.name,
    does: "makes its pods and Services, and rolls its changes out",
    does_to_parts: "makes it, and puts it right from the spec of its side",
    next,
    tell,
};

/// Its Deployments; then the ControllerRevisions of its live spec, where the object only refers to it.
fn next(data_plane: &Value, read: &[Reading]) -> Option<Asked> {
    let of = |field| meta_str(data_plane, field).unwrap_or_default();
    let namespace = of("namespace").to_owned();
    let Some((_, parts)) = read.split_first() else {
        let (app, manager) = (labels::APP, labels::MANAGED_BY);
        let which =
            Which::Labels(format!("{app}={},{manager}={}", of("name"), labels::MANAGED_BY_DATA_PLANE));
        return Some(Asked { group: "apps", kind: "Deployment", namespace, which });
    };
    let hash = unread_spec(data_plane)?;
    let number = taken(parts)?.next()?;
    let which = Which::Name(revision::name(of("name"), of("uid"), &hash, number));
    Some(Asked { group: "apps", kind: revision::KIND, namespace, which })
}

/// The parts of the live spec that were read; `None` where one of them keeps none.
fn taken(parts: &[Reading]) -> Option<PartsReader> {
    let mut reader = PartsReader::default();
    parts.iter().try_for_each(|part| reader.take(part.as_ref().ok()?.first()?))?;
    Some(reader)
}

fn kept_spec(data_plane: &Value, parts: &[Reading]) -> Option<Value> {
    let text = taken(parts)?.spec(&unread_spec(data_plane)?)?;
    serde_json::from_str(&text).ok()
}

fn tell(subject: &Subject<'_>) -> Told {
    let Subject { root, object, readings } = *subject;
    let (deployments, parts) = match readings.split_first() {
        Some((deployments, parts)) => (deployments.as_deref(), parts),
        None => (Ok(&[][..]), &[][..]),
    };
    let rollout = RolloutAnswer::of(root, deployments.unwrap_or_default(), kept_spec(root, parts).as_ref());
    let conditions = |status: &Value| -> Vec<Condition> {
        let all = status["conditions"].as_array().into_iter().flatten();
        all.filter_map(|condition| Condition::deserialize(condition).ok()).collect()
    };
    let own = conditions(&root["status"]);
    let is = if subject.is_root() {
        let lines = rollout.lines();
        let lines = lines.iter().map(|line| keep_indent(line));
        lines.chain(own.iter().filter_map(current_state)).collect()
    } else {
        rollout.lines_of_child(object, root).iter().map(|line| one_line(line)).collect()
    };
    let whose = subject.whose();
    let of_rollout = conditions(&root["status"]["rollout"]);
    let changed = own.iter().chain(&of_rollout).filter(|condition| condition.type_ != LIVE_SPEC_RECORDED);
    Told {
        is,
        wrote: None,
        happened: changed.map(|condition| became(&whose, condition)).collect(),
        unknown: deployments
            .err()
            .map(|why| format!("the Deployments of the DataPlane: {why}"))
            .into_iter()
            .collect(),
        member: serde_json::to_value(&rollout).ok().map(|rollout| ("rollout", rollout)),
    }
}

/// One line, with the blanks at its beginning.
fn keep_indent(line: &str) -> String {
    let indent = line.len() - line.trim_start_matches(' ').len();
    format!("{}{}", &line[..indent], one_line(line))
}

/// The rollout of a DataPlane.
#[derive(Debug, Serialize)]
struct RolloutAnswer {
    /// What is live, what is staged, what it waits for, and the next command.
    #[serde(flatten)]
    summary: RolloutSummary,
    /// The sets of pods, the live one first.
    sides: Vec<SidePods>,
    /// In the order in which they are passed; none where nothing is on its way.
    gates: Vec<ReportedGate>,
}

/// A set of pods.
#[derive(Debug, Serialize)]
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
    fn of(data_plane: &Value, deployments: &[Value], live_spec: Option<&Value>) -> Self {
        let summary = RolloutSummary::of(data_plane, live_spec);
        let uid = meta_str(data_plane, "uid").unwrap_or_default();
        let is_owned = |deployment: &&Value| {
            let mut owners = deployment["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            owners.any(|owner| owner["uid"] == uid)
        };
        let deployments = deployments.iter().filter(is_owned);
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
    fn lines(&self) -> Vec<String> {
        let Self { summary, sides, gates } = self;
        let since = summary.since.as_ref().map_or_else(String::new, |since| format!(" since {since}"));
        let mut lines = vec![format!("rollout {}{since}", summary.phase), format!("live: {}", summary.live)];
        lines.extend(summary.staged_lines());
        lines.extend(sides.iter().map(SidePods::line));
        lines.extend(gates.iter().map(ToString::to_string));
        if let Some(waits_for) = summary.waits_for.as_ref().filter(|_| gates.is_empty()) {
            lines.push(format!("waits for: {waits_for}"));
        }
        lines.extend(summary.next.as_ref().map(|next| format!("next: {next}")));
        lines
    }

    /// Lines about an object that belongs to the DataPlane.
    fn lines_of_child(&self, object: &Value, data_plane: &Value) -> Vec<String> {
        let RolloutSummary { namespace, name, phase, .. } = &self.summary;
        let side = ObjectSide::of(object, data_plane).text();
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
