use std::sync::Arc;

use interlock_core::api::meta;
use interlock_core::api::stamp::SpecHash;
use interlock_kong::api as kong;
use interlock_kong::api::labels;
use interlock_kong::data_plane::live_spec;
use interlock_kong::data_plane::rollout::side::Colour;
use regex::Regex;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::cli::why::facts::{FoundReference, Owner};

fn instance() -> Value {
    json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
        "metadata": {"name": "demo", "namespace": "ns", "uid": "u"},
        "spec": {"operatorVersion": {"name": "web-1"}},
        "status": {
            "planStatus": {"deploy": {"name": "deploy", "uid": "r", "status": "ERROR", "phases": [
                {"name": "main", "status": "ERROR", "steps": [
                    {"name": "done", "status": "COMPLETE"},
                    {"name": "app", "status": "ERROR", "message": "two\n lines"},
                    {"name": "later", "status": "NEVER_RUN"},
                ]},
            ]}},
            "conditions": [
                condition("Ready", "False", "PlanInProgress", ""),
                condition("LiveSpecRecorded", "True", "Recorded", "for programs"),
                condition("Stalled", "True", "Error", "the server\nsays no"),
                condition("SpecDrift", "False", "InSync", "no"),
            ],
        },
    })
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

fn package() -> Value {
    json!({"spec": {
        "operator": {"name": "web"}, "version": "1.0.0", "appVersion": "7",
        "plans": {"deploy": {"phases": [{"name": "main", "steps": [{"name": "app", "tasks": ["apply"]}]}]}},
    }})
}

fn child() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": "front", "namespace": "ns", "annotations": {
                "kudo.dev/plan": "deploy", "kudo.dev/phase": "main", "kudo.dev/step": "app",
                "kudo.dev/last-plan-execution-uid": "r",
            },
            "managedFields": [{"manager": "m", "subresource": "status", "time": "2026-01-01T00:00:00Z"}],
        },
    })
}

fn facts(object: Value) -> ClusterFacts {
    ClusterFacts {
        object: Arc::new(object),
        references: Vec::new(),
        owners: Vec::new(),
        readings: [("instances", vec![Ok(vec![package()])])].into(),
        events: Ok(Vec::new()),
        controller_user: Ok("someone".to_owned()),
        report: ReadOutcome::There(Arc::new(json!({"status": {"conditions": [
            condition("Ready", "False", "CRDMissing", "InstancesReady: m"),
            condition("InstancesReady", "True", "Running", "m"),
            condition("RoutesReady", "False", "CRDMissing", "two\nlines"),
        ]}}))),
    }
}

fn made_by(found: ReadOutcome) -> ClusterFacts {
    let owner = Owner {
        kind: "Instance.kudo.dev".to_owned(),
        namespace: "ns".to_owned(),
        name: "demo".to_owned(),
        found,
    };
    ClusterFacts { owners: vec![owner], ..facts(child()) }
}

#[test]
fn an_instance_whose_plan_stalls() {
    let story = WhyAnswer::of(&facts(instance()));
    assert_eq!(
        story.is,
        [
            "an Instance of the package web 1.0.0, application 7",
            "plan deploy is ERROR",
            "phase main, step app is ERROR: two lines",
            "Ready=False (PlanInProgress)",
            "Stalled=True (Error): the server says no",
        ]
    );
    assert_eq!(story.acted_on_by[0].who, "Interlock, capability instances (Running), as someone");
    assert_eq!(story.unknown, Vec::<String>::new());
}

#[test]
fn an_instance_whose_package_cannot_be_seen() {
    let mut facts = facts(instance());
    facts.readings.clear();
    assert_eq!(WhyAnswer::of(&facts).is[0], "an Instance of OperatorVersion web-1");
}

#[test]
fn something_that_an_instance_made() {
    let story = WhyAnswer::of(&made_by(ReadOutcome::There(Arc::new(instance()))));
    assert_eq!(story.is[0], "made by Instance ns/demo");
    let does: Vec<_> = story.acted_on_by.iter().map(|actor| actor.does.as_str()).collect();
    assert_eq!(does[0], "wrote it last: plan deploy, phase main, step app, task apply (run r)");
    assert_eq!(does.last(), Some(&"wrote the status at 2026-01-01T00:00:00Z"));
    assert!(story.happened.iter().all(|happening| happening.what.starts_with("Instance demo: ")));
}

#[rstest]
#[case::present(ReadOutcome::There(Arc::new(json!({}))), Presence::Present, None)]
#[case::going(
    ReadOutcome::There(Arc::new(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))),
    Presence::Terminating,
    None
)]
#[case::missing(ReadOutcome::Missing, Presence::Missing, None)]
#[case::unknown(ReadOutcome::Unknown("forbidden".into()), Presence::Unknown, Some("forbidden"))]
fn unknown_is_not_missing(#[case] found: ReadOutcome, #[case] state: Presence, #[case] why: Option<&str>) {
    let reference = FoundReference {
        link: "backend",
        kind: "Service".to_owned(),
        namespace: "ns".to_owned(),
        name: "x".to_owned(),
        found: found.clone(),
    };
    let story = WhyAnswer::of(&ClusterFacts { references: vec![reference], ..facts(child()) });
    assert_eq!((story.depends_on[0].state, story.depends_on[0].why.as_deref()), (state, why));
    let owner = &WhyAnswer::of(&made_by(found)).depends_on[0];
    assert_eq!((owner.link, owner.state), ("madeBy", state));
}

#[test]
fn an_object_that_is_being_deleted_names_what_holds_it() {
    let mut object = child();
    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    object["metadata"]["finalizers"] = json!(["a/b"]);
    let is = WhyAnswer::of(&facts(object)).is;
    assert_eq!(is.last().unwrap(), "being deleted since 2026-01-01T00:00:00Z; held by a/b");
}

#[rstest]
#[case::new(json!({"eventTime": "2026-01-01T00:00:03.000000Z"}), 3)]
#[case::series(
    json!({"eventTime": "2026-01-01T00:00:03.000000Z", "series": {"lastObservedTime": "2026-01-01T00:00:05Z"}}),
    5
)]
#[case::old(json!({"eventTime": null, "deprecatedLastTimestamp": "2026-01-01T00:00:04Z"}), 4)]
fn an_event_is_told_with_the_last_time_it_was_seen(#[case] times: Value, #[case] second: i32) {
    let mut event = json!({
        "reason": "Failed", "note": "it\nbroke", "type": "Warning",
        "regarding": {"kind": "Service", "name": "front"},
    });
    event.as_object_mut().unwrap().extend(times.as_object().unwrap().clone());
    let told = &WhyAnswer::of(&ClusterFacts { events: Ok(vec![event]), ..facts(child()) }).happened[0];
    assert_eq!(told.what, "Warning Failed on Service front: it broke");
    assert_eq!(told.at.to_string(), format!("2026-01-01T00:00:0{second}Z"));
}

#[test]
fn what_may_not_be_read_is_said() {
    let unknown_part = ClusterFacts {
        events: Err("no events".into()),
        controller_user: Err("no webhooks".into()),
        report: ReadOutcome::Unknown("no report".into()),
        ..facts(instance())
    };
    let story = WhyAnswer::of(&unknown_part);
    assert_eq!(story.acted_on_by[0].who, "Interlock, capability instances (state unknown)");
    assert_eq!(
        story.unknown,
        [
            "Events: no events",
            "the user that Interlock works as: no webhooks",
            "the state of Interlock's capabilities: no report",
        ]
    );
}

#[test]
fn without_an_interlock_object_nobody_reports() {
    let story = WhyAnswer::of(&ClusterFacts {
        report: ReadOutcome::Missing,
        controller_user: Err("none".into()),
        ..facts(instance())
    });
    let who = &story.acted_on_by[0].who;
    assert_eq!(who, "Interlock, capability instances (state not reported: no Interlock \"default\")");
}

#[rstest]
#[case("networking.k8s.io/v1", "Ingress", &["Interlock, capability routes (CRDMissing: two lines)"])]
#[case("v1", "Namespace", &["Interlock, capability instances (Running)", "Interlock, capability attachments (state not reported)"])]
#[case("interlock.dev/v1alpha1", "Interlock", &["Interlock, capability settings (state not reported)"])]
#[case("v1", "ConfigMap", &[])]
fn the_capabilities_that_read_a_kind_act_on_it(
    #[case] api_version: &str,
    #[case] kind: &str,
    #[case] expected: &[&str],
) {
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}});
    let story = WhyAnswer::of(&facts(object));
    let who: Vec<_> = story.acted_on_by.iter().map(|actor| actor.who.as_str()).collect();
    assert_eq!(who, expected);
}

#[test]
fn what_people_asked_of_a_run_is_told_with_its_end() {
    let mut object = instance();
    let run = json!([{
        "plan": "deploy", "uid": "r", "result": "FATAL_ERROR", "end": "2026-01-02T00:00:00Z",
        "asked": [{"verb": "abort", "who": "alice", "reason": "wrong size", "nonce": "n"}],
    }]);
    object["metadata"]["annotations"] = json!({"plan.interlock.dev/history": run.to_string()});
    let told = &WhyAnswer::of(&facts(object)).happened[0].what;
    assert_eq!(told, "plan deploy ended FATAL_ERROR; alice asked for abort: wrong size");
}

const UID: &str = "00000000-0000-4000-8000-000000000001";

/// A DataPlane whose live side is blue, with another image staged.
fn data_plane(reason: &str, message: &str) -> Value {
    let spec = |image: &str| {
        let template = json!({"spec": {"containers": [{"name": "proxy", "image": image}]}});
        json!({"deployment": {"podTemplateSpec": template, "rollout": {"strategy": {"blueGreen": {}}}}})
    };
    let live = live_spec::after(None, &spec("kong:3.8"));
    let selector = Colour::Blue.selector(UID);
    let stamp = json!({
        "v": 1, "hash": SpecHash::of(&live.to_string()), "spec": live, "uid": UID, "selector": selector,
    });
    let mut rolled_out = condition("RolledOut", "False", reason, message);
    rolled_out["observedGeneration"] = json!(2);
    json!({
        "apiVersion": kong::API_VERSION, "kind": "DataPlane",
        "metadata": {
            "namespace": "kong", "name": "edge", "uid": UID, "generation": 2,
            "annotations": {meta::LAST_APPLIED_SPEC: stamp.to_string()},
        },
        "spec": spec("kong:3.9"),
        "status": {
            "selector": selector, "replicas": 3, "readyReplicas": 3,
            "conditions": [condition("Ready", "True", "Ready", ""), condition("LiveSpecRecorded", "True", "Served", "h")],
            "rollout": {"deployment": {"selector": Colour::Green.selector(UID)}, "conditions": [rolled_out]},
        },
    })
}

fn deployment(colour: Colour, state: &str, ready: u64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "namespace": "kong", "name": format!("dataplane-edge-{}", colour.as_str()),
            "labels": {labels::DEPLOYMENT_STATE: state}, "ownerReferences": [{"uid": UID}],
        },
        "spec": {"replicas": 3, "selector": {"matchLabels": {labels::SELECTOR: colour.selector(UID)}}},
        "status": {"readyReplicas": ready},
    })
}

fn of_data_plane(object: Value, data_plane: Value, ready: u64) -> ClusterFacts {
    let deployments = vec![deployment(Colour::Green, "preview", ready), deployment(Colour::Blue, "live", 3)];
    let owner = Owner {
        kind: "DataPlane.gateway-operator.konghq.com".to_owned(),
        namespace: "kong".to_owned(),
        name: "edge".to_owned(),
        found: ReadOutcome::There(Arc::new(data_plane)),
    };
    ClusterFacts {
        owners: vec![owner],
        readings: [("dataplanes", vec![Ok(deployments)])].into(),
        ..facts(object)
    }
}

#[test]
fn a_data_plane_tells_its_phase_its_sides_its_gates_and_the_next_command() {
    let object = data_plane("AwaitingPromotion", "");
    let story = WhyAnswer::of(&of_data_plane(object.clone(), object, 3));
    let hash = Regex::new("spec [0-9a-f]{12}").unwrap();
    let is: Vec<_> = story.is.iter().map(|line| hash.replace_all(line, "spec HASH")).collect();
    let selector = Colour::Blue.selector(UID);
    let live = format!(
        "live: kong:3.8, router flavor traditional_compatible, 3 of 3 replicas ready, selector {selector}"
    );
    assert_eq!(
        is,
        [
            "rollout AwaitingPromotion since 2026-01-01T00:00:00Z",
            &live,
            "staged: spec HASH",
            "  spec.deployment.podTemplateSpec.spec.containers[proxy].image: kong:3.8 -> kong:3.9",
            "live blue: 3 of 3 pods ready, Deployment dataplane-edge-blue",
            "preview green: 3 of 3 pods ready, Deployment dataplane-edge-green",
            "gate spec: passed",
            "gate pods: passed",
            "gate answers: passed",
            "gate promotion: waits for: a promotion",
            "gate traffic: not reached",
            "next: `interlock rollout promote edge -n kong`, or `interlock rollout abort edge -n kong`",
            "Ready=True (Ready)",
        ]
    );
    let happened: Vec<_> = story.happened.iter().map(|event| event.what.as_str()).collect();
    assert_eq!(happened, ["Ready became True (Ready)", "RolledOut became False (AwaitingPromotion)"]);
    let json = serde_json::to_value(&story).unwrap();
    assert_eq!(json["rollout"]["sides"][1]["colour"], "green");
    assert_eq!(
        json["rollout"]["gates"][3],
        json!({"gate": "promotion", "state": "closed", "waitsFor": "a promotion"})
    );
}

#[rstest]
#[case::pods(1, "gate pods: waits for: all pods of the preview to be ready (1 of 3 are)")]
#[case::answers(3, "gate answers: waits for: pod x: it has received no configuration")]
fn a_gate_says_what_it_waits_for(#[case] ready: u64, #[case] gate: &str) {
    let mut object = data_plane("Progressing", "pod x: it has\nreceived no configuration");
    if ready == 3 {
        let mut gates = object["status"]["rollout"]["conditions"][0].clone();
        json_patch::merge(&mut gates, &json!({"type": "GatesPassed", "reason": "Answers", "message": ""}));
        object["status"]["rollout"]["conditions"].as_array_mut().unwrap().push(gates);
    }
    let story = WhyAnswer::of(&of_data_plane(object.clone(), object, ready));
    assert!(story.is.iter().any(|line| line == gate), "{:#?}", story.is);
}

#[rstest]
#[case::a_deployment(
    deployment(Colour::Green, "preview", 1),
    "part of the preview (green) of DataPlane kong/edge"
)]
#[case::a_pod(
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "kong",
        "labels": {labels::SELECTOR: Colour::Blue.selector(UID)}}, "status": {"phase": "Running"}}),
    "part of the live side (blue) of DataPlane kong/edge"
)]
#[case::a_secret(
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "kong"}}),
    "belongs to DataPlane kong/edge"
)]
fn what_belongs_to_a_data_plane_leads_to_it(#[case] object: Value, #[case] belongs: &str) {
    let story = WhyAnswer::of(&of_data_plane(object, data_plane("AwaitingPromotion", ""), 3));
    assert_eq!(story.is[0], "made by DataPlane kong/edge");
    assert_eq!(story.is[1], belongs);
    assert_eq!(story.is[2], "rollout AwaitingPromotion; gate promotion: waits for: a promotion");
    assert_eq!(story.is[3], "next: `interlock why dataplane/kong/edge`");
    assert!(story.happened.iter().all(|event| event.what.starts_with("DataPlane edge: ")));
}

#[test]
fn deployments_that_may_not_be_read_are_said() {
    let object = data_plane("AwaitingPromotion", "");
    let readings = [("dataplanes", vec![Err("forbidden".to_owned())])].into();
    let story = WhyAnswer::of(&ClusterFacts { readings, ..facts(object) });
    assert_eq!(story.unknown, ["the Deployments of the DataPlane: forbidden"]);
}
