//! What has brought others down: an API of somebody else's that does not answer, and an object
//! that cannot be read.

use serde_json::{Value, json};

use super::world::{CAP, World, definition};
use crate::support::instances::condition;
use crate::support::{instances, wait_until};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Discovery is broken in part, for all who ask: nothing of ours is taken for absent.
#[test]
fn an_api_server_of_others_that_is_dead_changes_nothing() {
    let world = World::new();
    world.install("envoyfilters");
    world.grant_filters();
    let ns = world.cluster.namespace("dead");
    let user = ns.user("alice");
    world.create_package(&ns);
    world.create_instance(&ns, "before", "filtered");
    instances::await_run(&user, "before", "deploy", "");

    let admin = world.cluster.admin();
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let dead = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.dead.example.com"},
        "spec": {
            "group": "dead.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
            "service": {"namespace": "default", "name": "nobody"}, "insecureSkipTLSVerify": true,
        },
    });
    admin.post(services, &dead).ok();
    wait_until("the API server knows that nobody answers", CAP, || {
        let found = admin.read(&format!("{services}/v1.dead.example.com")).ok();
        let available = condition(&found, "Available");
        if available["status"] == "False" { Ok(()) } else { Err(format!("{found:#}")) }
    });
    let said = admin.kubectl(&["get", "--raw", "/apis/dead.example.com/v1"]).refused();
    assert!(said.contains("ServiceUnavailable"), "{said}");

    let guards = |world: &World, name: &str| {
        assert_eq!(world.state("instances"), "Running");
        let (code, report) = world.interlock.ops("/readyz?verbose").expect("an answer");
        assert_eq!(code, 200, "{report}");
        world.create_instance(&ns, name, "filtered");
        let run = instances::run_of(&instances::await_run(&user, name, "deploy", ""), "deploy");
        let path = ns.path("kudo.dev/v1beta1", "instances", name);
        let frozen = json!({"metadata": {"annotations": {"interlock.dev/last-applied-spec": "forged"}}});
        let kept = user.merge_patch(&path, &frozen).ok();
        assert_ne!(kept["metadata"]["annotations"]["interlock.dev/last-applied-spec"], "forged");
        assert!(!run.is_empty());
        assert!(user.get("envoyfilters.networking.istio.io", &format!("{name}-filter")).is_some());
    };
    guards(&world, "beside");
    assert!(user.get("envoyfilters.networking.istio.io", "before-filter").is_some(), "it stays");
    world.assert_same_process();

    // So it does for a process that finds it dead.
    assert_eq!(world.interlock.terminate(), Some(0));
    world.interlock.start();
    world.interlock.await_ready();
    world.await_state("instances", "Running");
    guards(&world, "after");
    user.kubectl(&["delete", "instance", "before", "--timeout=90s"]).ok();
    assert!(user.get("envoyfilters.networking.istio.io", "before-filter").is_none(), "its plan took it away");
    admin.delete(&format!("{services}/v1.dead.example.com")).ok();
}

/// A definition whose schema says nothing of `spec` lets through what no one can read, and nobody
/// guards: that Instance is named in the log, the others go on, and it does when it is mended.
#[test]
fn an_instance_that_cannot_be_read_is_named_and_holds_up_no_other() {
    let world = World::without_definitions();
    let admin = world.cluster.admin();
    let mut lax = definition("instances");
    for version in lax["spec"]["versions"].as_array_mut().expect("versions") {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"] =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    }
    admin.post(DEFINITIONS, &lax).ok();
    world.install("operators");
    world.install("operatorversions");
    world.await_state("instances", "Running");
    for kind in [
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "validatingadmissionpolicybindings",
        "validatingadmissionpolicies",
    ] {
        admin.kubectl(&["delete", kind, "-l", "app.kubernetes.io/name=interlock"]).ok();
    }
    let ns = world.cluster.namespace("unreadable");
    let user = ns.user("alice");
    world.create_package(&ns);
    let path = ns.path("kudo.dev/v1beta1", "instances", "broken");
    let broken = json!({
        "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": {"name": "broken"},
        "spec": {"operatorVersion": {"name": "filter-0.1.0"}, "parameters": "VALUE=first"},
    });
    wait_until("it is let through", CAP, || {
        let answer = admin.post(&ns.path("kudo.dev/v1beta1", "instances", ""), &broken);
        if matches!(answer.code, 201 | 409) { Ok(()) } else { Err(answer.to_string()) }
    });
    let named = || -> usize {
        let name = format!("Instance {}/broken cannot be read", ns.name());
        world.interlock.log().lines().filter(|line| line.contains(&name)).count()
    };
    let await_named = |before: usize| {
        wait_until("the log names it", CAP, || {
            let found = named();
            if found > before { Ok(found) } else { Err(world.interlock.log()) }
        })
    };
    await_named(0);
    world.create_instance(&ns, "beside", "plain");
    instances::await_run(&user, "beside", "deploy", "");
    world.assert_same_process();

    // It is in the list that a process begins with.
    assert_eq!(world.interlock.terminate(), Some(0));
    let before = named();
    world.interlock.start();
    world.interlock.await_ready();
    await_named(before);
    world.create_instance(&ns, "after", "plain");
    instances::await_run(&user, "after", "deploy", "");
    assert_eq!(user.read(&path).ok()["spec"]["parameters"], Value::from("VALUE=first"), "it is left alone");

    user.merge_patch(&path, &json!({"spec": {"parameters": {"VALUE": "mended"}}})).ok();
    instances::await_run(&user, "broken", "deploy", "");
    assert_eq!(user.get("configmap", "broken-config").expect("it was made")["data"]["value"], "mended");
}

/// An object that is nested deeper than is read stops no kind silently: that it is not seen is said,
/// and it is seen again when the object has gone.
#[test]
fn an_object_that_is_nested_too_deeply_is_told() {
    let world = World::new();
    let admin = world.cluster.admin();
    let mut kind = definition("controlplanes");
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    for version in kind["spec"]["versions"].as_array_mut().expect("versions") {
        version["schema"] = json!({ "openAPIV3Schema": anything });
    }
    admin.post(DEFINITIONS, &kind).ok();
    let seen = |watch_state: &str, after: usize| {
        wait_until(&format!("ControlPlanes are seen as {watch_state}"), CAP, || {
            let found = world.sights("ControlPlane", after);
            if found.last().is_some_and(|last| last == watch_state) {
                Ok(())
            } else {
                Err(format!("{found:?}"))
            }
        });
    };
    seen("Synced", 0);

    let ns = world.cluster.namespace("deep");
    let (deep, group) = ("[".repeat(200) + &"]".repeat(200), &kind["spec"]["group"]);
    let version = &kind["spec"]["versions"][0]["name"];
    let api = format!("{}/{}", group.as_str().expect("a group"), version.as_str().expect("a version"));
    let object = format!(
        r#"{{"apiVersion": "{api}", "kind": "ControlPlane", "metadata": {{"name": "deep", "namespace": "{}"}}, "spec": {{"deep": {deep}}}}}"#,
        ns.name()
    );
    let before = world.logged();
    admin.kubectl_in(&["create", "-f", "-"], &object).ok();
    seen("Broken", before);
    assert!(world.interlock.log().contains("nested too deeply"), "{}", world.interlock.log());
    assert_eq!(world.state("instances"), "Running", "no other kind is touched");

    let before = world.logged();
    admin.kubectl(&["delete", "controlplane", "deep", "-n", ns.name()]).ok();
    seen("Synced", before);
    world.assert_same_process();
}
