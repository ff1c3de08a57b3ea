//! Cluster-scoped objects of packages without a plan `cleanup`: they go with the last Instance that has made them, whatever
//! happens to it, and its deletion ends whatever happens to them.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::existing::delete_with_dependents;
use crate::support::cut_off::{CutOff, before_each_write};
use crate::support::ground::Ground;
use crate::support::instances::{await_event, idle};
use crate::support::{Cluster, Interlock, announce, wait_until};

const CAP: Duration = Duration::from_secs(120);
const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";

/// `priority-0.1.0`, whose plan deploy makes a PriorityClass of the name in NAME, and `widget-0.1.0`, which makes a Widget.
const PACKAGES: &str = include_str!("cluster_scoped.yaml");

fn class(cluster: &Cluster, name: &str) -> Option<Value> {
    let answer = cluster.admin().read(&format!("{CLASSES}/{name}"));
    (answer.code != 404).then(|| answer.ok())
}

#[track_caller]
fn await_no_class(cluster: &Cluster, name: &str) {
    wait_until(&format!("PriorityClass {name} is gone"), CAP, || match class(cluster, name) {
        None => Ok(()),
        Some(found) => Err(format!("{found:#}")),
    });
}

#[track_caller]
fn await_gone(ground: &Ground<'_>) {
    wait_until("the Instance is gone", CAP, || match ground.user.read(&ground.path("demo")) {
        answer if answer.code == 404 => Ok(()),
        answer => Err(answer.to_string()),
    });
}

/// Instance `demo`, whose plan has made a PriorityClass.
#[track_caller]
fn deployed(ground: &Ground<'_>, name: &str) -> Value {
    ground.create("demo", "priority-0.1.0", &json!({"NAME": name}));
    ground.await_plan("demo", "deploy", "COMPLETE")
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().expect("a uid")
}

#[test]
fn what_instances_have_made_in_the_cluster_goes_with_the_last_of_them() {
    let (cluster, _) = Interlock::shared();
    let grounds = ["first", "second"].map(|base| Ground::new(cluster, base, PACKAGES));
    let [first, second] = grounds.each_ref().map(|ground| deployed(ground, "interlock-test-last"));
    assert_eq!(first["metadata"]["finalizers"], json!(["kudo.dev.instance.cleanup"]));
    let revisions = grounds[0].ns.path("apps/v1", "controllerrevisions", "");
    let list = format!("{revisions}?labelSelector={}%3D{}", meta::INVENTORY_OF, uid(&first));
    let listed = grounds[0].ns.admin().read(&list).ok();
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed:#}");

    grounds[0].user.delete(&grounds[0].path("demo")).ok();
    await_gone(&grounds[0]);
    let left = class(cluster, "interlock-test-last").expect("the other Instance applies it still");
    assert_eq!(left["metadata"]["labels"][meta::INSTANCE_UID], uid(&second), "{left:#}");
    grounds[1].user.delete(&grounds[1].path("demo")).ok();
    await_gone(&grounds[1]);
    assert_eq!(class(cluster, "interlock-test-last"), None);
}

/// What the plan has named otherwise since is on the list as well.
#[test]
fn what_a_plan_does_not_render_any_more_goes_with_the_instance() {
    let (cluster, _) = Interlock::shared();
    let ground = Ground::new(cluster, "renamed", PACKAGES);
    deployed(&ground, "interlock-test-before");
    ground.edit("demo", &json!({"NAME": "interlock-test-after"}));
    wait_until("there are both", CAP, || {
        let both = ["before", "after"].map(|name| class(cluster, &format!("interlock-test-{name}")));
        if both.iter().all(Option::is_some) { Ok(()) } else { Err(format!("{both:#?}")) }
    });
    ground.await_plan("demo", "deploy", "COMPLETE");
    delete_with_dependents(&ground, "demo");
    for name in ["before", "after"] {
        assert_eq!(class(cluster, &format!("interlock-test-{name}")), None, "{name}");
    }
}

#[test]
fn what_is_adopted_or_to_be_kept_outlives_its_instance() {
    let (cluster, _) = Interlock::shared();
    let mine = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": {"name": "interlock-test-adopted"}, "value": 1000,
    });
    cluster.admin().post(CLASSES, &mine).ok();
    let ground = Ground::new(cluster, "adopted", PACKAGES);
    deployed(&ground, "interlock-test-adopted");
    ground.user.delete(&ground.path("demo")).ok();
    await_gone(&ground);
    assert!(class(cluster, "interlock-test-adopted").is_some());

    deployed(&ground, "interlock-test-kept");
    let keep = json!({"metadata": {"annotations": {meta::KEEP: "others use it"}}});
    cluster.admin().merge_patch(&format!("{CLASSES}/interlock-test-kept"), &keep).ok();
    ground.user.delete(&ground.path("demo")).ok();
    await_gone(&ground);
    let event = await_event(&ground.ns, "ObjectKept");
    assert!(event.contains("PriorityClass interlock-test-kept") && event.contains(meta::KEEP), "{event}");
    for name in ["adopted", "kept"] {
        cluster.admin().delete(&format!("{CLASSES}/interlock-test-{name}")).ok();
    }
}

#[test]
fn a_deletion_ends_whatever_comes_between() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    while_no_process_runs(&cluster, &process);
    if cluster.has_workloads() {
        with_its_namespace(&cluster);
    }
    after_the_definition(&cluster);
    without_the_right(&cluster);
}

fn while_no_process_runs(cluster: &Cluster, process: &Interlock) {
    let ground = Ground::new(cluster, "down", PACKAGES);
    deployed(&ground, "down");
    process.kill();
    ground.user.delete(&ground.path("demo")).ok();
    assert!(ground.get("demo")["metadata"]["deletionTimestamp"].is_string());
    assert!(class(cluster, "down").is_some());
    process.start();
    process.await_guarding(cluster);
    await_gone(&ground);
    assert_eq!(class(cluster, "down"), None);
}

fn with_its_namespace(cluster: &Cluster) {
    let ground = Ground::new(cluster, "going", PACKAGES);
    deployed(&ground, "going");
    let path = format!("/api/v1/namespaces/{}", ground.ns.name());
    cluster.admin().delete(&path).ok();
    wait_until("the namespace is gone", CAP, || match cluster.admin().read(&path) {
        answer if answer.code == 404 => Ok(()),
        answer => Err(answer.body["status"].to_string()),
    });
    await_no_class(cluster, "going");
}

fn after_the_definition(cluster: &Cluster) {
    let admin = cluster.admin();
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.dev"},
        "spec": {
            "group": "example.dev", "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    admin.post(definitions, &definition).ok();
    let ground = Ground::new(cluster, "widgets", PACKAGES);
    ground.create("demo", "widget-0.1.0", &json!({"NAME": "one"}));
    ground.await_plan("demo", "deploy", "COMPLETE");
    admin.read("/apis/example.dev/v1/widgets/one").ok();
    admin.delete(&format!("{definitions}/widgets.example.dev")).ok();
    wait_until("the definition is gone", CAP, || {
        match admin.read(&format!("{definitions}/widgets.example.dev")) {
            answer if answer.code == 404 => Ok(()),
            answer => Err(answer.to_string()),
        }
    });
    ground.user.delete(&ground.path("demo")).ok();
    await_gone(&ground);
}

/// The account may make the object, and not delete it.
fn without_the_right(cluster: &Cluster) {
    let ground = Ground::new(cluster, "forbidden", PACKAGES);
    let admin = cluster.admin();
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "making"},
        "rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]},
            {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": ["get", "create", "patch"]},
        ],
    });
    admin.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).ok();
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "making"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "making"},
        "subjects": [{"kind": "ServiceAccount", "name": "interlock-packages", "namespace": "interlock-system"}],
    });
    admin.post(BINDINGS, &binding).ok();
    admin.delete(&format!("{BINDINGS}/interlock-packages-cluster-admin")).ok();
    await_no_right(cluster);
    deployed(&ground, "forbidden");
    ground.user.delete(&ground.path("demo")).ok();
    await_gone(&ground);
    let event = await_event(&ground.ns, "ObjectKept");
    let ns = ground.ns.name();
    let begins = format!("PriorityClass forbidden of Instance {ns}/demo is left: ");
    assert!(event.starts_with(&begins) && event.contains("is forbidden"), "{event}");
    assert!(
        event.ends_with("`kubectl delete priorityclass.scheduling.k8s.io forbidden` removes it"),
        "{event}"
    );
    admin.kubectl(&["delete", "priorityclass.scheduling.k8s.io", "forbidden"]).ok();
}

fn await_no_right(cluster: &Cluster) {
    wait_until("the packages may make and not delete", CAP, || {
        let may = |verb: &str| {
            let attributes =
                json!({"group": "scheduling.k8s.io", "verb": verb, "resource": "priorityclasses"});
            let review = json!({
                "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                "spec": {
                    "user": "system:serviceaccount:interlock-system:interlock-packages",
                    "resourceAttributes": attributes,
                },
            });
            let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
            cluster.admin().post(path, &review).ok()["status"]["allowed"] == true
        };
        let (makes, deletes) = (may("create"), may("delete"));
        if makes && !deletes { Ok(()) } else { Err(format!("{makes} {deletes}")) }
    });
}

/// The process dies before any write of an Instance: whoever goes on has listed what is made, and removes it.
#[test]
fn nothing_is_left_though_the_process_dies_before_any_write() {
    let cluster = Cluster::own(&[]);
    let way = CutOff::start(&cluster, &cluster.user("interlock", &[]));
    let process = Interlock::install(&cluster, &[&way.flag()]);
    let mut deaths = 0;
    let writes = before_each_write(|writes| {
        let died = dies(writes, &cluster, &way, &process);
        deaths += died;
        died > 0
    });
    announce(&format!(
        "nothing was left in the cluster over {deaths} deaths, the last before write {writes}"
    ));
    assert!(writes >= 3 && deaths >= 1, "{writes}, {deaths}");
}

/// One Instance is made and deleted, each time by a process that gets through this many writes; how often it died.
fn dies(writes: usize, cluster: &Cluster, way: &CutOff, process: &Interlock) -> usize {
    let ground = Ground::new(cluster, "dies", PACKAGES);
    let name = format!("dies-{writes}");
    let mut deaths = 0;
    let mut recover = |died: bool| {
        if died {
            deaths += 1;
            way.restart(process);
        }
        way.mend();
    };
    way.after(writes);
    ground.create("demo", "priority-0.1.0", &json!({"NAME": name}));
    recover(wait_until("the plan is carried out, or the process is cut off", CAP, || {
        let found = ground.get("demo");
        let observed = found["status"]["observedGeneration"] == found["metadata"]["generation"];
        let complete = found["status"]["planStatus"]["deploy"]["status"] == "COMPLETE";
        match (way.is_cut(), observed && complete && idle(&found)) {
            (true, _) => Ok(true),
            (false, true) => Ok(false),
            _ => Err(format!("{found:#}")),
        }
    }));
    ground.await_plan("demo", "deploy", "COMPLETE");
    assert!(class(cluster, &name).is_some());
    way.after(writes);
    ground.user.delete(&ground.path("demo")).ok();
    recover(wait_until("the Instance is gone, or the process is cut off", CAP, || {
        let found = ground.user.read(&ground.path("demo"));
        match (way.is_cut(), found.code) {
            (true, _) => Ok(true),
            (false, 404) => Ok(false),
            _ => Err(found.to_string()),
        }
    }));
    await_gone(&ground);
    assert_eq!(class(cluster, &name), None, "after {writes} writes");
    deaths
}
