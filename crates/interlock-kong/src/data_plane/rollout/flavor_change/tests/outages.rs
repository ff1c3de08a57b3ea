//! Changes through an outage.

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
