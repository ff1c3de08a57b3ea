//! From a version to the next one and back while plans and rollouts run: none begins anew, and none is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::interlock::install::InstallOptions;
use go_template::yaml;
use interlock_core::api::meta::{self, install};
use interlock_kong::api as kong;
use serde_json::{Value, json};

use crate::rollouts::spec;
use crate::support::fake_kong::FakeKong;
use crate::support::ground::Ground;
use crate::support::instances::run_of;
use crate::support::{Client, Cluster, Interlock, Namespace, announce, interlock, service_path, wait_until};

const CAP: Duration = Duration::from_secs(180);
const PACKAGE: &str = include_str!("versions.yaml");
const PLAN: &str = "deploy";
const PLANS: usize = 20;
const ROLLOUTS: usize = 5;
/// What plans and rollouts make: API version and plural.
const MADE: [(&str, &str); 4] =
    [("v1", "services"), ("v1", "pods"), ("batch/v1", "jobs"), ("apps/v1", "deployments")];

fn plan(i: usize) -> String {
    format!("i{i:02}")
}

fn edge(i: usize) -> String {
    format!("edge-{i}")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Everything that was ever seen in a namespace.
#[derive(Clone, Default)]
struct Seen {
    /// Uids of the objects by plural and name.
    objects: BTreeMap<(&'static str, String), BTreeSet<String>>,
    /// Runs of the plan of each Instance, and states of each of its steps, without repetitions.
    runs: BTreeMap<String, Vec<String>>,
    steps: BTreeMap<(String, usize), Vec<String>>,
}

impl Seen {
    fn look(&mut self, ns: &Namespace<'_>, admin: &Client) {
        for (version, plural) in MADE {
            for object in items(&admin.read(&ns.path(version, plural, "")).body) {
                let uid = text(&object["metadata"]["uid"]);
                self.objects.entry((plural, text(&object["metadata"]["name"]))).or_default().insert(uid);
            }
        }
        for instance in items(&admin.read(&ns.path(meta::KUDO_API_VERSION, "instances", "")).body) {
            let name = text(&instance["metadata"]["name"]);
            note(self.runs.entry(name.clone()).or_default(), run_of(instance, PLAN));
            let steps = &instance["status"]["planStatus"][PLAN]["phases"][0]["steps"];
            for (i, step) in steps.as_array().into_iter().flatten().enumerate() {
                note(self.steps.entry((name.clone(), i)).or_default(), text(&step["status"]));
            }
        }
    }

    fn pods_of(&self, owner: &str) -> usize {
        self.objects.keys().filter(|(plural, name)| *plural == "pods" && name.starts_with(owner)).count()
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list["items"].as_array().into_iter().flatten()
}

fn note(history: &mut Vec<String>, state: String) {
    if history.last() != Some(&state) {
        history.push(state);
    }
}

/// A cluster with three replicas of Interlock, of which one runs at a time.
struct Course<'a> {
    cluster: &'a Cluster,
    admin: Client,
    ground: Ground<'a>,
    kong: FakeKong,
}

impl Course<'_> {
    /// Puts a version in the place of another as `docs/upgrade.md` says: `first` before its program starts.
    fn replace(&self, old: &Interlock, new: &Interlock, program: &Path, first: &[&str]) {
        apply(&self.admin, program, first);
        new.start();
        new.await_ready();
        service_path::await_endpoints(&self.admin, meta::NAMESPACE, install::SERVICE, 2);
        assert_eq!(old.terminate(), Some(0), "{}", old.log());
        apply(&self.admin, program, &["webhooks"]);
        new.await_guarding(self.cluster);
        wait_until("the other version leads", CAP, || new.leads().then_some(()).ok_or_else(|| new.log()));
    }

    fn data_plane(&self, i: usize) -> Value {
        self.admin.read(&self.ground.ns.path(kong::API_VERSION, "dataplanes", &edge(i))).ok()
    }

    fn change(&self, i: usize, patch: &Value) {
        let path = self.ground.ns.path(kong::API_VERSION, "dataplanes", &edge(i));
        self.admin.merge_patch(&path, patch).ok();
    }

    fn create_all(&self) {
        for i in 0..ROLLOUTS {
            let object = json!({
                "apiVersion": kong::API_VERSION, "kind": "DataPlane",
                "metadata": {"name": edge(i), "annotations": {"interlock.dev/promotion-grace-period": "2s"}},
                "spec": spec("kong:3.8"),
            });
            let path = self.ground.ns.path(kong::API_VERSION, "dataplanes", "");
            wait_until("a DataPlane is created", CAP, || match self.admin.post(&path, &object) {
                answer if answer.code == 201 => Ok(()),
                answer => Err(answer.to_string()),
            });
        }
        for i in 0..PLANS {
            self.ground.create(&plan(i), "held-0.1.0", &json!({}));
        }
    }

    /// Waits until a rollout is so: its reason, and a part of its message.
    fn await_rollout(&self, i: usize, reason: &str, said: &str) {
        wait_until(&format!("the rollout of {} is {reason}", edge(i)), CAP, || {
            let found = self.data_plane(i);
            let rolled_out = &found["status"]["rollout"]["conditions"][0];
            let is = rolled_out["reason"] == reason
                && rolled_out["observedGeneration"] == found["metadata"]["generation"]
                && text(&rolled_out["message"]).contains(said);
            if is { Ok(()) } else { Err(found["status"].to_string()) }
        });
    }

    /// Begins the rollouts; each waits for a configuration of its preview.
    fn stage_all(&self) {
        (0..ROLLOUTS).for_each(|i| self.await_rollout(i, "WaitingForChange", ""));
        for i in 0..ROLLOUTS {
            self.change(i, &json!({"spec": {"deployment": spec("kong:3.9")["deployment"]}}));
        }
        (0..ROLLOUTS).for_each(|i| self.await_waiting(i));
    }

    fn await_waiting(&self, i: usize) {
        self.await_rollout(i, "Progressing", "/status/ready");
    }

    /// Lets plans and a rollout go on.
    fn release(&self, plans: Range<usize>, rollouts: Range<usize>) {
        plans.for_each(|i| self.ground.open(&plan(i)));
        for i in rollouts {
            let promote = json!({"gateway-operator.konghq.com/promote-when-ready": "true"});
            self.change(i, &json!({"metadata": {"annotations": promote}}));
            let path = format!("{}?labelSelector=app={}", self.ground.ns.path("v1", "pods", ""), edge(i));
            for pod in items(&self.admin.read(&path).ok()) {
                self.kong
                    .offer(pod["status"]["podIP"].as_str().expect("an address"), &json!([{"paths": ["/a"]}]));
            }
        }
    }

    /// Waits until what was released is over.
    fn await_ends(&self, plans: Range<usize>, rollouts: Range<usize>) {
        for i in plans {
            self.ground.await_plan(&plan(i), PLAN, "COMPLETE");
        }
        for i in rollouts {
            self.await_rollout(i, "WaitingForChange", "");
            let live = self.admin.read(&self.ground.ns.path("apps/v1", "deployments", &green(i))).ok();
            assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "kong:3.9");
            assert_eq!(live["status"]["availableReplicas"], 2);
        }
    }

    /// What was not released still waits.
    fn assert_waiting(&self, plans: Range<usize>, rollouts: Range<usize>) {
        for i in plans {
            let found = self.ground.get(&plan(i));
            assert_eq!(found["status"]["planStatus"][PLAN]["status"], "IN_PROGRESS", "{found:#}");
        }
        rollouts.for_each(|i| self.await_waiting(i));
    }
}

fn green(i: usize) -> String {
    format!("dataplane-{}-green", edge(i))
}

/// Applies parts as a version prints them.
fn apply(admin: &Client, program: &Path, parts: &[&str]) {
    for part in parts {
        let printed = admin.command(program, &["render", part, "--dataplanes"], "").ok();
        let mut objects = yaml::documents(&printed).expect("YAML");
        // Its pods would be fake ones.
        objects.retain(|object| object["kind"] != "Deployment");
        interlock::apply(admin, objects);
    }
}

/// Installs a version, with DataPlanes and packages that may do everything.
fn install(cluster: &Cluster, program: &Path, replica: &Interlock) {
    let admin = cluster.admin();
    apply(&admin, program, &["install", "kong-crds"]);
    let rights = InstallOptions { packages_cluster_admin: true, ..InstallOptions::default() };
    interlock::apply(&admin, interlock::opt_in_rights(&rights));
    interlock::await_definitions(&admin);
    replica.start();
    replica.await_ready();
    apply(&admin, program, &["webhooks"]);
    replica.await_guarding(cluster);
    service_path::await_endpoints(&admin, meta::NAMESPACE, install::SERVICE, 1);
    replica.await_settings(cluster);
    let patch = json!({"spec": {"capabilities": {"dataplanes": {"mode": "auto"}}}});
    admin.merge_patch("/apis/interlock.dev/v1alpha1/interlocks/default", &patch).ok();
}

#[test]
#[ignore = "builds an earlier version; run by make soak"]
fn plans_and_rollouts_go_on_from_a_version_to_the_next_and_back() {
    // Outside of the network namespace too, where there is a network to build it with.
    let programs: [PathBuf; 2] = [interlock::previous(), interlock::binary()];
    if !service_path::inside() {
        return;
    }
    let cluster = service_path::cluster();
    if !cluster.has_workloads() {
        return;
    }
    let admin = cluster.admin();
    let replicas: [Arc<Interlock>; 3] = std::array::from_fn(|i| {
        let replica = Interlock::replica(&cluster, service_path::REPLICAS[i], &[]);
        Arc::new(replica.running(programs[i % 2].clone()))
    });
    admin.kubectl(&["create", "namespace", meta::NAMESPACE]).ok();
    let _following = service_path::follow(&admin, &replicas);
    let [before, next, back] = &replicas;
    install(&cluster, &programs[0], before);

    let kong = FakeKong::start(admin.clone());
    let ground = Ground::new(&cluster, "versions", PACKAGE);
    let course = Course { cluster: &cluster, admin: admin.clone(), ground, kong };
    course.create_all();
    course.stage_all();
    (0..PLANS).for_each(|i| drop(course.ground.await_step(&plan(i), PLAN, 1, "IN_PROGRESS")));

    let (seen, over) = (Mutex::new(Seen::default()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let (ns, admin, seen, over) = (&course.ground.ns, &admin, &seen, &over);
        scope.spawn(move || {
            while !over.load(Ordering::SeqCst) {
                seen.lock().unwrap_or_else(PoisonError::into_inner).look(ns, admin);
            }
        });
        let _end = OnDrop(|| over.store(true, Ordering::SeqCst));
        course.release(0..5, 0..1);
        course.replace(before, next, &programs[1], &["crds", "install"]);
        course.await_ends(0..5, 0..1);
        course.assert_waiting(5..PLANS, 1..ROLLOUTS);
        course.release(5..10, 1..2);
        course.replace(next, back, &programs[0], &["rbac", "policies", "workload"]);
        course.await_ends(5..10, 1..2);
        course.assert_waiting(10..PLANS, 2..ROLLOUTS);
        course.release(10..PLANS, 2..ROLLOUTS);
        course.await_ends(10..PLANS, 2..ROLLOUTS);
    });
    assert_once(&seen.into_inner().unwrap_or_else(PoisonError::into_inner));
    for replica in &replicas {
        assert!(!replica.log().contains("panicked"), "{}", replica.log());
    }
}

/// Runs a function at its end, however that comes.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        self.0();
    }
}

/// Every plan ran once, each step went on only forwards, and what was made was made once.
fn assert_once(seen: &Seen) {
    let again: Vec<_> = seen.objects.iter().filter(|(_, uids)| uids.len() != 1).collect();
    assert!(again.is_empty(), "made again: {again:#?}");
    for i in 0..PLANS {
        let name = plan(i);
        assert_eq!(seen.runs[&name].len(), 1, "{name} began anew: {:?}", seen.runs[&name]);
        for step in 0..3 {
            let states = &seen.steps[&(name.clone(), step)];
            let rank =
                |state: &String| ["PENDING", "IN_PROGRESS", "COMPLETE"].iter().position(|s| s == state);
            assert!(states.iter().all(|state| rank(state).is_some()), "{name}, step {step}: {states:?}");
            assert!(states.iter().map(rank).is_sorted(), "{name}, step {step}: {states:?}");
            assert_eq!(states.last().map(String::as_str), Some("COMPLETE"));
        }
        for job in ["begin", "end"] {
            let job = format!("{name}-{job}");
            assert!(seen.objects.contains_key(&("jobs", job.clone())), "{job} was lost");
            assert_eq!(seen.pods_of(&format!("{job}-")), 1, "pods of Job {job}");
        }
    }
    for i in 0..ROLLOUTS {
        for colour in ["blue", "green"] {
            let deployment = format!("dataplane-{}-{colour}", edge(i));
            assert_eq!(seen.pods_of(&format!("{deployment}-")), 2, "pods of {deployment}");
        }
    }
    announce(&format!(
        "counted: {} objects of {PLANS} plans and {ROLLOUTS} rollouts from a version to the next and back: 0 restarted, 0 lost",
        seen.objects.len(),
    ));
}
