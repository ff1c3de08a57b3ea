//! A change of flavor while no pod runs, of a DataPlane whose changes are not staged: it is scaled to 0, changed, and
//! scaled back. With no pod running, nothing of two flavors runs side by side.

use interlock_core::api::meta;
use interlock_core::api::object::{annotation, meta_str};
use serde_json::{Value, json};
use thiserror::Error;

use super::producer::ProducerState;
use super::refusal::FlavorChangeRefusal;
use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::gateway::Gateway;
use crate::data_plane::flavor::sources::Sources;
use crate::data_plane::live_spec;

/// Where a change through an outage stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutageFacts {
    /// The flavor of the spec that the pods are made from.
    pub from: Flavor,
    /// The wanted flavor.
    pub to: Flavor,
    /// Whether the stored spec has the wanted flavor, whatever the pods are made from.
    pub is_written: bool,
    /// How many pods the spec wants.
    pub replicas: i64,
    /// How many pods to go back to, where this change has scaled it to 0.
    pub remembered: Option<i64>,
    /// How many pods there are.
    pub pods: i64,
    /// Whether all that are wanted are ready.
    pub is_ready: bool,
    /// The configuration producer.
    pub producer: ProducerState,
}

/// Why a DataPlane is not changed through an outage.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum OutageRefusal {
    /// Its changes are staged.
    #[error("spec.deployment.rollout.strategy.blueGreen is set: a change is staged, and needs no outage")]
    Staged,
    /// An autoscaler decides how many pods there are.
    #[error("spec.deployment.scaling is set: an autoscaler decides how many pods there are")]
    Scaled,
    /// It stands still for a reason that is not one of outages.
    #[error(transparent)]
    Other(#[from] FlavorChangeRefusal),
}

impl OutageRefusal {
    /// What to do; `arguments` are `NAME -n NAMESPACE`.
    pub fn remedy(&self, arguments: &str) -> String {
        match self {
            Self::Staged => "leave --outage out".to_owned(),
            Self::Scaled => {
                "set spec.deployment.replicas in its place until the flavor is changed".to_owned()
            }
            Self::Other(why) => why.remedy(arguments),
        }
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageMove {
    /// Nothing: the wanted flavor runs.
    Done,
    /// Scale the producer to 0.
    StopProducer,
    /// Wait until the producer has no pods.
    AwaitProducerStopped,
    /// Scale the DataPlane to 0.
    StopPods,
    /// Wait until it has no pods.
    AwaitNoPods,
    /// Write the wanted flavor.
    Change,
    /// Wait until the API server has taken what was written.
    AwaitTaken,
    /// Scale the DataPlane back.
    StartPods,
    /// Scale the producer back.
    StartProducer,
    /// Wait until all pods of the DataPlane are ready.
    AwaitPods,
    /// Wait until all pods of the producer are ready.
    AwaitProducerReady,
}

impl OutageFacts {
    /// The facts of an object.
    pub fn of(
        object: &Value,
        to: Flavor,
        sources: &dyn Sources,
        producer: ProducerState,
    ) -> Result<Self, OutageRefusal> {
        let spec = &object["spec"];
        if live_spec::is_staged(spec) {
            return Err(OutageRefusal::Staged);
        }
        if !spec["deployment"]["scaling"].is_null() {
            return Err(OutageRefusal::Scaled);
        }
        let unknown = |why: &dyn std::fmt::Display| FlavorChangeRefusal::UnknownLive(why.to_string());
        let runs = Gateway::runs(object, "", sources).map_err(|error| unknown(&error))?;
        let runs = runs.ok_or_else(|| unknown(&"it is no DataPlane"))?;
        let from = runs.known().ok_or_else(|| unknown(&runs))?;
        let written = Gateway::read(object, "", sources).map_err(|error| unknown(&error))?;
        let written = written.and_then(|written| written.spec.reading.effective.known());
        match &producer {
            ProducerState::Absent => return Err(FlavorChangeRefusal::ProducerAbsent.into()),
            ProducerState::Taken(by) => return Err(FlavorChangeRefusal::ProducerTaken(by.clone()).into()),
            _ => {}
        }
        let replicas = spec["deployment"]["replicas"].as_i64().unwrap_or(1);
        let count = |field: &str| object["status"][field].as_i64().unwrap_or_default();
        let remembered = annotation(object, meta::REPLICAS_BEFORE_OUTAGE);
        Ok(Self {
            from,
            to,
            is_written: written == Some(to),
            replicas,
            // Of what is no number, one pod is started.
            remembered: remembered.map(|text| text.parse().ok().filter(|count| *count > 0).unwrap_or(1)),
            pods: count("replicas"),
            is_ready: is_ready(object) && count("replicas") == replicas && count("readyReplicas") == replicas,
            producer,
        })
    }
}

/// The next move: the producer goes first and comes back last, so that it meets pods of one flavor alone.
pub fn next_move(facts: &OutageFacts) -> OutageMove {
    if facts.from != facts.to {
        return match facts.producer {
            ProducerState::Running { .. } => OutageMove::StopProducer,
            ProducerState::Stopping => OutageMove::AwaitProducerStopped,
            _ if facts.replicas != 0 => OutageMove::StopPods,
            _ if facts.pods != 0 => OutageMove::AwaitNoPods,
            _ if facts.is_written => OutageMove::AwaitTaken,
            _ => OutageMove::Change,
        };
    }
    match facts.producer {
        _ if facts.remembered.is_some() => OutageMove::StartPods,
        ProducerState::Stopping => OutageMove::AwaitProducerStopped,
        ProducerState::Stopped => OutageMove::StartProducer,
        _ if facts.replicas != 0 && !facts.is_ready => OutageMove::AwaitPods,
        ProducerState::Running { is_ready: false, .. } => OutageMove::AwaitProducerReady,
        _ => OutageMove::Done,
    }
}

/// The patch that scales a DataPlane to 0, and remembers from how many pods.
pub fn stop_pods(object: &Value) -> Value {
    let replicas = object.pointer("/spec/deployment/replicas").and_then(Value::as_i64).unwrap_or(1);
    scaled(object, 0, json!(replicas.to_string()))
}

/// The patch that scales a DataPlane back.
pub fn start_pods(object: &Value, replicas: i64) -> Value {
    scaled(object, replicas, Value::Null)
}

fn scaled(object: &Value, replicas: i64, remembered: Value) -> Value {
    json!({
        "metadata": {
            "resourceVersion": meta_str(object, "resourceVersion"),
            "annotations": {meta::REPLICAS_BEFORE_OUTAGE: remembered},
        },
        "spec": {"deployment": {"replicas": replicas}},
    })
}

/// Whether the condition `Ready` holds for the spec that is stored.
fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .filter(|condition| condition["type"] == meta::condition::READY && condition["status"] == "True")
        .any(|condition| {
            condition["observedGeneration"].as_i64() >= object["metadata"]["generation"].as_i64()
        })
}
