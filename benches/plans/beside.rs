//! Plans of one Instance at a time, by Interlock and by KUDO's manager: how long they take, from the request that makes
//! the Instance to the last status, and what is asked of the API server for them, as its audit log tells.
//!
//! Each of the two has a control plane of its own, and they take turns.

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
const QUIET: Duration = Duration::from_secs(3);
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
    /// Of requests, beside those of KUDO; a bound for ours alone where KUDO is not what binds it.
    goal: Option<Goal>,
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
    let cases = [
        Case {
            plan: "three phases",
            package: PACKAGE.to_owned(),
            operator: "three",
            goal: Some(Goal::AtMost(8.0)),
        },
        Case { plan: "a KudoOperator task", package: FAMILY.to_owned(), operator: "parent", goal: None },
        Case { plan: "a Pipe task", package: pipe, operator: "pipe", goal: None },
    ];
    cases.iter().flat_map(|case| case.rows(&sides)).collect()
}

impl Case {
    fn rows(&self, sides: &[Side<'_>; 2]) -> Vec<Row> {
        let [ours, kudo] = self.found(sides);
        let ratio = median(ours.milliseconds.iter().zip(&kudo.milliseconds).map(|(our, other)| our / other));
        let name = format!("{}: from the Instance to COMPLETE, ms", self.plan);
        let other = (KUDO, median(kudo.milliseconds.iter().copied()));
        let our = median(ours.milliseconds.iter().copied());
        let mut rows = vec![Row::beside(&name, our, other, ratio, Some(Goal::AtMost(1.0)))];
        let name = format!("{}: requests of an Instance", self.plan);
        let [our, other] = [&ours, &kudo].map(|found| found.each(|_| true));
        rows.extend(self.goal.map(|goal| Row::alone(&name, our, Some(goal))));
        rows.push(Row::beside(&name, our, (KUDO, other), our / other, Some(Goal::AtMost(1.0))));
        let mut verbs: Vec<&str> =
            ours.requests.iter().chain(&kudo.requests).map(|request| request.verb.as_str()).collect();
        verbs.sort_unstable();
        verbs.dedup();
        rows.extend(verbs.into_iter().map(|verb| {
            let [our, other] = [&ours, &kudo].map(|found| found.each(|request| request.verb == verb));
            Row::counted(&format!("{name}, {verb}"), our, (KUDO, other))
        }));
        rows
    }

    fn found(&self, sides: &[Side<'_>; 2]) -> [Found; 2] {
        let spaces = sides.each_ref().map(|side| side.cluster.namespace(self.operator));
        for (side, ns) in sides.iter().zip(&spaces) {
            side.cluster.admin().create_package(ns.name(), &self.package);
            // What is looked up on first use is not measured.
            side.run(ns, self, "first");
            side.rest();
        }
        let begun = sides.each_ref().map(|side| side.audit.since(0).1);
        let mut milliseconds = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            for ((side, ns), found) in sides.iter().zip(&spaces).zip(&mut milliseconds) {
                found.push(side.run(ns, self, &format!("demo-{round}")));
            }
        }
        let [ours, kudo] = milliseconds;
        let mut found =
            [ours, kudo].into_iter().zip(sides).zip(begun).map(|((milliseconds, side), begun)| {
                side.rest();
                let mut requests = side.audit.since(begun).0;
                requests.retain(|request| !request.is_about_leases());
                println!(
                    "plans: {}, {}: ms {milliseconds:.0?}; of {ROUNDS} Instances {:?}",
                    self.plan,
                    side.name,
                    tally(&requests)
                );
                Found { milliseconds, requests }
            });
        [(); 2].map(|()| found.next().expect("two sides"))
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

    /// Waits until nothing is asked any more but for leases.
    fn rest(&self) {
        let count = || self.audit.requests().iter().filter(|request| !request.is_about_leases()).count();
        self.audit.settle(self.cluster);
        let (mut seen, mut since) = (count(), Instant::now());
        wait_until(&format!("{} asks nothing more", self.name), CAP, || {
            let found = count();
            if found != seen {
                (seen, since) = (found, Instant::now());
            }
            if since.elapsed() >= QUIET { Ok(()) } else { Err(format!("{found} requests")) }
        });
    }
}
