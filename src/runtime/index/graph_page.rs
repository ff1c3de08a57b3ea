//! The live graph of this process, for the page that draws it: capabilities, Instances with their plans,
//! and their objects.

use std::collections::BTreeMap;

use interlock_core::api::condition::{self, Condition};
use interlock_core::api::kudo::{ExecutionStatus, Instance};
use interlock_core::api::meta::condition as types;
use interlock_core::kinds::instance::change::lock;
use interlock_core::kinds::{self, fact, link};
use interlock_core::topology::schema::{EventTriggers, Side};
use interlock_core::topology::snapshot::GraphSnapshot;
use interlock_core::topology::{GroupKind, NodeId, ObjectRow};
use jiff::Timestamp;
use serde::{Deserialize as _, Serialize};

use super::instances::KeptInstance;
use super::row::{is, is_well, name};
use super::store::Store;
use super::tables::Tables;
use crate::cluster::supervisor::{self, CapabilitySnapshot, CapabilityStatus};

/// Maximum number of shown Instances, those with work first; the rest is counted.
const INSTANCES: usize = 200;
/// Maximum number of shown objects of one Instance.
const NODES: usize = 300;

/// The page's data.
#[derive(Debug, Serialize)]
pub struct Document {
    capabilities: Vec<Capability>,
    /// All Instances.
    total: usize,
    /// Those with a plan that is scheduled or runs.
    running: usize,
    instances: Vec<Shown>,
}

/// A capability and its kinds.
#[derive(Debug, Serialize)]
struct Capability {
    name: &'static str,
    state: &'static str,
    message: String,
    since: Timestamp,
    kinds: Vec<Kind>,
}

#[derive(Debug, Serialize)]
struct Kind {
    name: String,
    required: bool,
    watch_state: String,
}

/// An Instance.
#[derive(Debug, Serialize)]
struct Shown {
    namespace: String,
    name: String,
    /// Namespace and name of its OperatorVersion; empty where it names none.
    version: String,
    /// Whether all its objects are healthy.
    well: bool,
    plan: Option<Plan>,
    trouble: Vec<Trouble>,
    nodes: Vec<Node>,
    /// Parent and child, by their indexes in `nodes`.
    edges: Vec<(usize, usize)>,
    /// Objects that are not in `nodes`.
    more: usize,
}

/// A plan that is scheduled or runs.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Plan {
    name: String,
    status: String,
    steps: Vec<Step>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Step {
    phase: String,
    name: String,
    status: ExecutionStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// A condition that reports a problem.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Trouble {
    #[serde(rename = "type")]
    type_: String,
    reason: String,
    message: String,
}

#[derive(Debug, Serialize)]
struct Node {
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    is: &'static str,
    /// Absent for kinds without a health.
    #[serde(skip_serializing_if = "Option::is_none")]
    healthy: Option<bool>,
    /// Whether it is the Instance itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    itself: bool,
}

impl Document {
    /// The current graph.
    pub fn of(store: &Store, snapshot: &CapabilitySnapshot) -> Self {
        let tables = store.read();
        let mut all: Vec<(bool, NodeId)> =
            tables.graph.rows(tables.kinds.instance).map(|row| (is(&row, fact::AT_REST), row.id())).collect();
        // Settled Instances come last.
        all.sort();
        let resolver = all.iter().take(INSTANCES).filter_map(|(_, id)| Shown::of(&tables, id));
        let locked = |row: &ObjectRow<'_>| row.word(fact::LOCKED).is_some_and(|plan| !plan.is_empty());
        Self {
            capabilities: snapshot.capabilities.iter().map(Capability::of).collect(),
            total: all.len(),
            running: tables.graph.rows(tables.kinds.instance).filter(locked).count(),
            instances: resolver.collect(),
        }
    }

    /// As JSON for the page.
    pub fn json(&self) -> Vec<u8> {
        // A struct of texts and numbers always serialises.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl Capability {
    fn of(status: &CapabilityStatus) -> Self {
        let kinds = status.kinds.iter().map(|kind| Kind {
            name: kind.name.clone(),
            required: kind.required,
            watch_state: watch_state(&kind.watch_state),
        });
        Self {
            name: status.name,
            state: status.state.name(),
            message: status.state.message(),
            since: status.since,
            kinds: kinds.collect(),
        }
    }
}

/// The watch state of a kind, as shown.
fn watch_state(watch_state: &supervisor::WatchState) -> String {
    use supervisor::WatchState;
    match watch_state {
        WatchState::Absent(absence) => absence.to_string(),
        WatchState::Listing => "is being listed".to_owned(),
        WatchState::Synced => "synced".to_owned(),
        WatchState::Forbidden(verb) => format!("may not be read: no right to {}", verb.as_str()),
        WatchState::Broken(why) => format!("cannot be read: {why}"),
    }
}

impl Shown {
    fn of(tables: &Tables, id: &NodeId) -> Option<Self> {
        let key = name(id);
        let row = tables.instance(&key)?;
        let object = match tables.kept(&key) {
            KeptInstance::Whole(object) => Instance::deserialize(&*object).ok(),
            KeptInstance::AtRest { .. } | KeptInstance::Nothing => None,
        };
        let versions = row.along(Side::Parent, link::OPERATOR_VERSION).map(|row| name(&row.id()));
        let mut resolver = Self {
            version: versions.map(|version| version.to_string()).next().unwrap_or_default(),
            well: is_well(&row),
            plan: object.as_ref().map_or_else(|| locked(&row), plan),
            trouble: object.as_ref().map(trouble).unwrap_or_default(),
            nodes: Vec::new(),
            edges: Vec::new(),
            more: 0,
            namespace: key.namespace,
            name: key.name,
        };
        if let Some(picture) = tables.graph.snapshot_of(id) {
            resolver.draw(&picture, id);
        }
        Some(resolver)
    }

    fn draw(&mut self, picture: &GraphSnapshot, itself: &NodeId) {
        let drawn = || picture.nodes.iter().filter(|(id, _)| concerns_somebody(&id.kind));
        let places: BTreeMap<&NodeId, usize> = drawn().map(|(id, _)| id).take(NODES).zip(0..).collect();
        self.more = drawn().count() - places.len();
        self.nodes = drawn()
            .take(NODES)
            .map(|(id, node)| {
                let section = if id.section.is_empty() { String::new() } else { format!("#{}", id.section) };
                Node {
                    kind: id.kind.kind.to_string(),
                    namespace: id.namespace.to_string(),
                    name: format!("{}{section}", id.name),
                    is: node.is.as_str(),
                    healthy: tells_health(&id.kind).then(|| node.facts.contains_key(fact::HEALTHY)),
                    itself: id == itself,
                }
            })
            .collect();
        let place = |id| places.get(id).copied();
        let edges = picture.edges.iter().filter_map(|(from, to, _)| Some((place(from)?, place(to)?)));
        self.edges = edges.collect();
    }
}

/// Whether a controller acts on objects of a kind; the process does not look at others.
fn concerns_somebody(kind: &GroupKind) -> bool {
    let declared = kinds::schemas(kinds::ALL).into_iter().find(|declared| *kind == declared.name);
    declared.is_none_or(|declared| matches!(declared.events.create, EventTriggers::Roots(_)))
}

/// Whether a kind has a health; undeclared kinds do.
fn tells_health(kind: &GroupKind) -> bool {
    let declared = kinds::schemas(kinds::ALL).into_iter().find(|declared| *kind == declared.name);
    declared.is_none_or(|declared| declared.facts.iter().any(|fact| fact.name == fact::HEALTHY))
}

/// The plan that holds the lock, where only the row is cached.
fn locked(row: &ObjectRow<'_>) -> Option<Plan> {
    let name = row.word(fact::LOCKED).filter(|plan| !plan.is_empty())?;
    Some(Plan { name: name.to_owned(), status: "scheduled or running".to_owned(), steps: Vec::new() })
}

fn plan(instance: &Instance) -> Option<Plan> {
    let lock = lock::of(instance)?;
    let status = lock.status.map_or("scheduled", ExecutionStatus::as_str);
    let entry = instance.status.as_ref().and_then(|status| status.plan_status.get(lock.plan));
    // A plan that is scheduled has the entry of its last run.
    let entry = entry.filter(|_| lock.status.is_some());
    let phases = entry.into_iter().flat_map(|entry| entry.phases.iter().flatten());
    let steps = phases.flat_map(|phase| {
        phase.steps.iter().flatten().map(|step| Step {
            phase: phase.name.clone(),
            name: step.name.clone(),
            status: step.status.clone(),
            message: step.message.clone().filter(|message| !message.is_empty()),
        })
    });
    Some(Plan { name: lock.plan.to_owned(), status: status.to_owned(), steps: steps.collect() })
}

/// Conditions that report a problem, the most significant first.
fn trouble(instance: &Instance) -> Vec<Trouble> {
    let conditions = instance.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let runs = lock::of(instance).is_some();
    let is_trouble = |condition: &Condition| match condition.type_.as_str() {
        types::STALLED | types::SPEC_DRIFT => condition.status == "True",
        types::READY => condition.status != "True" && !runs,
        _ => false,
    };
    [types::STALLED, types::SPEC_DRIFT, types::READY]
        .iter()
        .filter_map(|type_| condition::find(conditions, type_).filter(|found| is_trouble(found)))
        .fold(Vec::new(), |mut troubles: Vec<Trouble>, found| {
            // Several conditions may report one problem.
            if troubles.iter().all(|known| known.message != found.message) {
                let Condition { type_, reason, message, .. } = found.clone();
                troubles.push(Trouble { type_, reason, message });
            }
            troubles
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn instance(plan_execution: &str, status: &str, stalled: &str) -> Instance {
        let condition = |type_: &str, status: &str| {
            json!({"type": type_, "status": status, "reason": "R", "message": "M",
                   "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let object = json!({
            "metadata": {"name": "x"},
            "spec": {"planExecution": {"planName": plan_execution, "uid": "u"}},
            "status": {
                "planStatus": {"deploy": {"uid": "u", "status": status, "phases": [
                    {"name": "p", "status": status, "steps": [{"name": "s", "status": status, "message": ""}]},
                ]}},
                "conditions": [condition("Ready", "False"), condition("Stalled", stalled)],
            },
        });
        Instance::deserialize(object).unwrap()
    }

    #[test]
    fn a_plan_that_runs_is_told_with_its_steps() {
        let running = instance("deploy", "IN_PROGRESS", "True");
        let reported = plan(&running).unwrap();
        assert_eq!((reported.name.as_str(), reported.status.as_str()), ("deploy", "IN_PROGRESS"));
        let step =
            Step { phase: "p".into(), name: "s".into(), status: ExecutionStatus::InProgress, message: None };
        assert_eq!(reported.steps, [step]);
        let types: Vec<_> = trouble(&running).into_iter().map(|trouble| trouble.type_).collect();
        assert_eq!(types, ["Stalled"], "Ready is false while a plan runs, which is no trouble");
    }

    #[test]
    fn a_plan_that_is_scheduled_has_no_steps_yet() {
        let reported = plan(&instance("update", "COMPLETE", "False")).unwrap();
        assert_eq!(
            (reported.name.as_str(), reported.status.as_str(), reported.steps.len()),
            ("update", "scheduled", 0)
        );
    }

    #[test]
    fn an_instance_that_is_not_ready_and_runs_nothing_is_in_trouble() {
        let failed = instance("", "FATAL_ERROR", "False");
        assert_eq!(plan(&failed), None);
        assert_eq!(trouble(&failed)[0].type_, "Ready");
    }

    #[test]
    fn kinds_that_do_not_tell_their_health_are_not_called_unhealthy() {
        assert!(tells_health(&GroupKind::new("apps", "Deployment")));
        assert!(!tells_health(&GroupKind::new("", "Namespace")));
    }

    #[test]
    fn kinds_that_concern_nobody_are_not_drawn() {
        assert!(concerns_somebody(&GroupKind::new("example.dev", "Widget")));
        assert!(!concerns_somebody(&GroupKind::new("kudo.dev", "Operator")));
    }
}
