//! What a decision costs: decode, decide, encode, at 2, 9 and 114 KB; a DataPlane at 30 KB.
//!
//! Ours beside two others on the same bytes, in turn: a parse of the uid alone (the floor), and
//! kube's `AdmissionReview<DynamicObject>` from bytes to an answer with the same patch or text.
//! The goals are for 9 KB; at 114 KB the parse of the uid alone takes more of kube's time than the
//! goal of a refusal. The calls about a DataPlane are that of mutation, where it is stamped, and those
//! of validation, where its router flavor is judged. Prints a table and writes the rows to `target/bench/results.json`; an
//! argument picks the cases whose name holds it.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "results/mod.rs"]
mod results;

use std::hint::black_box;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use interlock_core::admission::{AdmissionAnswer, CacheWait, Config, Freeze, WebhookEndpoint, answer};
use interlock_core::api::meta;
use interlock_core::api::stamp::{Applied, Envelope, KeptSpec, VersionRef};
use interlock_core::kinds;
use interlock_core::kinds::static_lister::StaticLister;
use interlock_kong::api as kong;
use interlock_kudo::instance::change::baseline::Baseline;
use jiff::Timestamp;
use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse, AdmissionReview};
use results::{Goal, Row};
use serde::Deserialize;
use serde_json::{Value, json};

/// Samples of each of the three, taken in turn.
const SAMPLES: usize = 400;
/// The size that the goals are for.
const JUDGED: &str = "9 KB";
/// How long one sample runs: short, so that many are not interrupted.
const SAMPLE: Duration = Duration::from_micros(500);

#[derive(Deserialize)]
struct UidOnly<'a> {
    #[serde(borrow)]
    request: UidOf<'a>,
}

#[derive(Deserialize)]
struct UidOf<'a> {
    uid: &'a str,
}

fn floor(body: &[u8]) -> usize {
    serde_json::from_slice::<UidOnly<'_>>(body).map_or(0, |review| review.request.uid.len())
}

/// What the answer of a webhook in kube's own types costs: the decision itself is free here.
fn kube(body: &[u8], answer: &Result<json_patch::Patch, String>) -> usize {
    let Ok(review) = serde_json::from_slice::<AdmissionReview<DynamicObject>>(body) else { return 0 };
    let Ok(request): Result<AdmissionRequest<DynamicObject>, _> = review.try_into() else { return 0 };
    let response = AdmissionResponse::from(&request);
    let response = match answer {
        Ok(patch) if patch.0.is_empty() => response,
        Ok(patch) => match response.with_patch(patch.clone()) {
            Ok(response) => response,
            Err(_) => return 0,
        },
        Err(text) => response.deny(text),
    };
    serde_json::to_vec(&response.into_review()).map_or(0, |body| body.len())
}

struct Case {
    name: String,
    door: WebhookEndpoint,
    body: Vec<u8>,
    /// Whether the goals are for this size.
    judged: bool,
    /// Largest ratio to kube's path.
    of_kube: f64,
    /// Largest ratio to the floor.
    of_floor: Option<f64>,
}

/// Parameters of an Instance: many short ones and a few texts, as packages have them.
fn parameters(bytes: usize) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut used = 0;
    while used < bytes {
        let i = all.len();
        let value = match i % 8 {
            0 => format!("{}", 1000 + i),
            1 => format!("{}Gi", i + 1),
            2 => "true".to_owned(),
            7 if bytes > 10_000 => format!("- name: \"listener-{i}\"\n  port: {}\n", 9000 + i).repeat(24),
            7 => format!("- name: \"listener-{i}\"\n  port: {}\n", 9000 + i),
            _ => format!("kafka-broker-{i}.example.internal:90{:02}", i % 100),
        };
        used += value.len() + 40;
        all.push((format!("BROKER_SETTING_NUMBER_{i:03}"), value));
    }
    all
}

fn version(parameters: &[(String, String)]) -> Value {
    let listed: Vec<Value> =
        parameters.iter().map(|(name, _)| json!({"name": name, "default": ""})).collect();
    json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "OperatorVersion",
        "metadata": {"name": "kafka-1.3.3", "namespace": "team"},
        "spec": {
            "operator": {"name": "kafka"}, "version": "1.3.3", "parameters": listed,
            "plans": {"deploy": {}, "update": {}, "cleanup": {}}
        }
    })
}

/// An Instance as an API server sends it after `kubectl apply`.
fn instance(parameters: &[(String, String)]) -> Value {
    let spec = json!({
        "operatorVersion": {"name": "kafka-1.3.3"},
        "parameters": parameters.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
    });
    let applied = Applied {
        operator_version: VersionRef { name: "kafka-1.3.3".into(), namespace: "team".into() },
        parameters: parameters.iter().map(|(k, v)| (k.as_str().into(), v.as_str().into())).collect(),
    };
    let stamp = Envelope {
        hash: applied.hash(),
        kept: KeptSpec::Inline { spec: applied.clone() },
        previous: None,
        uid: Some("0a1b2c3d-1111-4222-8333-444455556666".into()),
        generation: Some(4),
    };
    let status = |name: &str, state: &str| {
        json!({"name": name, "status": state, "uid": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
               "lastUpdatedTimestamp": "2026-01-02T03:04:05Z",
               "phases": [{"name": "deploy-kafka", "status": state,
                           "steps": [{"name": "deploy", "status": state}]}]})
    };
    json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance",
        "metadata": {
            "name": "kafka", "namespace": "team", "uid": "0a1b2c3d-1111-4222-8333-444455556666",
            "resourceVersion": "123456", "generation": 4, "creationTimestamp": "2026-01-02T03:00:00Z",
            "labels": {"kudo.dev/operator": "kafka"}, "finalizers": [meta::FINALIZER],
            "annotations": {meta::LAST_APPLIED_SPEC: stamp.to_json()},
            "managedFields": [{"manager": "kubectl-client-side-apply", "operation": "Update",
                "apiVersion": meta::KUDO_API_VERSION, "time": "2026-01-02T03:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:annotations": {}}, "f:spec": {"f:parameters": {}}}}]
        },
        "spec": spec,
        "status": {
            "planStatus": {"deploy": status("deploy", "COMPLETE"), "update": status("update", "NEVER_RUN")},
            "lastApplied": Baseline::new(&applied, Default::default()),
            "observedGeneration": 4,
            "conditions": [{"type": "Ready", "status": "True", "reason": "ResourcesReady", "message": "",
                "observedGeneration": 4, "lastTransitionTime": "2026-01-02T03:04:05Z"}]
        }
    })
}

fn review(object: &Value, old: &Value) -> Vec<u8> {
    json!({
        "kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "0e5f6f2e-9d5c-4f0e-8f52-0a2ac0d6d5d1",
            "kind": {"group": "kudo.dev", "version": "v1beta1", "kind": "Instance"},
            "resource": {"group": "kudo.dev", "version": "v1beta1", "resource": "instances"},
            "requestKind": {"group": "kudo.dev", "version": "v1beta1", "kind": "Instance"},
            "requestResource": {"group": "kudo.dev", "version": "v1beta1", "resource": "instances"},
            "name": "kafka", "namespace": "team", "operation": "UPDATE",
            "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
            "object": object, "oldObject": old, "dryRun": false,
            "options": {"kind": "PatchOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "kubectl"}
        }
    })
    .to_string()
    .into_bytes()
}

/// Parameters for a review of about so many bytes.
fn sized(target: usize) -> Vec<(String, String)> {
    let mut budget = target / 8;
    loop {
        let parameters = parameters(budget);
        let object = instance(&parameters);
        if review(&object, &object).len() >= target {
            return parameters;
        }
        budget += 40;
    }
}

fn cases(label: &str, parameters: &[(String, String)]) -> Vec<Case> {
    let judged = label == JUDGED;
    let old = instance(parameters);
    let mut edited = old.clone();
    edited["spec"]["parameters"][&parameters[0].0] = json!("4711");
    let mut running = old.clone();
    running["spec"]["planExecution"] =
        json!({"planName": "deploy", "uid": "5c8bb3fd-6d5b-4c3c-9a5e-1f8a2bbd7f10", "status": "IN_PROGRESS"});
    let mut frozen = running.clone();
    frozen["spec"]["parameters"][&parameters[0].0] = json!("4711");
    let mut labelled = old.clone();
    labelled["metadata"]["labels"]["team"] = json!("a");
    vec![
        Case {
            name: format!("admission {label}, schedules and stamps"),
            door: WebhookEndpoint::Mutate,
            body: review(&edited, &old),
            judged,
            of_kube: 0.4,
            of_floor: Some(2.5),
        },
        Case {
            name: format!("admission {label}, refused"),
            door: WebhookEndpoint::Mutate,
            body: review(&frozen, &running),
            judged,
            of_kube: 0.3,
            of_floor: None,
        },
        Case {
            name: format!("admission {label}, no-op"),
            door: WebhookEndpoint::Mutate,
            body: review(&labelled, &old),
            judged,
            of_kube: 0.3,
            of_floor: None,
        },
    ]
}

/// A DataPlane as an API server sends it, its container with a flavor and many other variables.
fn data_plane(variables: usize, flavor: &str) -> Value {
    let mut env: Vec<Value> = (0..variables)
        .map(|i| match i % 8 {
            0 => json!({"name": format!("KONG_SETTING_{i:03}"), "valueFrom": {"secretKeyRef": {"name": "kong", "key": format!("setting-{i}")}}}),
            1 => json!({"name": format!("KONG_SETTING_{i:03}"), "value": format!("$(KONG_SETTING_{:03})/more", i - 1)}),
            _ => json!({"name": format!("KONG_SETTING_{i:03}"), "value": format!("0.0.0.0:{} reuseport backlog=16384", 8000 + i)}),
        })
        .collect();
    env.insert(variables / 2, json!({"name": "KONG_ROUTER_FLAVOR", "value": flavor}));
    let sidecar =
        json!({"name": "logs", "image": "registry.example/fluent-bit:3.1", "env": env[..variables / 4]});
    let proxy = json!({
        "name": "proxy", "image": "kong:3.9", "env": env,
        "readinessProbe": {"httpGet": {"path": "/status/ready", "port": 8100}, "periodSeconds": 5},
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "2Gi"}},
        "volumeMounts": [{"name": "tls", "mountPath": "/var/tls", "readOnly": true}],
    });
    json!({
        "apiVersion": kong::API_VERSION, "kind": "DataPlane",
        "metadata": {
            "name": "edge", "namespace": "team", "uid": "0a1b2c3d-1111-4222-8333-444455556666",
            "resourceVersion": "123456", "generation": 4, "creationTimestamp": "2026-01-02T03:00:00Z",
        },
        "spec": {"deployment": {
            "replicas": 3,
            "podTemplateSpec": {
                "metadata": {"labels": {"app": "edge"}},
                "spec": {"containers": [sidecar, proxy], "volumes": [{"name": "tls", "secret": {"secretName": "tls"}}]},
            },
        }},
        "status": {"replicas": 3, "readyReplicas": 3, "service": "edge"},
    })
}

/// The object of a review as our own mutation makes it: with its stamp.
fn stamped(review: &[u8]) -> Value {
    let config =
        Config { controller_user: meta::CONTROLLER_USER.to_owned(), freeze: Freeze::Strict, docs: None };
    let Ok(AdmissionAnswer::Done(reply)) = answer(
        &kinds::guarded(interlock::kinds::all()),
        WebhookEndpoint::Mutate,
        review,
        &StaticLister::of(interlock::kinds::all()),
        &config,
        CacheWait::Exhausted,
        Some(Timestamp::UNIX_EPOCH),
    ) else {
        panic!("a DataPlane is not mutated");
    };
    let answer: Value = serde_json::from_slice(&reply.body).expect("an answer is JSON");
    let mut review: Value = serde_json::from_slice(review).expect("a review is JSON");
    let mut object = review["request"]["object"].take();
    if let Some(patch) = answer["response"]["patch"].as_str() {
        let patch: json_patch::Patch =
            serde_json::from_slice(&STANDARD.decode(patch).expect("base64")).expect("a patch");
        json_patch::patch(&mut object, &patch).expect("the patch fits");
    }
    object
}

/// What is judged of a gateway: its flavor, or something else that is changed.
fn gateway_cases() -> Vec<Case> {
    let update = |object: &Value, old: &Value| {
        let mut review: Value = serde_json::from_slice(&review(object, old)).expect("a review is JSON");
        for field in ["kind", "requestKind"] {
            review["request"][field] =
                json!({"group": kong::GROUP, "version": kong::VERSION, "kind": "DataPlane"});
        }
        for field in ["resource", "requestResource"] {
            review["request"][field] =
                json!({"group": kong::GROUP, "version": kong::VERSION, "resource": "dataplanes"});
        }
        review["request"]["name"] = json!("edge");
        review.to_string().into_bytes()
    };
    let variables = (1..)
        .find(|n| {
            let object = data_plane(*n, "expressions");
            update(&object, &object).len() >= 30_000
        })
        .expect("more variables make a longer review");
    let plain = data_plane(variables, "expressions");
    let old = stamped(&update(&plain, &plain));
    let written = |change: &dyn Fn(&mut Value)| {
        let mut object = old.clone();
        change(&mut object["spec"]["deployment"]);
        update(&object, &old)
    };
    let scaled = written(&|deployment| deployment["replicas"] = json!(4));
    let broken = written(&|deployment| {
        *deployment = data_plane(variables, "traditional")["spec"]["deployment"].take();
    });
    let case = |name: &str, door, body| Case {
        name: format!("DataPlane 30 KB, {name}"),
        door,
        body,
        judged: false,
        of_kube: 1.0,
        of_floor: None,
    };
    let final_of = |review: &[u8]| update(&stamped(review), &old);
    vec![
        case("stamped", WebhookEndpoint::Mutate, scaled.clone()),
        case("flavor kept", WebhookEndpoint::Validate, final_of(&scaled)),
        case("flavor refused", WebhookEndpoint::Validate, final_of(&broken)),
    ]
}

/// Time of one call, in nanoseconds, over about [`SAMPLE`].
fn sample(calls: u32, mut call: impl FnMut() -> usize) -> f64 {
    let start = Instant::now();
    for _ in 0..calls {
        black_box(call());
    }
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}

fn calls_for(mut call: impl FnMut() -> usize) -> u32 {
    let one = sample(20, &mut call).max(1.0);
    (SAMPLE.as_nanos() as f64 / one).max(1.0) as u32
}

/// The fastest tenth: what else the machine does only adds.
fn undisturbed(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 10]
}

fn row(case: &Case, ours: f64, other: f64, of: &str, goal: f64) -> Row {
    let goal = case.judged.then_some(Goal::AtMost(goal));
    Row::beside(&format!("{}, us", case.name), ours / 1e3, (of, other / 1e3), ours / other, goal)
}

fn run(case: &Case, view: &StaticLister, config: &Config) -> Vec<Row> {
    let ours = || match answer(
        &kinds::guarded(interlock::kinds::all()),
        case.door,
        &case.body,
        view,
        config,
        CacheWait::Exhausted,
        Some(Timestamp::UNIX_EPOCH),
    ) {
        Ok(AdmissionAnswer::Done(reply)) => reply.body.len(),
        _ => panic!("{}: no answer", case.name),
    };
    let told = match answer(
        &kinds::guarded(interlock::kinds::all()),
        case.door,
        &case.body,
        view,
        config,
        CacheWait::Exhausted,
        Some(Timestamp::UNIX_EPOCH),
    ) {
        Ok(AdmissionAnswer::Done(reply)) => {
            serde_json::from_slice::<Value>(&reply.body).expect("an answer is JSON")
        }
        _ => panic!("{}: no answer", case.name),
    };
    let response = &told["response"];
    let given = match response["status"]["message"].as_str() {
        Some(text) => Err(text.to_owned()),
        None => Ok(response["patch"].as_str().map_or_else(json_patch::Patch::default, |patch| {
            serde_json::from_slice(&STANDARD.decode(patch).expect("base64")).expect("a patch")
        })),
    };
    let theirs = || kube(&case.body, &given);
    let least = || floor(&case.body);
    assert!(theirs() > 0 && least() > 0, "{}: the others cannot read the review", case.name);
    let calls = [calls_for(ours), calls_for(theirs), calls_for(least)];
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..SAMPLES {
        times[0].push(sample(calls[0], ours));
        times[1].push(sample(calls[1], theirs));
        times[2].push(sample(calls[2], least));
    }
    let [ours, theirs, least] = times.map(undisturbed);
    let mut rows = vec![row(case, ours, theirs, "kube AdmissionReview<DynamicObject>", case.of_kube)];
    rows.extend(case.of_floor.map(|goal| row(case, ours, least, "uid-only parse", goal)));
    rows
}

fn main() {
    let config =
        Config { controller_user: meta::CONTROLLER_USER.to_owned(), freeze: Freeze::Strict, docs: None };
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let mut rows = Vec::new();
    for (label, target) in [("2 KB", 2_000), (JUDGED, 9_000), ("114 KB", 114_000)] {
        let parameters = sized(target);
        let mut view = StaticLister::of(interlock::kinds::all());
        view.add(&version(&parameters), "team").expect("a well-formed OperatorVersion");
        for case in cases(label, &parameters).into_iter().filter(|case| case.name.contains(&only)) {
            println!("{}: {} bytes", case.name, case.body.len());
            rows.extend(run(&case, &view, &config));
        }
    }
    let view = StaticLister::of(interlock::kinds::all());
    for case in gateway_cases().into_iter().filter(|case| case.name.contains(&only)) {
        println!("{}: {} bytes", case.name, case.body.len());
        rows.extend(run(&case, &view, &config));
    }
    results::report(&rows);
}
