//! Every definition that something needs is taken away, spoiled and forbidden, in random order,
//! while Instances are written to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use interlock::cluster::watch::LONGEST_PAUSE;
use serde_json::{Value, json};

use super::changes::{Change, path_of_role, rival, without};
use super::world::{CAP, World, definition};
use crate::support::audit::await_rest;
use crate::support::random::Random;
use crate::support::{Namespace, announce, count, instances, wait_until};

/// Definitions that a capability or a package's template needs.
const DEFINITIONS: [&str; 11] = [
    "instances",
    "operatorversions",
    "interlocks",
    "envoyfilters",
    "httproutes",
    "grpcroutes",
    "tlsroutes",
    "gateways",
    "gatewayclasses",
    "dataplanes",
    "controlplanes",
];
const INSTANCES: [(&str, &str); 3] = [("demo-a", "filtered"), ("demo-b", "plain"), ("demo-c", "filtered")];
/// What their package makes: API version and plural.
const MADE: [(&str, &str); 2] = [("v1", "configmaps"), ("networking.istio.io/v1alpha3", "envoyfilters")];
/// Within this a change must be seen, beside what the API server itself takes to serve the kind.
const IN_TIME: Duration = Duration::from_secs(5);
/// The API server tries a storage that is not ready again after a delay that doubles.
const SERVED: Duration = Duration::from_secs(300);
/// How many looks at the memory are taken together, so that none counts alone.
const LOOKS: usize = 10;
/// Growth of resident memory that is none: the allocator's and the log's.
const SLACK: u64 = 24 * 1024;

/// Every change of every definition in random order, and all of them again: none is missed while
/// others come twice.
struct Deck {
    random: Random,
    left: Vec<(&'static str, Change)>,
}

impl Deck {
    fn new() -> Self {
        Self { random: Random::announced(), left: Vec::new() }
    }

    fn draw(&mut self) -> (&'static str, Change) {
        if self.left.is_empty() {
            let all = DEFINITIONS.into_iter().flat_map(|plural| Change::ALL.map(|change| (plural, change)));
            self.left = all.collect();
        }
        let at = self.random.below(self.left.len());
        self.left.swap_remove(at)
    }
}

#[test]
fn definitions_come_and_go_in_any_order_and_nothing_is_lost() {
    let world = World::new();
    if !world.cluster.has_workloads() {
        return;
    }
    let mut deck = Deck::new();
    for plural in DEFINITIONS {
        world.install(plural);
    }
    world.grant_filters();
    let ns = world.cluster.namespace("chaos");
    let mut course =
        Course { world: &world, ns: &ns, slowest: Duration::ZERO, logged: 0, was_forbidden: false };
    course.repair();
    let load = Load::start(&ns);
    let mut resident = Vec::new();
    let changes = count(10, 100);
    for i in 0..changes {
        let (plural, change) = deck.draw();
        let began = Instant::now();
        let before = course.children();
        course.make(plural, change);
        world.assert_same_process();
        // Instances that go with their own definition take their children along.
        if plural != "instances" {
            let after = course.children();
            let goes_along = |child: &Child| child.plural == plural;
            let lost: Vec<_> =
                before.iter().filter(|child| !goes_along(child) && !after.contains(child)).collect();
            assert!(lost.is_empty(), "{plural} {change:?}: children were deleted: {lost:?}");
        }
        course.repair();
        resident.push(world.resident());
        announce(&format!(
            "{}/{changes} {plural} {change:?}: {:.1} s, slowest state {:.1} s, {} KiB resident, {} writes",
            i + 1,
            began.elapsed().as_secs_f32(),
            course.slowest.as_secs_f32(),
            world.resident(),
            load.writes(),
        ));
    }
    let writes = load.stop();
    let looks = LOOKS.min(resident.len() / 2);
    let (first, last) = (median(&resident[..looks]), median(&resident[resident.len() - looks..]));
    announce(&format!(
        "{changes} changes, {writes} writes beside them, slowest state {:?}, resident {first} KiB -> {last} KiB",
        course.slowest
    ));
    assert!(last < first + SLACK, "memory grows: {resident:?}");
    await_rest(&world.cluster, "all changes");
}

fn median(of: &[u64]) -> u64 {
    let mut sorted = of.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// The capability that reads a kind, and whether it cannot do without.
fn reader(plural: &str) -> Option<(&'static str, bool)> {
    match plural {
        "instances" | "operatorversions" => Some(("instances", true)),
        "interlocks" => Some(("settings", true)),
        "httproutes" | "grpcroutes" | "tlsroutes" | "gateways" | "gatewayclasses" => Some(("routes", false)),
        "dataplanes" | "controlplanes" => Some(("flavors", false)),
        _ => None,
    }
}

fn kind_of(plural: &str) -> String {
    definition(plural)["spec"]["names"]["kind"].as_str().unwrap().to_owned()
}

/// An object that a package made.
#[derive(Debug, PartialEq, Eq)]
struct Child {
    plural: &'static str,
    name: String,
    uid: String,
}

struct Course<'a> {
    world: &'a World,
    ns: &'a Namespace<'a>,
    slowest: Duration,
    /// How much the process had logged when the change began.
    logged: usize,
    /// Whether a right was missing, which is looked for again after a back-off of up to 30 s.
    was_forbidden: bool,
}

impl Course<'_> {
    /// Makes a change and undoes it; after each half the state must be right.
    fn make(&mut self, plural: &str, change: Change) {
        let admin = self.world.cluster.admin();
        let kind = kind_of(plural);
        wait_until(&format!("{plural} are as they were"), CAP, || {
            let told = self.world.sights(&kind, 0);
            if told.last().is_some_and(|last| last == "Synced") { Ok(()) } else { Err(format!("{told:?}")) }
        });
        self.logged = self.world.logged();
        match change {
            Change::Remove => {
                self.world.remove(plural);
                self.seen(plural, &["Absent"]);
                self.world.install(plural);
            }
            Change::Replace => {
                self.world.remove(plural);
                self.world.install(plural);
            }
            Change::Unserve => {
                self.world.serve(plural, false);
                self.seen(plural, &["Absent"]);
                self.world.serve(plural, true);
            }
            Change::Rival => {
                self.world.remove(plural);
                let rival = rival(plural);
                let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
                admin.post(path, &rival).ok();
                self.await_condition(rival["metadata"]["name"].as_str().unwrap(), "Established", "True");
                self.world.install(plural);
                let name = definition(plural)["metadata"]["name"].as_str().unwrap().to_owned();
                self.await_condition(&name, "NamesAccepted", "False");
                // What a package makes is the rival's now; what a capability needs is not there.
                let other = if plural == "envoyfilters" { "Forbidden" } else { "Absent" };
                self.seen(plural, &[other]);
                admin.delete(&format!("{path}/{}", rival["metadata"]["name"].as_str().unwrap())).ok();
            }
            Change::Forbid => {
                let role = admin.read(&path_of_role(plural)).ok();
                let rules = without(&role["rules"], plural);
                // Before, as nobody without rights can take a finalizer off.
                self.world.remove(plural);
                self.allow(plural, &rules, false);
                self.world.install(plural);
                self.seen(plural, &["Forbidden"]);
                self.allow(plural, &role["rules"], true);
            }
        }
        self.seen(plural, &["Synced"]);
    }

    /// Waits until the API server itself lists objects of a definition: its storage is made anew
    /// with each, which takes a busy machine a while.
    fn await_served(&self, plural: &str) {
        let object = definition(plural);
        let (group, version) = (&object["spec"]["group"], &object["spec"]["versions"][0]["name"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let path = format!("/apis/{}/{}/{plural}?limit=1", text(group), text(version));
        wait_until(&format!("the API server lists {plural}"), SERVED, || {
            let answer = self.world.cluster.admin().read(&path);
            if answer.code == 200 { Ok(()) } else { Err(format!("{answer}; {}", self.definitions())) }
        });
    }

    /// Waits until the process has said since the change began that it sees a definition so, and
    /// remembers how long that took from the moment from which it can.
    fn seen(&mut self, plural: &str, wanted: &[&str]) {
        let changed = Instant::now();
        if wanted == ["Synced"] {
            self.await_served(plural);
        }
        let (began, served) = (Instant::now(), changed.elapsed());
        let kind = kind_of(plural);
        wait_until(&format!("{plural} are {wanted:?}"), CAP, || {
            let told = self.world.sights(&kind, self.logged);
            // After each change it sees the kind otherwise first, and only then as before.
            let anew = wanted != ["Synced"] || told.iter().any(|watch_state| watch_state != "Synced");
            if anew && told.last().is_some_and(|last| wanted.contains(&last.as_str())) {
                Ok(())
            } else {
                Err(format!("{told:?}; {}", self.definitions()))
            }
        });
        // Whoever does not need it goes on.
        for capability in ["instances", "settings", "routes", "flavors"] {
            let state = match (reader(plural) == Some((capability, true)), wanted) {
                (false, _) | (true, ["Synced"]) => "Running",
                (true, ["Forbidden"]) => "Forbidden",
                (true, _) => "Waiting",
            };
            self.world.await_state(capability, state);
        }
        let took = began.elapsed();
        let is_forbidden = wanted == ["Forbidden"];
        let was_forbidden = std::mem::replace(&mut self.was_forbidden, is_forbidden);
        // A refusal is seen at the next list, and a right at the next try after it.
        if is_forbidden {
            return;
        }
        let cap = if was_forbidden { LONGEST_PAUSE + IN_TIME } else { IN_TIME };
        if !was_forbidden {
            self.slowest = self.slowest.max(took);
        }
        if std::env::var_os("INTERLOCK_SOAK").is_some() {
            assert!(took < cap, "{plural} {wanted:?} after {took:?}, served after {served:?}");
        }
    }

    /// Every definition of a group that is played with, for people.
    fn definitions(&self) -> String {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let found = self.world.cluster.admin().read(path).ok();
        let told = found["items"].as_array().into_iter().flatten().map(|o| {
            format!(
                "{}: deleted {}, {}",
                o["metadata"]["name"], o["metadata"]["deletionTimestamp"], o["status"]["conditions"]
            )
        });
        told.collect::<Vec<_>>().join("\n")
    }

    fn await_condition(&self, name: &str, type_: &str, status: &str) {
        let admin = self.world.cluster.admin();
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        wait_until(&format!("{name} has {type_}={status}"), CAP, || {
            let found = admin.read(&path).ok();
            let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let holds = conditions.iter().any(|c| c["type"] == type_ && c["status"] == status);
            if holds { Ok(()) } else { Err(format!("{conditions:?}")) }
        });
    }

    /// Sets the rules of a role, and waits until the API server decides by them.
    fn allow(&self, plural: &str, rules: &Value, allowed: bool) {
        let admin = self.world.cluster.admin();
        admin.merge_patch(&path_of_role(plural), &json!({"rules": rules})).ok();
        let group = definition(plural)["spec"]["group"].clone();
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": interlock_core::api::meta::CONTROLLER_USER,
                "groups": ["system:serviceaccounts", "system:serviceaccounts:interlock-system", "system:authenticated"],
                "resourceAttributes": { "group": group, "resource": plural, "verb": "list" },
            },
        });
        wait_until("the API server decides by the new role", CAP, || {
            let answer = admin.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).ok();
            if answer["status"]["allowed"] == allowed { Ok(()) } else { Err(answer.to_string()) }
        });
    }

    /// What packages made.
    fn children(&self) -> Vec<Child> {
        MADE.iter().flat_map(|(version, plural)| self.children_of(version, plural)).collect()
    }

    fn children_of(&self, api_version: &str, plural: &'static str) -> Vec<Child> {
        let path = format!("{}?labelSelector=heritage%3Dkudo", self.ns.path(api_version, plural, ""));
        let found = wait_until(&format!("{plural} are listed"), SERVED, || {
            let answer = self.ns.admin().read(&path);
            if answer.code == 200 { Ok(answer.body) } else { Err(answer.to_string()) }
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let objects = found["items"].as_array().cloned().unwrap_or_default();
        let child =
            |o: Value| Child { plural, name: text(&o["metadata"]["name"]), uid: text(&o["metadata"]["uid"]) };
        objects.into_iter().map(child).collect()
    }

    /// Makes what the API server deleted along with a definition, and waits for the plans.
    fn repair(&self) {
        self.world.create_package(self.ns);
        for (name, kind) in INSTANCES {
            self.world.create_instance(self.ns, name, kind);
        }
        self.await_rest();
        let made = self.children();
        let has_filter = |name: &str| made.iter().any(|child| child.name == format!("{name}-filter"));
        let bereft = INSTANCES.iter().filter(|(name, kind)| *kind == "filtered" && !has_filter(name));
        for (name, _) in bereft {
            let path = self.ns.path("kudo.dev/v1beta1", "instances", name);
            let again = json!({"spec": {"planExecution": {"planName": "deploy"}}});
            wait_until(&format!("{name} is deployed again"), CAP, || {
                let answer = self.ns.admin().merge_patch(&path, &again);
                if answer.code == 200 { Ok(()) } else { Err(answer.to_string()) }
            });
            wait_until(&format!("{name} has its EnvoyFilter"), CAP, || {
                let found = self.children();
                let there = found.iter().any(|child| child.name == format!("{name}-filter"));
                if there { Ok(()) } else { Err(format!("{found:?}")) }
            });
        }
        self.await_rest();
    }

    fn await_rest(&self) {
        let user = self.ns.admin();
        for (name, _) in INSTANCES {
            wait_until(&format!("{name} has come to rest"), CAP, || {
                let found = user.read(&self.ns.path("kudo.dev/v1beta1", "instances", name));
                let done = ["deploy", "update"].iter().all(|plan| {
                    matches!(
                        found.body["status"]["planStatus"][plan]["status"].as_str(),
                        Some("COMPLETE" | "NEVER_RUN")
                    )
                });
                let ran = found.body["status"]["planStatus"]["deploy"]["status"] == "COMPLETE";
                if done && ran && instances::idle(&found.body) { Ok(()) } else { Err(found.to_string()) }
            });
        }
    }
}

/// Writes to Instances beside the test.
struct Load {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
    thread: std::thread::JoinHandle<()>,
}

impl Load {
    fn start(ns: &Namespace<'_>) -> Self {
        let (stop, written) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (user, path) = (ns.admin(), ns.path("kudo.dev/v1beta1", "instances", "load"));
        let all = ns.path("kudo.dev/v1beta1", "instances", "");
        let (stopped, count) = (stop.clone(), written.clone());
        let thread = std::thread::spawn(move || {
            let object = json!({
                "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "metadata": { "name": "load" },
                "spec": { "operatorVersion": { "name": "filter-0.1.0" } },
            });
            for i in 0.. {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let edit = json!({"spec": {"parameters": {"VALUE": format!("v{i}")}}});
                // Most are refused while a plan runs or a kind is away; that is the point.
                let answers = [user.merge_patch(&path, &edit).code, user.post(&all, &object).code];
                count.fetch_add(answers.iter().filter(|code| **code < 300).count(), Ordering::Relaxed);
                // A load, not a flood.
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        Self { stop, written, thread }
    }

    fn writes(&self) -> usize {
        self.written.load(Ordering::Relaxed)
    }

    fn stop(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the load ends");
        self.written.load(Ordering::Relaxed)
    }
}
