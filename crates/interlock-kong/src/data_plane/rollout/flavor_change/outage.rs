//! A change of flavor while no pod runs, of a DataPlane whose changes are not staged: it is scaled to 0, changed, and
//! scaled back. With no pod running, nothing of two flavors runs side by side.

use interlock_core::api::meta;
use interlock_core::api::object::{annotation, meta_str};
use serde_json::{Value, json};
use thiserror::Error;

use super::producer::ProducerState;
use super::refusal::FlavorChangeRefusal;
use crate::api::condition;
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
    condition(&object["status"], meta::condition::READY).is_some_and(|ready| {
        ready["status"] == "True"
            && ready["observedGeneration"].as_i64() >= object["metadata"]["generation"].as_i64()
    })
}

#[cfg(test)]
mod tests {
    use interlock_core::api::meta;
    use interlock_core::api::stamp::SpecHash;
    use rstest::rstest;
    use serde_json::{Value, json};

    use crate::data_plane::flavor::Flavor::{Expressions as EX, Traditional as T};
    use crate::data_plane::flavor::sources::Nothing;
    use crate::data_plane::live_spec;
    use crate::data_plane::rollout::flavor_change::outage::{
        OutageFacts, OutageMove, OutageRefusal, next_move, start_pods, stop_pods,
    };
    use crate::data_plane::rollout::flavor_change::producer::ProducerState;
    use crate::data_plane::rollout::flavor_change::refusal::FlavorChangeRefusal;

    const READY: ProducerState = ProducerState::Running { is_ready: true, is_stale: false };
    const STARTING: ProducerState = ProducerState::Running { is_ready: false, is_stale: false };
    const BEFORE: &str = "interlock.dev/replicas-before-outage";

    fn plane(flavor: &str, replicas: Option<i64>, pods: [i64; 2], remembered: Option<&str>) -> Value {
        let ready = if pods[1] > 0 { "True" } else { "False" };
        json!({
            "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
            "metadata": {"name": "edge", "namespace": "kong", "generation": 3, "resourceVersion": "7", "annotations": {BEFORE: remembered}},
            "spec": {"deployment": {"replicas": replicas, "podTemplateSpec": {"spec": {"containers": [
                {"name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_ROUTER_FLAVOR", "value": flavor}]}]}}}},
            "status": {"replicas": pods[0], "readyReplicas": pods[1], "conditions": [
                {"type": "Ready", "status": ready, "observedGeneration": 3}]},
        })
    }

    const FROM: &str = "traditional";
    const TO: &str = "expressions";

    #[rstest]
    #[case::producer_first(plane(FROM, Some(2), [2, 2], None), READY, OutageMove::StopProducer)]
    #[case::producer_stopping(plane(FROM, Some(2), [2, 2], None), ProducerState::Stopping, OutageMove::AwaitProducerStopped)]
    #[case::pods(plane(FROM, Some(2), [2, 2], None), ProducerState::Stopped, OutageMove::StopPods)]
    #[case::without_producer(plane(FROM, None, [1, 1], None), ProducerState::NotGiven, OutageMove::StopPods)]
    #[case::pods_left(plane(FROM, Some(0), [1, 0], Some("2")), ProducerState::Stopped, OutageMove::AwaitNoPods)]
    #[case::no_pods(plane(FROM, Some(0), [0, 0], Some("2")), ProducerState::Stopped, OutageMove::Change)]
    #[case::stopped_by_people(plane(FROM, Some(0), [0, 0], None), ProducerState::NotGiven, OutageMove::Change)]
    #[case::changed(plane(TO, Some(0), [0, 0], Some("2")), ProducerState::Stopped, OutageMove::StartPods)]
    #[case::pods_before_the_producer(plane(TO, Some(0), [0, 0], Some("2")), READY, OutageMove::StartPods)]
    #[case::producer_back(plane(TO, Some(2), [1, 0], None), ProducerState::Stopped, OutageMove::StartProducer)]
    #[case::starting(plane(TO, Some(2), [2, 1], None), STARTING, OutageMove::AwaitPods)]
    #[case::producer_starting(plane(TO, Some(2), [2, 2], None), STARTING, OutageMove::AwaitProducerReady)]
    #[case::done(plane(TO, Some(2), [2, 2], None), READY, OutageMove::Done)]
    #[case::done_without_producer(plane(TO, Some(2), [2, 2], None), ProducerState::NotGiven, OutageMove::Done)]
    #[case::left_at_0_by_people(plane(TO, Some(0), [0, 0], None), ProducerState::NotGiven, OutageMove::Done)]
    fn the_next_move(#[case] object: Value, #[case] producer: ProducerState, #[case] wanted: OutageMove) {
        let facts = OutageFacts::of(&object, EX, &Nothing, producer).unwrap();
        assert_eq!(next_move(&facts), wanted, "{facts:?}");
    }

    /// The written flavor is awaited where the pods are still made from the spec before it.
    #[test]
    fn a_written_flavor_is_not_written_again() {
        let mut object = plane(TO, Some(0), [0, 0], Some("2"));
        let live = live_spec::after(None, &plane(FROM, Some(0), [0, 0], None)["spec"]);
        let recorded = live_spec::staged_part(&live).to_string();
        let hash = |text: &str| SpecHash::of(text).as_str().to_owned();
        let stored = live_spec::after(None, &object["spec"]);
        object["metadata"]["uid"] = json!("u");
        object["status"]["selector"] = json!("s");
        let stamp = json!({
            "v": 1, "hash": live_spec::hash(&object["spec"]).as_str(), "spec": stored, "uid": "u", "selector": "s",
            "previous": {"hash": live_spec::hash(&live).as_str(), "spec": live},
        });
        object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(stamp.to_string());
        let condition = json!({"type": "LiveSpecRecorded", "status": "True", "message": hash(&recorded)});
        object["status"]["conditions"].as_array_mut().unwrap().push(condition);
        let facts = OutageFacts::of(&object, EX, &Nothing, ProducerState::NotGiven).unwrap();
        assert_eq!((facts.from, next_move(&facts)), (T, OutageMove::AwaitTaken));
    }

    /// A report on an earlier spec says nothing of the pods that were started since.
    #[test]
    fn an_earlier_report_is_none() {
        let mut object = plane(TO, Some(2), [2, 2], None);
        object["metadata"]["generation"] = json!(4);
        let facts = OutageFacts::of(&object, EX, &Nothing, READY).unwrap();
        assert_eq!(next_move(&facts), OutageMove::AwaitPods);
    }

    fn with(at: &str, value: Value) -> Value {
        let mut object = plane(FROM, Some(2), [2, 2], None);
        object["spec"]["deployment"][at] = value;
        object
    }

    #[rstest]
    #[case::staged(with("rollout", json!({"strategy": {"blueGreen": {}}})), READY, OutageRefusal::Staged)]
    #[case::scaled(with("scaling", json!({"horizontal": {"maxReplicas": 3}})), READY, OutageRefusal::Scaled)]
    #[case::absent(with("replicas", json!(2)), ProducerState::Absent, FlavorChangeRefusal::ProducerAbsent.into())]
    #[case::taken(
        with("replicas", json!(2)),
        ProducerState::Taken("a/b".to_owned()),
        FlavorChangeRefusal::ProducerTaken("a/b".to_owned()).into()
    )]
    fn what_it_is_not_done_for(
        #[case] object: Value,
        #[case] producer: ProducerState,
        #[case] why: OutageRefusal,
    ) {
        assert_eq!(OutageFacts::of(&object, EX, &Nothing, producer), Err(why));
    }

    #[test]
    fn it_is_scaled_back_to_what_it_was() {
        let mut object = plane(FROM, Some(3), [3, 3], None);
        let stopped = stop_pods(&object);
        json_patch::merge(&mut object, &stopped);
        let facts = OutageFacts::of(&object, EX, &Nothing, ProducerState::NotGiven).unwrap();
        assert_eq!((facts.from, facts.replicas, facts.remembered), (T, 0, Some(3)));
        let started = start_pods(&object, 3);
        json_patch::merge(&mut object, &started);
        assert_eq!(object["spec"]["deployment"]["replicas"], 3);
        assert_eq!(object["metadata"]["annotations"].get(BEFORE), None);
    }
}
