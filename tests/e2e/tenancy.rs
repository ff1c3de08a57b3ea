//! What a tenant's package may not do, and that the deletion of a tenant's Instance ends, whatever comes between.

use std::time::Duration;

use interlock_core::api::meta;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::cut_off::{CutOff, before_each_write};
use crate::support::ground::Ground;
use crate::support::instances::{await_event, condition};
use crate::support::{Cluster, Interlock, announce, wait_until};

const CAP: Duration = Duration::from_secs(120);

/// `grasping-0.1.0`, which makes a binding to cluster-admin, `leaving-0.1.0`, whose cleanup ends, and
/// `failing-0.1.0`, whose cleanup fails for ever.
const PACKAGES: &str = include_str!("tenancy.yaml");

/// The packages of a tenant act as a service account that is `admin` of its namespace: what goes beyond that
/// fails the step, with the API server's words.
#[rstest]
#[case::of_the_cluster(
    "ClusterRoleBinding",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "is forbidden: User"
)]
#[case::of_more_than_it_has(
    "RoleBinding",
    "rolebindings.rbac.authorization.k8s.io",
    "attempting to grant RBAC permissions not currently held"
)]
fn a_package_takes_no_rights_that_its_account_lacks(
    #[case] kind: &str,
    #[case] plural: &str,
    #[case] why: &str,
) {
    let cluster = Cluster::own(&[]);
    let _process = Interlock::install(&cluster, &[]);
    let ground = Ground::new(&cluster, "tenant", PACKAGES);
    let admin = cluster.admin();
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    admin.delete(&format!("{bindings}/interlock-packages-cluster-admin")).ok();
    let account =
        json!({"kind": "ServiceAccount", "name": "interlock-packages", "namespace": "interlock-system"});
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "packages"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
        "subjects": [account],
    });
    let path = ground.ns.path("rbac.authorization.k8s.io/v1", "rolebindings", "");
    ground.ns.admin().post(&path, &binding).ok();
    await_rights(&ground, &cluster);

    ground.create("demo", "grasping-0.1.0", &json!({"WANTS": kind}));
    let held = ground.await_that("demo", "it is told that only a person can help", |found| {
        condition(found, "Stalled")["reason"] == "RequestRefused"
    });
    let steps = &held["status"]["planStatus"]["deploy"]["phases"][0]["steps"];
    assert_eq!(
        (&steps[0]["status"], &steps[1]["status"]),
        (&json!("COMPLETE"), &json!("ERROR")),
        "{steps:#}"
    );
    let said = steps[1]["message"].as_str().unwrap_or_default();
    for part in [plural, why] {
        assert!(said.contains(part), "want {part:?} in: {said}");
    }
    assert_eq!(condition(&held, "Stalled")["message"].as_str().map(|text| text.contains(why)), Some(true));
    let made = admin.read(&format!("{bindings}/{}-demo", ground.ns.name()));
    assert_eq!(made.code, 404, "{made}");
    // What it may not do holds up no deletion.
    ground.user.delete(&ground.path("demo")).ok();
    await_gone(&ground);
}

/// Waits until the packages' account may write ConfigMaps in the namespace, and no bindings of the cluster.
fn await_rights(ground: &Ground<'_>, cluster: &Cluster) {
    let may = |attributes: Value| {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": "system:serviceaccount:interlock-system:interlock-packages",
                "resourceAttributes": attributes,
            },
        });
        let answer = cluster.admin().post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).ok();
        answer["status"]["allowed"] == true
    };
    wait_until("the packages have the rights of a tenant", CAP, || {
        let own = may(json!({"namespace": ground.ns.name(), "verb": "create", "resource": "configmaps"}));
        let group = "rbac.authorization.k8s.io";
        let all = may(json!({"group": group, "verb": "create", "resource": "clusterrolebindings"}));
        if own && !all { Ok(()) } else { Err(format!("own {own}, all {all}")) }
    });
}

fn await_gone(ground: &Ground<'_>) {
    wait_until("the Instance is gone", CAP, || match ground.user.read(&ground.path("demo")) {
        answer if answer.code == 404 => Ok(()),
        answer => Err(answer.to_string()),
    });
}

/// The Instance is deleted, and ends; where its cleanup was not carried out, an Event says why.
#[rstest]
#[case::whose_cleanup_ends("leaving-0.1.0", None)]
#[case::whose_cleanup_fails_for_ever("failing-0.1.0", Some("cleanup failed 3 times"))]
fn a_deletion_ends(#[case] version: &str, #[case] warning: Option<&str>) {
    let (cluster, _) = Interlock::shared();
    let ground = Ground::new(cluster, "leaves", PACKAGES);
    ground.create("demo", version, &json!({}));
    ground.await_plan("demo", "deploy", "COMPLETE");
    let limited = json!({"metadata": {"annotations": {meta::CLEANUP_PATIENCE: "0s"}}});
    ground.user.merge_patch(&ground.path("demo"), &limited).ok();
    ground.user.delete(&ground.path("demo")).ok();
    await_gone(&ground);
    let (reason, text) = match warning {
        Some(text) => ("CleanupSkipped", text),
        None => ("PlanFinished", "Execution of plan cleanup finished with status COMPLETE"),
    };
    wait_until("an Event says how it ended", CAP, || {
        let list = ground.user.read(&ground.ns.path("events.k8s.io/v1", "events", "")).ok();
        let all = list["items"].as_array().cloned().unwrap_or_default();
        let tells = |event: &Value| {
            event["reason"] == reason && event["note"].as_str().is_some_and(|note| note.contains(text))
        };
        if all.iter().any(tells) { Ok(()) } else { Err(format!("{all:#?}")) }
    });
}

/// A namespace goes with all that is in it, whatever a cleanup would do and whether the package is there.
#[rstest]
#[case::whose_cleanup_ends("leaving-0.1.0")]
#[case::whose_cleanup_fails_for_ever("failing-0.1.0")]
fn a_namespace_goes_with_its_instances(#[case] version: &str) {
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let ground = Ground::new(cluster, "goes", PACKAGES);
    ground.create("demo", version, &json!({}));
    ground.await_plan("demo", "deploy", "COMPLETE");
    let path = delete_namespace(&ground, cluster);
    await_namespace_gone(cluster, &path);
}

/// Returns the path of the namespace.
fn delete_namespace(ground: &Ground<'_>, cluster: &Cluster) -> String {
    let path = format!("/api/v1/namespaces/{}", ground.ns.name());
    cluster.admin().delete(&path).ok();
    path
}

fn await_namespace_gone(cluster: &Cluster, path: &str) {
    wait_until("the namespace is gone", CAP, || match cluster.admin().read(path) {
        answer if answer.code == 404 => Ok(()),
        answer => Err(answer.body["status"].to_string()),
    });
}

/// The process dies before any of the writes that a deletion leads to: whoever goes on finds what is left to do.
#[test]
fn a_deletion_ends_though_the_process_dies_before_any_write() {
    let cluster = Cluster::own(&[]);
    let way = CutOff::start(&cluster, &cluster.user("interlock", &[]));
    let process = Interlock::install(&cluster, &[&way.flag()]);
    for (version, least) in [("leaving-0.1.0", 3), ("failing-0.1.0", 3)] {
        let writes = before_each_write(|writes| dies(version, writes, &cluster, &way, &process));
        announce(&format!("{version}: gone by {writes} writes"));
        assert!(writes >= least, "{version}: {writes}");
    }
    // While no process runs, admission does not keep the package.
    let ground = Ground::new(&cluster, "bereft", PACKAGES);
    ground.create("demo", "leaving-0.1.0", &json!({}));
    ground.await_plan("demo", "deploy", "COMPLETE");
    process.kill();
    let package = ground.ns.path(meta::KUDO_API_VERSION, "operatorversions", "leaving-0.1.0");
    ground.user.delete(&package).ok();
    ground.user.delete(&ground.path("demo")).ok();
    process.start();
    process.await_ready();
    await_gone(&ground);
    let said = await_event(&ground.ns, "CleanupSkipped");
    assert!(said.contains("is gone"), "{said}");
    if cluster.has_workloads() {
        let ground = Ground::new(&cluster, "goes", PACKAGES);
        ground.create("demo", "failing-0.1.0", &json!({}));
        ground.await_plan("demo", "deploy", "COMPLETE");
        process.kill();
        let path = delete_namespace(&ground, &cluster);
        process.start();
        process.await_ready();
        await_namespace_gone(&cluster, &path);
    }
}

/// One deletion, with a process that gets through this many writes; whether it died.
fn dies(version: &str, writes: usize, cluster: &Cluster, way: &CutOff, process: &Interlock) -> bool {
    let ground = Ground::new(cluster, "dies", PACKAGES);
    ground.create("demo", version, &json!({}));
    ground.await_plan("demo", "deploy", "COMPLETE");
    let limited = json!({"metadata": {"annotations": {meta::CLEANUP_PATIENCE: "0s"}}});
    ground.user.merge_patch(&ground.path("demo"), &limited).ok();
    way.after(writes);
    ground.user.delete(&ground.path("demo")).ok();
    let died = wait_until("the Instance is gone, or the process is cut off", CAP, || {
        let found = ground.user.read(&ground.path("demo"));
        match (way.is_cut(), found.code) {
            (true, _) => Ok(true),
            (false, 404) => Ok(false),
            _ => Err(found.to_string()),
        }
    });
    if died {
        way.restart(process);
    }
    way.mend();
    await_gone(&ground);
    died
}
