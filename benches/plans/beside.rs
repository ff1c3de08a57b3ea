//! Plans of one Instance at a time, by Interlock and by KUDO's manager: how long they take, from the request that makes
//! the Instance to the last status, and what is asked of the API server for them, as its audit log tells.
//!
//! Each of the two has a control plane of its own, and they take turns.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use http::Method;

use crate::manager::{self, Manager};
use crate::requests::send;
use crate::results::{Goal, Row, median};
use crate::support::audit::{Audit, Request, tally};
use crate::support::testbed::Testbed;
use crate::support::{Cluster, Interlock, Namespace, block_on, wait_until};
use crate::{COLLECTION, FLAGS, PACKAGE, complete, defined_on, instance_of, path};

const ROUNDS: usize = 9;
const CAP: Duration = Duration::from_secs(60);
/// How long nothing is asked before a plan counts as done: KUDO's manager looks again each second.
const QUIET: Duration = Duration::from_secs(2);
const FAMILY: &str = include_str!("family.yaml");
const PIPE: &str = include_str!("pipe.yaml");
/// So soon a fake pod is ready, which both wait for.
const READY: &str = "--pod-ready-after=100ms";
const KUDO: &str = "KUDO's manager";

/// A package whose plan is compared.
struct Case {
    /// How the plan is called in rows.
    plan: &'static str,
    package: String,
    operator: &'static str,
    /// What Interlock may ask for one Instance.
    bounds: Option<Bounds>,
}

#[derive(Clone, Copy)]
struct Bounds {
    all: Goal,
    /// GETs and LISTs.
    looks: Goal,
}

/// One who carries plans out, on a control plane of his own.
struct Side<'a> {
    name: &'static str,
    cluster: &'a Cluster,
    audit: Audit,
}

/// What a case came to on one side.
struct Found {
    milliseconds: Vec<f64>,
    requests: Vec<Request>,
}

/// All rows.
pub fn rows() -> Vec<Row> {
    let clusters =
        [(), ()].map(|()| defined_on(Cluster::of(Testbed::up_with(&["--audit", READY], &[COLLECTION]))));
    let [ours, theirs] = &clusters;
    let _interlock = Interlock::install(ours, &FLAGS);
    let _manager = Manager::on(theirs);
    let audit = |cluster| Audit::of(cluster).expect("the testbed writes an audit log");
    let sides = [
        Side { name: "Interlock", cluster: ours, audit: audit(ours) },
        Side { name: KUDO, cluster: theirs, audit: audit(theirs).by(manager::USER) },
    ];
    // Pods on a fake node run what is executed in them on this machine.
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("page.html"), "<h1>page</h1>\n".repeat(100)).expect("a file");
    std::fs::write(folder.path().join("vars"), "A=1\nB=2\n").expect("a file");
    let pipe = PIPE.replace("FOLDER", &folder.path().display().to_string());
    let bounds = Bounds { all: Goal::AtMost(8.0), looks: Goal::AtMost(0.0) };
    let cases = [
        Case { plan: "three phases", package: PACKAGE.into(), operator: "three", bounds: Some(bounds) },
        Case { plan: "a child Instance", package: FAMILY.into(), operator: "parent", bounds: None },
        Case { plan: "files of a Pod", package: pipe, operator: "pipe", bounds: None },
    ];
    cases.iter().flat_map(|case| case.rows(&sides)).collect()
}

impl Case {
    fn rows(&self, sides: &[Side<'_>; 2]) -> Vec<Row> {
        let found = self.found(sides);
        let [ours, kudo] = &found;
        let ratio = median(ours.milliseconds.iter().zip(&kudo.milliseconds).map(|(our, other)| our / other));
        let [our, other] = found.each_ref().map(|found| median(found.milliseconds.iter().copied()));
        let name = format!("a plan of {}, from the Instance to COMPLETE, ms", self.plan);
        let mut rows = vec![Row::beside(&name, our, (KUDO, other), ratio, None)];
        let name = format!("requests of a plan of {}", self.plan);
        let counted = |name: &str, is_one: &dyn Fn(&Request) -> bool| {
            let [our, other] = found.each_ref().map(|found| found.each(is_one));
            Row::counted(name, our, (KUDO, other))
        };
        if let Some(Bounds { all, looks }) = self.bounds {
            rows.push(Row::alone(&name, ours.each(|_| true), Some(all)));
            rows.push(Row::alone(&format!("{name}, look-ups"), ours.each(|r| !r.writes()), Some(looks)));
        }
        rows.push(counted(&name, &|_| true));
        let all = ours.requests.iter().chain(&kudo.requests);
        let verbs: BTreeSet<&str> = all.map(|request| request.verb.as_str()).collect();
        rows.extend(verbs.into_iter().map(|verb| counted(&format!("{name}, {verb}"), &|r| r.verb == verb)));
        rows
    }

    fn found(&self, sides: &[Side<'_>; 2]) -> [Found; 2] {
        let spaces = sides.each_ref().map(|side| side.cluster.namespace(self.operator));
        for (side, ns) in sides.iter().zip(&spaces) {
            side.cluster.admin().create_package(ns.name(), &self.package);
            // What is looked up on first use is not measured.
            side.run(ns, self, "first");
        }
        rest(sides);
        let begun = sides.each_ref().map(|side| side.audit.since(0).1);
        let mut milliseconds = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            for ((side, ns), found) in sides.iter().zip(&spaces).zip(&mut milliseconds) {
                found.push(side.run(ns, self, &format!("demo-{round}")));
            }
        }
        rest(sides);
        let mut milliseconds = milliseconds.into_iter();
        [0, 1].map(|i| {
            let milliseconds = milliseconds.next().unwrap_or_default();
            let mut requests = sides[i].audit.since(begun[i]).0;
            requests.retain(|request| !request.is_about_leases());
            let (who, asked) = (sides[i].name, tally(&requests));
            println!(
                "plans: {}, {who}: ms {milliseconds:.0?}; {ROUNDS} Instances asked {asked:?}",
                self.plan
            );
            Found { milliseconds, requests }
        })
    }
}

impl Found {
    /// Requests for each Instance.
    fn each(&self, is_one: impl Fn(&Request) -> bool) -> f64 {
        self.requests.iter().filter(|request| is_one(request)).count() as f64 / ROUNDS as f64
    }
}

impl Side<'_> {
    /// How many milliseconds a plan takes that the creation of its Instance begins.
    fn run(&self, ns: &Namespace<'_>, case: &Case, name: &str) -> f64 {
        let client = self.cluster.admin().kube();
        let object = instance_of(case.operator, name);
        let path = path(ns.name());
        let took = block_on(async {
            let began = Instant::now();
            let made = send(&client, Method::POST, &path, &object);
            let both = futures::future::join(complete(&client, ns.name(), name), made);
            let ended = tokio::time::timeout(CAP, both).await.is_ok();
            let took = began.elapsed().as_secs_f64() * 1e3;
            ended.then_some(took)
        });
        took.unwrap_or_else(|| {
            let all = self.cluster.admin().read(&path).body;
            panic!("{}, {}: {name} is not COMPLETE after {CAP:?}: {all:#}", self.name, case.plan)
        })
    }
}

/// Waits until neither asks anything any more but for leases.
fn rest(sides: &[Side<'_>; 2]) {
    sides.iter().for_each(|side| side.audit.settle(side.cluster));
    let mut read = sides.each_ref().map(|side| side.audit.since(0).1);
    let mut since = Instant::now();
    wait_until("nothing is asked any more", CAP, || {
        for (side, read) in sides.iter().zip(&mut read) {
            let (seen, end) = side.audit.since(*read);
            *read = end;
            if seen.iter().any(|request| !request.is_about_leases()) {
                since = Instant::now();
            }
        }
        if since.elapsed() >= QUIET { Ok(()) } else { Err("something was just asked".to_owned()) }
    });
}
