//! Bodies as large as the API server lets through, judged within a bound of time: what is linear
//! takes a second or two of a debug build, what looks at everything for each thing takes minutes.

use std::time::{Duration, Instant};

use interlock_core::admission::{AdmissionAnswer, CacheWait, Config, Freeze, WebhookEndpoint, answer};
use interlock_core::kinds;
use interlock_core::kinds::static_lister::StaticLister;
use interlock_kong::data_plane::rollout::children::{DataPlaneOwner, deployment};
use interlock_kong::data_plane::rollout::drift::{differs, owns_all};
use interlock_kong::data_plane::rollout::side::{Colour, SideState};
use interlock_kudo::engine::validate;
use serde_json::{Value, json};

/// Enough for a machine that does other things beside; far from what the square of it takes.
const BOUND: Duration = Duration::from_secs(20);

/// What is answered to a body, soon enough.
fn within(what: &str, packages: &[Value], body: &Value) -> Value {
    let mut view = StaticLister::of(interlock::kinds::all());
    for package in packages {
        view.add(package, "team").unwrap();
    }
    let config = Config { controller_user: String::new(), freeze: Freeze::Strict, docs: None };
    let body = body.to_string();
    let start = Instant::now();
    let answer = answer(
        &kinds::guarded(interlock::kinds::all()),
        WebhookEndpoint::Mutate,
        body.as_bytes(),
        &view,
        &config,
        CacheWait::Exhausted,
        None,
    )
    .unwrap();
    let took = start.elapsed();
    println!("{what}: {} bytes in {took:?}", body.len());
    assert!(took < BOUND, "{what}: {} bytes took {took:?}", body.len());
    let AdmissionAnswer::Done(reply) = answer else { panic!("{what}: it waits") };
    serde_json::from_slice::<Value>(&reply.body).unwrap()["response"].clone()
}

fn body(kind: &str, spec: Value, old: Option<Value>) -> Value {
    let kind = json!({"group": "kudo.dev", "version": "v1beta1", "kind": kind});
    // One that is stored has run.
    let ran = json!({"planStatus": {"deploy": {"name": "deploy", "status": "COMPLETE", "uid": "r"}}});
    let status = if old.is_some() { ran } else { Value::Null };
    let object = |spec: Value| json!({"metadata": {"name": "large", "namespace": "team", "uid": "u"}, "spec": spec, "status": status});
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "r", "kind": kind, "requestKind": kind, "name": "large", "namespace": "team",
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "userInfo": {"username": "alice", "groups": ["system:authenticated"]},
            "object": object(spec), "oldObject": old.map(object),
        },
    })
}

fn plan(tasks: Vec<String>) -> Value {
    json!({"deploy": {"phases": [{"name": "p", "steps": [{"name": "s", "tasks": tasks}]}]}})
}

fn tasks(count: usize) -> Vec<Value> {
    (0..count).map(|i| json!({"name": format!("t{i}"), "kind": "Dummy"})).collect()
}

#[test]
fn many_references_to_many_tasks() {
    let count = 40_000;
    let named = (0..count).rev().map(|i| format!("t{i}")).collect();
    let spec = json!({"tasks": tasks(count), "plans": plan(named)});
    let answer = within("references", &[], &body("OperatorVersion", spec, None));
    assert_eq!(answer["allowed"], true, "{answer:#}");
}

#[test]
fn many_toggles_of_many_parameters() {
    let count = 15_000;
    let toggle = |i: usize| json!({"name": format!("t{i}"), "kind": "Toggle", "spec": {"resources": ["a"], "parameter": format!("p{i}")}});
    let tasks: Vec<Value> = (0..count).map(toggle).collect();
    let parameters: Vec<Value> = (0..count).map(|i| json!({"name": format!("p{i}")})).collect();
    let spec = json!({"tasks": tasks, "parameters": parameters, "templates": {"a": ""}});
    let answer = within("toggles", &[], &body("OperatorVersion", spec, None));
    assert_eq!(answer["allowed"], true, "{answer:#}");
}

/// All of them wrong, before and after: each is told from the others.
#[test]
fn many_references_to_nothing() {
    let count = 40_000;
    let spec = |from: usize| json!({"plans": plan((from..from + count).map(|i| format!("t{i}")).collect())});
    let answer = within("problems", &[], &body("OperatorVersion", spec(1), Some(spec(0))));
    assert_eq!(answer["allowed"], false);
    assert_eq!(answer["status"]["details"]["causes"].as_array().map(Vec::len), Some(1));
    let answer = within("problems of a creation", &[], &body("OperatorVersion", spec(0), None));
    assert_eq!(answer["status"]["details"]["causes"].as_array().map(Vec::len), Some(16));
    let message = answer["status"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("and 39999 more"), "{message}");
}

/// One task with many keys, named again and again.
#[test]
fn many_references_to_many_pipe_keys() {
    let keys: Vec<Value> =
        (0..10_000).map(|i| json!({"file": "f", "kind": "Secret", "key": format!("k{i}")})).collect();
    let pipe = json!({"name": "t", "kind": "Pipe", "spec": {"pod": "a", "pipe": keys}});
    let named = vec!["t".to_owned(); 100_000];
    let spec = json!({"tasks": [pipe], "templates": {"a": ""}, "plans": plan(named)});
    let answer = within("pipe keys", &[], &body("OperatorVersion", spec, None));
    assert_eq!(answer["allowed"], false);
}

/// One task with many keys, named by many plans.
#[test]
fn many_plans_of_many_pipe_keys() {
    let keys: Vec<Value> =
        (0..30_000).map(|i| json!({"file": "f", "kind": "Secret", "key": format!("k{i}")})).collect();
    let pipe = json!({"name": "t", "kind": "Pipe", "spec": {"pod": "a", "pipe": keys}});
    let phases = json!({"phases": [{"name": "p", "steps": [{"name": "s", "tasks": ["t"]}]}]});
    let plans: serde_json::Map<String, Value> =
        (0..15_000).map(|i| (format!("p{i}"), phases.clone())).collect();
    let spec = json!({"tasks": [pipe], "templates": {"a": ""}, "plans": plans});
    let answer = within("plans", &[], &body("OperatorVersion", spec.clone(), None));
    assert_eq!(answer["allowed"], true, "KUDO takes it: {answer:#}");
    let found = validate::findings(&serde_json::from_value(spec).unwrap());
    let said: Vec<String> = found.warnings.first.iter().map(ToString::to_string).collect();
    assert!(said.iter().any(|said| said.contains("more than 1000000 keys of Pipe tasks")), "{said:?}");
}

#[test]
fn an_upgrade_that_changes_and_drops_many_parameters() {
    let count = 20_000;
    let spec = |version: &str, value: &str| {
        let parameters: serde_json::Map<String, Value> = (0..count)
            .flat_map(|i| [(format!("a{i}"), json!(value)), (format!("z{i}"), json!("same"))])
            .collect();
        json!({"operatorVersion": {"name": version}, "parameters": parameters})
    };
    let package = |name: &str, prefixes: &[&str]| {
        let named =
            |prefix: &&str| (0..count).map(|i| json!({"name": format!("{prefix}{i}")})).collect::<Vec<_>>();
        let parameters: Vec<Value> = prefixes.iter().flat_map(named).collect();
        json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "OperatorVersion", "metadata": {"name": name, "namespace": "team"},
            "spec": {"parameters": parameters, "plans": {"deploy": {"phases": []}}},
        })
    };
    let packages = [package("wide-1", &["a", "z"]), package("wide-2", &["a"])];
    let body = body("Instance", spec("wide-2", "after"), Some(spec("wide-1", "before")));
    let answer = within("parameters", &packages, &body);
    assert_eq!(answer["allowed"], true, "{answer:#}");
}

/// Every one of them is a default, and comes before the one that is given.
#[test]
fn a_creation_that_gets_many_defaults() {
    let immutable = |i: usize| json!({"name": format!("a{i:05}"), "immutable": true, "default": "x"});
    let mut parameters: Vec<Value> = (0..25_000).rev().map(immutable).collect();
    parameters.extend((0..20_000).map(|i| json!({"name": format!("z{i}")})));
    let package = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "OperatorVersion", "metadata": {"name": "wide", "namespace": "team"},
        "spec": {"parameters": parameters, "plans": {"deploy": {"phases": []}}},
    });
    let given: serde_json::Map<String, Value> = (0..20_000).map(|i| (format!("z{i}"), json!(""))).collect();
    let spec = json!({"operatorVersion": {"name": "wide"}, "parameters": given});
    let answer = within("defaults", &[package], &body("Instance", spec, None));
    assert_eq!(answer["allowed"], true, "{answer:#}");
}

/// The Deployment of a DataPlane is made, and compared with the one that is there.
#[test]
fn a_pod_template_with_many_elements() {
    let count = 40_000;
    let list = |element: fn(usize) -> Value| (1..=count).map(element).collect::<Vec<Value>>();
    let spec = json!({"deployment": {"podTemplateSpec": {"spec": {
        "containers": [{
            "name": "proxy", "image": "kong:3.9",
            "env": list(|i| json!({"name": format!("V{i}"), "value": "$(V1)"})),
            "ports": list(|i| json!({"name": format!("p{i}"), "containerPort": i})),
            "volumeMounts": list(|i| json!({"name": "v", "mountPath": format!("/{i}")})),
        }],
        "volumes": list(|i| json!({"name": format!("v{i}"), "emptyDir": {}})),
    }}}});
    let object = json!({"metadata": {"namespace": "team", "name": "large", "uid": "u"}});
    let start = Instant::now();
    let owner = DataPlaneOwner::of(&object, None).unwrap();
    let identity = owner.identity(Colour::Blue);
    let body = deployment(&owner, &spec, &identity, SideState::Live, Some(1), None).unwrap();
    let owned: serde_json::Map<String, Value> = (1..=count)
        .map(|i| (format!("k:{{\"name\":\"v{i}\"}}"), json!({".": {}, "f:name": {}, "f:emptyDir": {}})))
        .collect();
    let mut found = body.clone();
    found["metadata"]["managedFields"] = json!([{
        "manager": "m", "operation": "Apply",
        "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:volumes": owned}}}},
    }]);
    assert_eq!(differs(&body, &found), None);
    assert!(!owns_all(&found, &body, "m"));
    let took = start.elapsed();
    println!("pod template: {} bytes in {took:?}", body.to_string().len());
    assert!(took < BOUND, "{} bytes took {took:?}", body.to_string().len());
}
