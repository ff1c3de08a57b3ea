//! A definition that is deleted with our finalizers on its objects.

use std::time::{Duration, Instant};

use interlock_core::api::meta;
use rstest::rstest;
use serde_json::json;

use super::world::{CAP, World};
use crate::support::instances::condition;
use crate::support::{announce, wait_until};

const INSTANCES: usize = 5;
/// What the issue asks for.
const IN_TIME: Duration = Duration::from_secs(60);

/// The cleanup runs, or its package goes first, or it never ends, or the capability is switched
/// off: the definition goes away.
#[rstest]
#[case::with_its_package("plain", &["instances"], "auto")]
#[case::all_at_once("plain", &["operatorversions", "operators", "instances"], "auto")]
#[case::with_a_cleanup_that_never_ends("endless", &["instances"], "auto")]
#[case::while_switched_off("plain", &["instances"], "off")]
fn a_definition_goes_away_in_time(#[case] kind: &str, #[case] definitions: &[&str], #[case] mode: &str) {
    let world = World::new();
    if !world.cluster.has_workloads() {
        return;
    }
    let ns = world.cluster.namespace("going");
    let user = ns.user("alice");
    world.create_package(&ns);
    let names: Vec<String> = (0..INSTANCES).map(|i| format!("demo-{i}")).collect();
    for name in &names {
        world.create_instance(&ns, name, kind);
    }
    for name in &names {
        let found = crate::support::instances::await_run(&user, name, "deploy", "");
        assert_eq!(found["metadata"]["finalizers"][0], "kudo.dev.instance.cleanup");
    }
    if mode == "off" {
        switch_off(&world);
    }
    let admin = world.cluster.admin();
    definitions.iter().for_each(|plural| await_listed(&world, plural));
    let began = Instant::now();
    for plural in definitions {
        admin.delete(&World::path(plural)).ok();
    }
    wait_until("the definitions are gone", CAP, || {
        let left = definitions.iter().map(|plural| (plural, admin.read(&World::path(plural))));
        let left: Vec<_> = left.filter(|(_, found)| found.code != 404).collect();
        let why = |found: &crate::support::client::Answer| found.body["status"]["conditions"].to_string();
        let left = left.iter().map(|(plural, found)| format!("{plural} is there: {}", why(found)));
        let left: Vec<String> = left.collect();
        if left.is_empty() { Ok(()) } else { Err(left.join("; ")) }
    });
    let took = began.elapsed();
    announce(&format!("{INSTANCES} Instances ({kind}), {definitions:?}: gone after {took:?}"));
    assert!(took < IN_TIME, "{took:?}");
    if mode == "off" {
        return world.await_state("instances", "Disabled");
    }
    world.await_state("instances", "Waiting");
    world.assert_same_process();
}

/// Waits until the API server lists a kind. Before the first request for the kind, its definition, once deleted,
/// can stay for the five minutes of a resync with `could not list instances: storage is (re)initializing`:
/// the API server's finalizer meets the conflict of its own status write, and drops the key. Seen here, and
/// in <https://github.com/operator-framework/operator-controller/issues/1437>.
fn await_listed(world: &World, plural: &str) {
    let path = format!("/apis/{}/{plural}", meta::KUDO_API_VERSION);
    wait_until(&format!("{plural} are listed"), CAP, || {
        let answer = world.cluster.admin().read(&path);
        if answer.code == 200 { Ok(()) } else { Err(answer.to_string()) }
    });
}

/// Says what that means; a new process, which has not read any Instance, goes on with it.
fn switch_off(world: &World) {
    world.set(r#"{capabilities: {instances: {mode: "off"}}}"#);
    let path = "/apis/interlock.dev/v1alpha1/interlocks/default";
    wait_until("the settings say what is held", CAP, || {
        let found = world.cluster.admin().read(path).ok();
        let ready = condition(&found, "InstancesReady");
        let counted = format!("of {INSTANCES} Instances those with the finalizer");
        let says = ready["message"].as_str().is_some_and(|message| message.contains(&counted));
        if says { Ok(()) } else { Err(found["status"].to_string()) }
    });
    world.interlock.kill();
    world.interlock.start();
    world.await_state("instances", "Disabled");
}

/// The packages lose their rights while an Instance is there: its cleanup cannot go on, and its
/// deletion ends all the same, and says what is left.
#[test]
fn a_deletion_ends_though_its_cleanup_is_forbidden() {
    let world = World::new();
    let ns = world.cluster.namespace("forbidden");
    let (user, admin) = (ns.user("alice"), world.cluster.admin());
    world.create_package(&ns);
    world.create_instance(&ns, "demo", "plain");
    crate::support::instances::await_run(&user, "demo", "deploy", "");
    let limited = json!({"metadata": {"annotations": {meta::CLEANUP_PATIENCE: "0s"}}});
    user.merge_patch(&ns.path(meta::KUDO_API_VERSION, "instances", "demo"), &limited).ok();

    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    admin.delete(&format!("{bindings}/interlock-packages-cluster-admin")).ok();
    wait_until("the packages have no rights", CAP, || {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": "system:serviceaccount:interlock-system:interlock-packages",
                "resourceAttributes": {"namespace": ns.name(), "verb": "get", "resource": "configmaps"},
            },
        });
        let answer = admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).ok();
        if answer["status"]["allowed"] == false { Ok(()) } else { Err(format!("{answer:#}")) }
    });

    user.kubectl(&["delete", "instance", "demo", "--timeout=90s"]).ok();
    let said = wait_until("an Event says what is left", CAP, || {
        let list = user.read(&ns.path("events.k8s.io/v1", "events", "")).ok();
        let all = list["items"].as_array().cloned().unwrap_or_default();
        let found = all.iter().find(|e| e["reason"] == "CleanupSkipped" && e["type"] == "Warning");
        found.and_then(|event| event["note"].as_str()).map(str::to_owned).ok_or_else(|| format!("{all:#?}"))
    });
    assert!(said.contains("cleanup failed 3 times"), "{said}");
    assert!(said.contains("step all.forget") && said.contains("is forbidden"), "{said}");
    world.assert_same_process();
}
