//! What admission answers in each state of the capability, over the wire.

use std::time::{Duration, Instant};

use interlock_core::api::meta;
use serde_json::{Value, json};

use super::changes::{path_of_role, without};
use super::metric;
use super::world::{CAP, World};
use crate::support::gate::Gate;
use crate::support::{Client, Cluster, Namespace, Output, announce, instances, wait_until};

const INTERLOCKS: &str = "/apis/interlock.dev/v1alpha1/interlocks";

/// An Instance `demo` that has been deployed.
fn deployed(world: &World, ns: &Namespace<'_>) -> Client {
    let user = ns.user("alice");
    world.create_package(ns);
    world.create_instance(ns, "demo", "plain");
    instances::await_run(&user, "demo", "deploy", "");
    user
}

/// What becomes of an edit; nothing is stored.
fn tried(user: &Client, name: &str, spec: &Value) -> Output {
    let patch = json!({"spec": spec}).to_string();
    user.kubectl(&["patch", "instance", name, "--dry-run=server", "--type=merge", "-p", &patch])
}

/// An edit that only the package shows to be wrong.
fn unknown_parameter() -> Value {
    json!({"parameters": {"NOPE": "x"}})
}

/// An edit that the object alone shows to be wrong.
fn forged_run() -> Value {
    json!({"planExecution": {"planName": "deploy", "uid": "a", "status": "COMPLETE"}})
}

/// An Instance whose package cannot be seen is made as any other is: scheduled, with our finalizer and
/// a stamp, whatever it carries along. So is an edit, which is left to the controller.
fn completed_without_its_package(user: &Client, ns: &Namespace<'_>) {
    let stamp = "interlock.dev/last-applied-spec";
    let found = user.read(&ns.path(meta::KUDO_API_VERSION, "instances", "demo")).ok();
    let copy = json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance",
        "metadata": {"name": "cold", "annotations": {stamp: "forged", meta::HISTORY: "[]"}},
        "spec": {
            "operatorVersion": found["spec"]["operatorVersion"],
            "planExecution": {"planName": "backup", "uid": "mine", "status": "COMPLETE"},
        },
    });
    let path = ns.path(meta::KUDO_API_VERSION, "instances", "");
    let made = user.post(&path, &copy).ok();
    let execution = &made["spec"]["planExecution"];
    assert_eq!((&execution["planName"], &execution["status"]), (&json!("deploy"), &json!("NEVER_RUN")));
    assert_ne!(execution["uid"], "mine");
    assert_eq!(made["metadata"]["finalizers"], json!([meta::FINALIZER]));
    let annotations = &made["metadata"]["annotations"];
    assert!(annotations[stamp].as_str().is_some_and(|text| text.starts_with("{\"v\":1,")), "{made:#}");
    assert_eq!(annotations[meta::HISTORY], Value::Null);

    let edit = json!({
        "metadata": {"annotations": {stamp: "forged"}},
        "spec": {"parameters": {"VALUE": "other"}},
    });
    let path = ns.path(meta::KUDO_API_VERSION, "instances", "demo");
    let edited = user.merge_patch(&format!("{path}?dryRun=All"), &edit).ok();
    assert_eq!(edited["metadata"]["annotations"][stamp], found["metadata"]["annotations"][stamp]);
}

/// Waits until an edit is admitted with this among the warnings.
#[track_caller]
fn await_warning(user: &Client, spec: &Value, warning: &str) {
    wait_until(&format!("an edit is admitted with: {warning}"), CAP, || {
        let out = tried(user, "demo", spec);
        if out.code == 0 && out.stderr.contains(warning) { Ok(()) } else { Err(out.to_string()) }
    });
}

#[track_caller]
fn await_refusal(user: &Client, name: &str, spec: &Value) {
    wait_until("an edit is refused", CAP, || {
        let out = tried(user, name, spec);
        let refused = out.code != 0 && !out.stderr.contains("failed calling webhook");
        if refused { Ok(()) } else { Err(out.to_string()) }
    });
}

/// Switched off or without its kinds: everything is admitted, and the user is told. Without a
/// right: what the object alone shows to be wrong is refused, the rest is admitted, and the user
/// is told. While it drains: everything is judged.
#[test]
fn a_capability_that_does_not_run_says_so_to_whoever_writes() {
    let world = World::new();
    let ns = world.cluster.namespace("answers");
    let user = deployed(&world, &ns);
    let admin = world.cluster.admin();
    await_refusal(&user, "demo", &unknown_parameter());

    world.set(r#"{capabilities: {instances: {mode: "off"}}}"#);
    world.await_state("instances", "Disabled");
    let unchecked = "Warning: Interlock does not check this now: instances: ";
    await_warning(&user, &unknown_parameter(), &format!("{unchecked}switched off"));
    admin.delete(&format!("{INTERLOCKS}/default")).ok();
    world.await_state("instances", "Running");
    await_refusal(&user, "demo", &unknown_parameter());

    world.remove("operatorversions");
    world.await_state("instances", "Waiting");
    let missing = "CustomResourceDefinition operatorversions.kudo.dev is not installed";
    await_warning(&user, &unknown_parameter(), &format!("{unchecked}{missing}"));
    world.install("operatorversions");
    world.await_state("instances", "Running");
    world.create_package(&ns);
    await_refusal(&user, "demo", &unknown_parameter());

    // An open watch is not authorised again; the list of a new process is.
    let role = path_of_role("operatorversions");
    let rules = admin.read(&role).ok()["rules"].clone();
    world.interlock.kill();
    admin.merge_patch(&role, &json!({"rules": without(&rules, "operatorversions")})).ok();
    world.interlock.start();
    world.await_state("instances", "Forbidden");
    let alone = "Warning: Interlock checks this without other objects: instances: ";
    await_warning(&user, &unknown_parameter(), &format!("{alone}this process may not list operatorversions"));
    await_refusal(&user, "demo", &forged_run());
    completed_without_its_package(&user, &ns);
    admin.merge_patch(&role, &json!({"rules": rules})).ok();
    world.await_state("instances", "Running");
    instances::await_run(&user, "cold", "deploy", "");
    await_refusal(&user, "demo", &unknown_parameter());

    if !world.cluster.has_workloads() {
        return;
    }
    world.create_instance(&ns, "lingering", "endless");
    instances::await_run(&user, "lingering", "deploy", "");
    admin.delete(&World::path("instances")).ok();
    world.await_state("instances", "Draining");
    await_refusal(&user, "lingering", &json!({"parameters": {"VALUE": "other"}}));
}

/// While it starts, the API server is asked to call again, for eight seconds at most; when it
/// cannot read for long, it decides by what the object holds.
#[test]
fn a_capability_that_starts_is_waited_for() {
    let cluster = Cluster::own(&["--audit"]);
    let gate = Gate::start(&cluster, &cluster.user("interlock", &[]));
    let world = World::on(cluster, &[&gate.flag()]);
    let ns = world.cluster.namespace("answers");
    let user = deployed(&world, &ns);

    be_patient(&ns.admin());
    start_behind(&world, &gate, "v1beta1/instances?");
    let path = format!("{}?dryRun=All", ns.path("kudo.dev/v1beta1", "instances", "demo"));
    let writer = ns.admin();
    let write = std::thread::spawn(move || {
        writer.merge_patch(&path, &json!({"spec": {"parameters": {"VALUE": "other"}}}))
    });
    wait_until("the webhook asks to be called again", CAP, || {
        let told = metric(&world.interlock, "interlock_refused_total{", &["not_in_sync"]);
        if told.is_some_and(|n| n > 0.0) { Ok(()) } else { Err("not yet".into()) }
    });
    gate.open();
    write.join().expect("an answer").ok();
    world.await_state("instances", "Running");

    start_behind(&world, &gate, "v1beta1/instances?");
    let (began, alone) =
        (Instant::now(), "Warning: Interlock checks this without other objects: instances: ");
    await_warning(&user, &unknown_parameter(), &format!("{alone}its kinds are being listed"));
    announce(&format!("a capability that does not come to run decides alone after {:?}", began.elapsed()));
    await_refusal(&user, "demo", &forged_run());
    gate.open();
    world.await_state("instances", "Running");
    await_refusal(&user, "demo", &unknown_parameter());

    gate.cut("v1beta1/operatorversions?");
    world.await_state("instances", "Degraded");
    await_warning(&user, &unknown_parameter(), &format!("{alone}operatorversions.kudo.dev: "));
    await_refusal(&user, "demo", &forged_run());
    gate.open();
    world.await_state("instances", "Running");
    await_refusal(&user, "demo", &unknown_parameter());
}

/// A part that is switched off does not run for the moment that it takes to read the settings.
#[test]
fn nothing_runs_before_the_settings_are_known() {
    let cluster = Cluster::own(&["--audit"]);
    let gate = Gate::start(&cluster, &cluster.user("interlock", &[]));
    let world = World::on(cluster, &[&gate.flag()]);
    world.set(r#"{capabilities: {instances: {mode: "off"}}}"#);
    world.await_state("instances", "Disabled");
    let before = world.interlock.log().len();
    start_behind(&world, &gate, "v1alpha1/interlocks?");
    world.await_state("instances", "Starting");
    gate.open();
    world.await_state("instances", "Disabled");
    let log = world.interlock.log().split_off(before);
    let ran =
        log.lines().find(|line| line.contains("capability=\"instances\"") && line.contains("to=\"Running\""));
    assert_eq!(ran, None, "it ran for a moment");
    assert!(log.contains("capability state changed"), "{log}");
    let listed = log.contains("Kind=Instance ");
    assert!(!listed, "it was not even read: {log}");
}

/// Has the API server call the webhooks again for longer than the process keeps a write waiting: within the five seconds
/// that it is given by default, a busy machine may not come to run.
fn be_patient(admin: &Client) {
    for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}/interlock");
        let mut webhooks = admin.read(&path).ok()["webhooks"].clone();
        for webhook in webhooks.as_array_mut().expect("webhooks") {
            webhook["timeoutSeconds"] = json!(30);
        }
        admin.merge_patch(&path, &json!({"webhooks": webhooks})).ok();
    }
}

/// Starts the process anew while requests for a path wait.
fn start_behind(world: &World, gate: &Gate, path: &'static str) {
    world.interlock.kill();
    gate.close(path);
    world.interlock.start();
    wait_until("a request waits at the gate", Duration::from_secs(90), || {
        if gate.waiting() > 0 { Ok(()) } else { Err("none".to_owned()) }
    });
    // Before, a connection ends in its handshake, and the API server asks no more. A kubelet sends nobody there.
    wait_until("it has its certificate", CAP, || {
        let answer = world.interlock.ops("/readyz/certificate");
        if answer.as_ref().is_some_and(|(code, _)| *code == 200) {
            Ok(())
        } else {
            Err(format!("{answer:?}"))
        }
    });
}
