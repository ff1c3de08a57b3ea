//! Instances that KUDO's manager made go to Interlock and back, while nothing of theirs is touched.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::manager::Manager;
use super::scenario::{Act, Scenario, own};
use crate::support::instances::{condition, run_of};
use crate::support::interlock::apply_installation;
use crate::support::{Client, Cluster, Interlock, Namespace, service_path, wait_for, wait_until};

const CAP: Duration = Duration::from_secs(60);
const STAMP: &str = "interlock.dev/last-applied-spec";
/// Of KUDO 0.7 to 0.14.
const SNAPSHOT: &str = "kudo.dev/last-applied-instance-state";
const KINDS: [(&str, &str); 9] = [
    ("v1", "configmaps"),
    ("v1", "persistentvolumeclaims"),
    ("v1", "pods"),
    ("v1", "secrets"),
    ("v1", "services"),
    ("apps/v1", "deployments"),
    ("apps/v1", "replicasets"),
    ("apps/v1", "statefulsets"),
    ("batch/v1", "cronjobs"),
];

/// Everything that a package made and that came of it: uid and version.
#[track_caller]
fn made(ns: &Namespace<'_>) -> BTreeMap<String, (Value, Value)> {
    let mut made = BTreeMap::new();
    for (api, plural) in KINDS {
        let list =
            ns.admin().read(&format!("{}?labelSelector=heritage%3Dkudo", ns.path(api, plural, ""))).ok();
        for object in list["items"].as_array().into_iter().flatten() {
            let metadata = &object["metadata"];
            let key = format!("{plural}/{}", metadata["name"].as_str().unwrap_or_default());
            made.insert(key, (metadata["uid"].clone(), metadata["resourceVersion"].clone()));
        }
    }
    assert!(made.keys().any(|key| key.starts_with("pods/")), "{made:#?}");
    made
}

/// Pods that a package made.
fn pods(ns: &Namespace<'_>) -> BTreeMap<String, (Value, Value)> {
    made(ns).into_iter().filter(|(key, _)| key.starts_with("pods/")).collect()
}

/// Waits until Interlock knows an Instance as its own.
#[track_caller]
fn await_adopted(scenario: &Scenario<'_>) -> Value {
    wait_until(&format!("{} is adopted", scenario.ns.name()), CAP, || {
        let found = scenario.get();
        let stamp = found["metadata"]["annotations"][STAMP].as_str().unwrap_or_default();
        let stamp: Value = serde_json::from_str(stamp).unwrap_or_default();
        let stamped = stamp.is_object() && stamp["spec"]["parameters"] == found["spec"]["parameters"];
        let known = found["status"]["lastApplied"].is_object();
        let ready = condition(&found, "Ready");
        let observed = ready["observedGeneration"] == found["metadata"]["generation"];
        if stamped && known && observed && ready["status"] == "True" {
            Ok(found)
        } else {
            Err(format!("{found:#}"))
        }
    })
}

/// Takes Interlock's webhooks and policies away, as `docs/kudo.md` does.
fn unguard(admin: &Client) {
    for kinds in [
        "validatingadmissionpolicybinding,validatingadmissionpolicy",
        "mutatingwebhookconfiguration,validatingwebhookconfiguration",
    ] {
        admin.kubectl(&["delete", kinds, "-l", "app.kubernetes.io/part-of=interlock"]).ok();
    }
}

/// Makes an Instance as KUDO 0.14 left it: no uids of runs, no execution, and a copy of the spec in an annotation.
fn age(scenario: &Scenario<'_>) {
    let spec = scenario.get()["spec"].take();
    let snapshot = json!({"operatorVersion": spec["operatorVersion"], "parameters": spec["parameters"]});
    let path = scenario.ns.path("kudo.dev/v1beta1", "instances", &scenario.instance);
    let annotated = json!({"metadata": {"annotations": {SNAPSHOT: snapshot.to_string()}}});
    scenario.user.merge_patch(&path, &annotated).ok();
    let plans = scenario.get()["status"]["planStatus"].clone();
    let without: serde_json::Map<String, Value> = plans
        .as_object()
        .into_iter()
        .flatten()
        .map(|(plan, _)| (plan.clone(), json!({"uid": null})))
        .collect();
    scenario.user.merge_patch(&format!("{path}/status"), &json!({"status": {"planStatus": without}})).ok();
}

/// KUDO's manager stops, Interlock takes its place, and nothing of theirs is touched by that.
fn taken_over(
    cluster: &Cluster,
    manager: &mut Manager<'_>,
    scenarios: &[&Scenario<'_>],
    process: &Interlock,
) {
    let before: Vec<_> = scenarios.iter().map(|scenario| (made(&scenario.ns), scenario.get())).collect();
    manager.stop();
    assert!(manager.try_write().contains("failed calling webhook"), "no edit falls between the two");
    apply_installation(cluster, &process.options(&[]));
    process.start();
    process.await_ready();
    process.await_guarding(cluster);
    manager.unregister();
    for (scenario, (children, instance)) in scenarios.iter().zip(before) {
        let adopted = await_adopted(scenario);
        scenario.settle();
        assert_eq!(made(&scenario.ns), children, "{}: nothing is touched", scenario.ns.name());
        assert_eq!(adopted["spec"], instance["spec"]);
        assert_eq!(run_of(&adopted, "deploy"), run_of(&instance, "deploy"), "no plan has run");
    }
}

/// An Instance is deleted, and the plan cleanup of its package ends.
#[track_caller]
fn uninstalled(scenario: &Scenario<'_>) {
    scenario.kudo(&["uninstall", "--instance", &scenario.instance, "--wait", "--wait-time=90"]);
    wait_for("the Instance is gone", CAP, || {
        scenario.user.get("instances.kudo.dev", &scenario.instance).is_none()
    });
}

#[test]
fn instances_go_to_interlock_and_back() {
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    if !cluster.has_workloads() {
        return;
    }
    let mut manager = Manager::install(&cluster);
    let [mut scenario, mut old] = [0, 1].map(|_| Scenario::new(&cluster, "every", &own("every")));
    for scenario in [&mut scenario, &mut old] {
        assert_eq!(scenario.act(Act::Install), "COMPLETE");
        scenario.settle();
    }
    age(&old);
    old.settle();

    let process = Interlock::prepare(&cluster, &[]);
    taken_over(&cluster, &mut manager, &[&scenario, &old], &process);
    for scenario in [&mut scenario, &mut old] {
        let before = pods(&scenario.ns);
        assert_eq!(scenario.act(Act::Update("NOTE=read-by-no-pod", "update")), "COMPLETE");
        scenario.settle();
        assert_eq!(pods(&scenario.ns), before, "no pod is replaced");
        assert_eq!(scenario.act(Act::Update("SIZE=2", "update")), "COMPLETE");
        assert_eq!(scenario.user.get("deployment", &scenario.instance).unwrap()["spec"]["replicas"], 2);
        scenario.settle();
    }

    let mut leaving = Scenario::new(&cluster, "every", &own("every"));
    assert_eq!(leaving.act(Act::Install), "COMPLETE");
    assert_eq!(leaving.act(Act::Trigger("job")), "COMPLETE");

    let before = made(&scenario.ns);
    process.terminate();
    manager.register();
    manager.start();
    unguard(&cluster.admin());
    manager.await_asked();
    scenario.settle();
    assert_eq!(made(&scenario.ns), before, "nothing is touched");
    let before = pods(&scenario.ns);
    assert_eq!(scenario.act(Act::Update("NOTE=by-kudo", "update")), "COMPLETE");
    scenario.settle();
    assert_eq!(pods(&scenario.ns), before, "no pod is replaced");
    assert_eq!(scenario.act(Act::Update("SIZE=3", "update")), "COMPLETE");
    let deployment = scenario.user.get("deployment", &scenario.instance).unwrap();
    assert_eq!(deployment["spec"]["replicas"], 3);
    let run = &deployment["metadata"]["annotations"]["kudo.dev/last-plan-execution-uid"];
    assert_eq!(run, &json!(run_of(&scenario.get(), "update")));
    assert_eq!(scenario.act(Act::Trigger("job")), "COMPLETE");
    scenario.settle();
    uninstalled(&leaving);

    // There again, while KUDO's manager has changed what Interlock remembers.
    taken_over(&cluster, &mut manager, &[&scenario, &old], &process);
    assert_eq!(scenario.act(Act::Update("SIZE=1", "update")), "COMPLETE");
    assert_eq!(scenario.user.get("deployment", &scenario.instance).unwrap()["spec"]["replicas"], 1);
    uninstalled(&scenario);
}
