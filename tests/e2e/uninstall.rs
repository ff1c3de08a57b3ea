//! `interlock uninstall`, with everything alive and with everything dead: no object stays undeletable, no
//! webhook is left, workloads are not touched.

use std::collections::BTreeMap;
use std::time::Duration;

use interlock::install::{self, InstallOptions, Part};
use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::support::ground::Ground;
use crate::support::interlock::{apply, interlock};
use crate::support::{Client, Cluster, Interlock, wait_for, wait_until};

const CAP: Duration = Duration::from_secs(60);
/// `gated-0.1.0`, whose plan deploy waits at a Service without an address where GATED is true, and which has
/// a plan cleanup.
const PACKAGE: &str = include_str!("bypass/operatorversion.yaml");
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/interlock-system/deployments/interlock";

/// An installation as the manifests make it, whose Deployment a process beside the cluster stands in for,
/// with an Instance at rest and one whose plan waits.
struct World<'a> {
    cluster: &'a Cluster,
    process: Interlock,
    ground: Ground<'a>,
}

impl<'a> World<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        let process = Interlock::install(cluster, &[]);
        apply(&cluster.admin(), install::objects(Part::Workload, &InstallOptions::default()).unwrap());
        let ground = Ground::new(cluster, "kept", PACKAGE);
        ground.create("done", "gated-0.1.0", &json!({}));
        ground.create("waits", "gated-0.1.0", &json!({"GATED": "true"}));
        ground.await_plan("done", "deploy", "COMPLETE");
        ground.await_step("waits", "deploy", 1, "IN_PROGRESS");
        for name in ["done", "waits"] {
            assert_eq!(ground.get(name)["metadata"]["finalizers"], json!([meta::FINALIZER]), "{name}");
        }
        let marked = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "router", "labels": {meta::FLAVOR_SOURCE: meta::FLAVOR_SOURCE_OURS}},
        });
        // No gateway refers to it: the process takes its label off, unless it is gone by then.
        process.freeze(true);
        ground.ns.admin().post(&ground.ns.path("v1", "configmaps", ""), &marked).ok();
        process.freeze(false);
        Self { cluster, process, ground }
    }

    fn uninstall(&self, arguments: &[&str]) -> crate::support::Output {
        interlock(&self.cluster.admin(), &[&["uninstall"], arguments].concat(), "")
    }

    /// What packages made, by path: version and uid.
    fn made(&self) -> BTreeMap<String, (Value, Value)> {
        let mut made = BTreeMap::new();
        for (api, plural) in [("v1", "configmaps"), ("v1", "services"), ("apps/v1", "deployments")] {
            let path = format!("{}?labelSelector=heritage%3Dkudo", self.ground.ns.path(api, plural, ""));
            for object in self.cluster.admin().read(&path).ok()["items"].as_array().unwrap() {
                let metadata = &object["metadata"];
                let key = format!("{plural}/{}", metadata["name"]);
                made.insert(key, (metadata["uid"].clone(), metadata["resourceVersion"].clone()));
            }
        }
        assert!(!made.is_empty());
        made
    }

    /// No trace is left but definitions and what people wrote.
    #[track_caller]
    fn nothing_is_left(&self) {
        let admin = self.cluster.admin();
        for plural in [
            "mutatingwebhookconfigurations",
            "validatingwebhookconfigurations",
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
        ] {
            let found = admin.read(&format!("/apis/admissionregistration.k8s.io/v1/{plural}")).ok();
            assert_eq!(found["items"], json!([]), "{plural}");
        }
        for plural in ["clusterroles", "clusterrolebindings", "roles", "rolebindings"] {
            let labelled = "labelSelector=app.kubernetes.io%2Fpart-of%3Dinterlock";
            let found = admin.read(&format!("/apis/rbac.authorization.k8s.io/v1/{plural}?{labelled}")).ok();
            assert_eq!(found["items"], json!([]), "{plural}");
        }
        assert_eq!(admin.read("/api/v1/namespaces/interlock-system").code, 404);
        let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/instances.kudo.dev";
        assert_eq!(admin.read(definition).code, 200);
        let marked = self.ground.ns.admin().read(&self.ground.ns.path("v1", "configmaps", "router")).ok();
        assert_eq!(marked["metadata"]["labels"].get(meta::FLAVOR_SOURCE), None);
        let again = self.uninstall(&["--yes"]);
        assert_eq!(again.stdout, "nothing of Interlock is installed\n", "{again}");
        assert_eq!(again.code, 0, "{again}");
    }

    /// Each Instance can be edited and deleted.
    #[track_caller]
    fn instances_are_free(&self, names: &[&str]) {
        let user: &Client = &self.ground.user;
        for name in names {
            let found = self.ground.get(name);
            assert_eq!(found["metadata"].get("finalizers"), None, "{name}");
            user.merge_patch(&self.ground.path(name), &json!({"spec": {"parameters": {"SIZE": "large"}}}))
                .ok();
            user.delete(&self.ground.path(name)).ok();
            wait_for(&format!("{name} is gone"), CAP, || user.read(&self.ground.path(name)).code == 404);
        }
    }
}

#[test]
fn with_everything_alive() {
    let cluster = Cluster::own(&[]);
    if !cluster.has_workloads() {
        return;
    }
    let world = World::new(&cluster);
    let admin = cluster.admin();
    let before = world.made();

    let dry = world.uninstall(&["--dry-run"]);
    assert_eq!(dry.code, 0, "{dry}");
    for line in [
        "delete    MutatingWebhookConfiguration interlock",
        "delete    Deployment interlock-system/interlock",
        "delete    Namespace interlock-system",
        "note      the definitions stay",
    ] {
        assert!(dry.stdout.lines().any(|found| found.starts_with(line)), "{line:?} is not in {dry}");
    }
    assert!(
        dry.stdout.contains("Instance") && dry.stdout.contains("is scheduled or runs: it stops where it is"),
        "{dry}"
    );
    assert_eq!(world.uninstall(&[]).code, 2, "nobody can be asked");
    assert_eq!(world.uninstall(&["--crds", "--yes"]).code, 1, "Instances would go with their definition");
    assert_eq!(admin.read(DEPLOYMENT).code, 200, "nothing was removed yet");

    let out = std::thread::scope(|threads| {
        let running = threads.spawn(|| world.uninstall(&["--yes", "--timeout=60s"]));
        // What a kubelet does.
        wait_for("the Deployment is deleted", CAP, || admin.read(DEPLOYMENT).code == 404);
        world.process.terminate();
        running.join().unwrap()
    });
    assert_eq!(out.code, 0, "{out}");
    assert_eq!(world.made(), before, "what packages made is as it was");
    world.nothing_is_left();
    world.instances_are_free(&["done", "waits"]);
}

/// An Instance that is being deleted, whose cleanup nobody will run, included.
#[test]
fn with_everything_dead() {
    let cluster = Cluster::own(&[]);
    if !cluster.has_workloads() {
        return;
    }
    let world = World::new(&cluster);
    world.process.kill();
    let before = world.made();
    world.ground.user.delete(&world.ground.path("waits")).ok();
    let dry = world.uninstall(&["--dry-run"]);
    assert!(dry.stdout.contains("is being deleted, and goes without its plan cleanup"), "{dry}");
    let out = world.uninstall(&["--yes"]);
    assert_eq!(out.code, 0, "{out}");
    wait_until("what was being deleted is gone", CAP, || {
        let found = world.ground.user.read(&world.ground.path("waits"));
        if found.code == 404 { Ok(()) } else { Err(found.to_string()) }
    });
    let after = world.made();
    let of_done = |made: &BTreeMap<String, (Value, Value)>| {
        made.iter()
            .filter(|(key, _)| key.contains("done"))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect::<Vec<_>>()
    };
    assert!(!of_done(&before).is_empty());
    assert_eq!(of_done(&after), of_done(&before));
    world.nothing_is_left();
    world.instances_are_free(&["done"]);
    let out = world.uninstall(&["--crds", "--yes"]);
    assert_eq!(out.code, 1, "the OperatorVersion is there: {out}");
    assert!(out.stderr.contains(" OperatorVersions: deleting their definition deletes them"), "{out}");
}

/// A process that nobody stops would put its finalizer back.
#[test]
fn a_process_outside_of_the_cluster_is_named() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    let admin = cluster.admin();
    let run = |timeout: &str| interlock(&admin, &["uninstall", "--yes", timeout], "");
    let nobody = cluster.user("nobody-of-uninstall", &[]);
    let out = interlock(&nobody, &["uninstall", "--yes"], "");
    assert_eq!(out.code, 1, "{out}");
    assert!(out.stderr.contains("nothing was removed: run this as a user who may read it"), "{out}");
    let out = run("--timeout=5s");
    assert_eq!(out.code, 1, "{out}");
    assert!(out.stderr.contains("still renews Lease interlock-system/interlock: stop that process"), "{out}");
    process.terminate();
    let out = run("--timeout=60s");
    assert_eq!(out.code, 0, "{out}");
    let out = interlock(&admin, &["uninstall", "--yes", "--crds"], "");
    assert_eq!(out.code, 0, "{out}");
    let definitions = admin.read("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").ok();
    let ours = definitions["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|crd| crd["spec"]["group"] == meta::KUDO_GROUP);
    assert!(ours.filter(|crd| crd["metadata"]["deletionTimestamp"].is_null()).count() == 0, "{definitions}");
}
