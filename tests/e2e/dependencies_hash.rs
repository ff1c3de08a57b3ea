//! Pods roll when a ConfigMap or Secret that they use has changed, as with KUDO, and when nothing has, they do not.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use interlock::install::{self, InstallOptions, Part};
use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::support::ground::Ground;
use crate::support::instances::{await_run, condition, run_of};
use crate::support::interlock::{apply, await_definitions};
use crate::support::{Cluster, Interlock, peers, wait_until};

const CAP: Duration = Duration::from_secs(120);

/// `dep-operator-0.1.0`: KUDO's `test/e2e/dependencies-hash`.
const DEPOP: &str = include_str!("dependencies_hash/depop.yaml");
/// `hashes-0.1.0`: pods that use what the package makes in another task, in the same one, what others made, what is
/// missing, and what is annotated.
const HASHES: &str = include_str!("dependencies_hash/hashes.yaml");
/// `refers-0.1.0`: a Deployment that uses the Secret `credentials` and the ConfigMap `variables`, which others make.
const REFERS: &str = include_str!("dependencies_hash/refers.yaml");

fn hash(workload: &Value) -> String {
    let places = ["/spec/template", "/spec/jobTemplate/spec/template"];
    let found = places.iter().find_map(|place| {
        workload.pointer(place)?.pointer("/metadata/annotations/kudo.dev~1dependencies-hash")?.as_str()
    });
    found.unwrap_or_default().to_owned()
}

fn deployment(ground: &Ground<'_>, name: &str) -> Value {
    ground.user.read(&ground.ns.path("apps/v1", "deployments", name)).ok()
}

/// How many templates the pods of the namespace's Deployments have had.
fn rolled(ground: &Ground<'_>) -> usize {
    let found = ground.user.read(&ground.ns.path("apps/v1", "replicasets", "")).ok();
    found["items"].as_array().map_or(0, Vec::len)
}

/// Changes parameters, and waits until a plan has run.
#[track_caller]
fn change(ground: &Ground<'_>, name: &str, plan: &str, parameters: &Value) {
    let before = run_of(&ground.get(name), plan);
    ground.edit(name, parameters);
    await_run(&ground.user, name, plan, &before);
}

/// The steps of KUDO's own test, with the hashes that it asserts.
#[test]
fn pods_roll_when_a_plan_applies_them_and_what_they_use_has_changed() {
    let (cluster, _) = Interlock::shared();
    if !cluster.has_workloads() {
        return;
    }
    let ground = Ground::new(cluster, "depop", DEPOP);
    let found = || (hash(&deployment(&ground, "nginx-deployment")), rolled(&ground));
    let [first, second, third] = [
        "6fa812afe527bdb6c9a5fbfcba8193bb",
        "da9f56a62d3c4af2596bebace008d845",
        "1510654b540619228b477bdd56d44175",
    ]
    .map(str::to_owned);
    ground.create("depop", "dep-operator-0.1.0", &json!({}));
    ground.await_plan("depop", "deploy", "COMPLETE");
    assert_eq!(found(), (first.clone(), 1));

    change(&ground, "depop", "update-replica", &json!({"REPLICAS": "3"}));
    assert_eq!(found(), (first.clone(), 1), "nothing that the pods use has changed");
    change(&ground, "depop", "update-param", &json!({"CONFIG_MAP_VALUE": "ChangedValue"}));
    assert_eq!(found(), (first, 1), "the plan does not apply the Deployment");
    change(&ground, "depop", "update-replica", &json!({"REPLICAS": "2"}));
    assert_eq!(found(), (second, 2));
    change(&ground, "depop", "deploy", &json!({"OTHER_CONFIG_VALUE": "SecondChangedValue"}));
    assert_eq!(found(), (third, 3));
}

/// KUDO's manager; killed when dropped.
struct Manager(Child);

impl Manager {
    fn start(cluster: &Cluster) -> Self {
        let certificates = cluster.dir().join("kudo-certificates");
        let mut make = Command::new("certs/make");
        let made = make.arg(&certificates).arg("127.0.0.1").stdout(Stdio::null()).status();
        assert!(made.expect("certs/make runs").success(), "certs/make failed");
        let log = File::create(cluster.dir().join("logs/kudo-manager.log")).expect("a log");
        let manager = Command::new(peers::kudo_manager())
            .env("KUBECONFIG", cluster.admin().kubeconfig())
            .env("KUDO_CERT_DIR", &certificates)
            .stdout(log.try_clone().expect("a file"))
            .stderr(log)
            .spawn();
        Self(manager.expect("kudo-manager starts"))
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kind and name of what has pods, each with its hash.
fn hashes(ground: &Ground<'_>) -> Vec<(&'static str, String)> {
    let all = [
        ("apps/v1", "deployments", "web"),
        ("apps/v1", "statefulsets", "store"),
        ("batch/v1", "cronjobs", "nightly"),
        ("batch/v1", "jobs", "once"),
    ];
    let read = |version, plural, name| ground.user.read(&ground.ns.path(version, plural, name)).ok();
    all.into_iter().map(|(version, plural, name)| (name, hash(&read(version, plural, name)))).collect()
}

/// A namespace with the package, and a ConfigMap of others.
fn space<'a>(cluster: &'a Cluster, base: &str) -> Ground<'a> {
    let ground = Ground::new(cluster, base, HASHES);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "of-others"}, "data": {"k": "v"}});
    ground.user.post(&ground.ns.path("v1", "configmaps", ""), &map).ok();
    ground
}

#[test]
fn kudo_makes_the_same_hashes_and_what_it_made_does_not_roll() {
    let cluster = Cluster::own(&[]);
    let admin = cluster.admin();
    apply(&admin, install::objects(Part::Crds, &InstallOptions::default()).unwrap());
    await_definitions(&admin);
    let theirs = space(&cluster, "kudo");
    let manager = Manager::start(&cluster);
    // As KUDO's webhook leaves it.
    let execution =
        json!({"planName": "deploy", "uid": uuid::Uuid::new_v4().to_string(), "status": "NEVER_RUN"});
    let instance = json!({
        "apiVersion": meta::KUDO_API_VERSION, "kind": "Instance",
        "metadata": {"name": "demo", "labels": {"kudo.dev/operator": "hashes"}},
        "spec": {"operatorVersion": {"name": "hashes-0.1.0"}, "planExecution": execution},
    });
    theirs.user.post(&theirs.path(""), &instance).ok();
    theirs.await_that("demo", "KUDO has deployed it", |found| {
        found["status"]["planStatus"]["deploy"]["status"] == "COMPLETE"
    });
    drop(manager);
    let by_kudo = hashes(&theirs);
    assert!(by_kudo.iter().all(|(_, hash)| hash.len() == 32), "{by_kudo:?}");
    let before = rolled(&theirs);

    let _process = Interlock::install(&cluster, &[]);
    let ours = space(&cluster, "interlock");
    ours.create("demo", "hashes-0.1.0", &json!({}));
    ours.await_plan("demo", "deploy", "COMPLETE");
    assert_eq!(hashes(&ours), by_kudo);

    change(&theirs, "demo", "deploy", &json!({"REPLICAS": "2"}));
    assert_eq!(deployment(&theirs, "web")["spec"]["replicas"], 2, "Interlock has applied it");
    assert_eq!((hashes(&theirs), rolled(&theirs)), (by_kudo, before));
}

/// What the pods use is read as the service account of the package; variables count where that is set.
#[test]
fn what_pods_use_is_read_as_the_account_of_the_package() {
    let cluster = Cluster::own(&[]);
    let _process = Interlock::install(&cluster, &[]);
    let ground = Ground::new(&cluster, "refers", REFERS);
    let admin = cluster.admin();
    let data = |kind: &str, name: &str, value: &str| {
        let data = if kind == "Secret" { "stringData" } else { "data" };
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, data: {"k": value}})
    };
    ground.user.post(&ground.ns.path("v1", "secrets", ""), &data("Secret", "credentials", "1")).ok();
    ground.user.post(&ground.ns.path("v1", "configmaps", ""), &data("ConfigMap", "variables", "1")).ok();
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    admin.delete(&format!("{bindings}/interlock-packages-cluster-admin")).ok();
    grant(
        &ground,
        "deployments",
        &json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]}),
    );

    ground.create("demo", "refers-0.1.0", &json!({}));
    let held = ground.await_that("demo", "it is told that only a person can help", |found| {
        condition(found, "Stalled")["reason"] == "RequestRefused"
    });
    let said = condition(&held, "Stalled")["message"].as_str().unwrap_or_default().to_owned();
    for part in
        ["failed to add dependencies hash: secrets \"credentials\" is forbidden", "cannot get resource"]
    {
        assert!(said.contains(part), "want {part:?} in: {said}");
    }
    let rule = json!({"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get"]});
    grant(&ground, "configuration", &rule);
    ground.await_plan("demo", "deploy", "COMPLETE");
    let first = hash(&deployment(&ground, "web"));
    assert_eq!(first.len(), 32);

    let all = "apiVersion: interlock.dev/v1alpha1\nkind: Interlock\nmetadata: {name: default}\n\
               spec: {instances: {dependenciesHash: [{references: All}]}}\n";
    admin.apply(all);
    let other = await_another_hash(&ground, &first);
    assert_eq!(await_hash_of_run(&ground, "1"), other, "nothing has changed");
    let path = ground.ns.path("v1", "configmaps", "variables");
    ground.user.merge_patch(&path, &json!({"data": {"k": "2"}})).ok();
    assert_eq!(hash(&deployment(&ground, "web")), other, "no plan has run");
    assert_ne!(await_hash_of_run(&ground, "2"), other);
}

/// The hash after a run of plan deploy with so many replicas.
#[track_caller]
fn await_hash_of_run(ground: &Ground<'_>, replicas: &str) -> String {
    change(ground, "demo", "deploy", &json!({"REPLICAS": replicas}));
    hash(&deployment(ground, "web"))
}

/// Runs plan deploy until the hash is another: a setting counts from some pass on.
#[track_caller]
fn await_another_hash(ground: &Ground<'_>, before: &str) -> String {
    let mut replicas = ["2", "3"].into_iter().cycle();
    wait_until("the variables count", CAP, || {
        let found = await_hash_of_run(ground, replicas.next().unwrap_or("2"));
        if found == before { Err(found) } else { Ok(found) }
    })
}

/// A Role with one rule for the packages' account.
fn grant(ground: &Ground<'_>, name: &str, rule: &Value) {
    let group = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": {"name": name}, "rules": [rule],
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "namespace": "interlock-system", "name": "interlock-packages"}],
    });
    for (plural, object) in [("roles", role), ("rolebindings", binding)] {
        ground.ns.admin().post(&ground.ns.path(&format!("{group}/v1"), plural, ""), &object).ok();
    }
}
