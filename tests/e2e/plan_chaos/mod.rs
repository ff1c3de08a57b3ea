//! Plans of many Instances at once, while processes are killed and suspended and the API server is restarted at random
//! points: each run ends, and what it does it does once.

mod course;
mod ledger;
mod stored;

use std::time::{Duration, Instant};

use self::course::Course;
use crate::support::audit::await_rest;
use crate::support::random::Random;
use crate::support::testbed::Testbed;
use crate::support::{Cluster, Interlock, count, wait_for, wait_until};

const PLAN: &str = "deploy";
const CAP: Duration = Duration::from_secs(300);
/// That of every test process.
const LEASE: Duration = Duration::from_secs(3);
const LEASE_PATH: &str = "/apis/coordination.k8s.io/v1/namespaces/interlock-system/leases/interlock";

/// A control plane with an audit log, whose Pods take their time; `None` where there are no workloads.
fn plane() -> Option<Cluster> {
    let flags = [["--audit", "--pod-ready-after=200ms"], stored::FLAGS].concat();
    let cluster = Cluster::own(&flags);
    (cluster.testbed().is_some() && cluster.has_workloads()).then_some(cluster)
}

#[test]
fn plans_end_and_do_everything_once_while_processes_are_killed_and_suspended() {
    let Some(cluster) = plane() else { return };
    let mut random = Random::announced();
    let first = Interlock::install(&cluster, &[]);
    let mut course = Course::new(&cluster);

    course.disturb("kills", count(10, 100), &mut random, |_| {
        first.kill();
        // A dead process writes nothing: no other has to wait for the end of the lease.
        cluster.admin().delete(LEASE_PATH);
        first.start();
    });

    let second = second(&cluster);
    course.disturb("suspensions", count(2, 50), &mut random, |_| suspend_the_leader(&first, &second));
    await_rest(&cluster, "kills and suspensions");
    assert_calm(&[first, second]);
}

#[test]
fn plans_end_and_do_everything_once_while_the_api_server_is_restarted() {
    let Some(cluster) = plane() else { return };
    let Some(testbed) = cluster.testbed() else { return };
    let mut random = Random::announced();
    let processes = [Interlock::install(&cluster, &[]), second(&cluster)];
    let mut course = Course::new(&cluster);
    course.disturb("restarts of the API server", count(2, 20), &mut random, |i| restart(testbed, i));
    assert_calm(&processes);
}

fn second(cluster: &Cluster) -> Interlock {
    let second = Interlock::prepare(cluster, &[]);
    second.start();
    second.await_ready();
    second
}

#[track_caller]
fn assert_calm(processes: &[Interlock]) {
    for process in processes {
        assert!(!process.log().contains("panicked"), "{}", process.log());
    }
}

/// For twice the lease, within which the other leads and goes on with what was under way.
fn suspend_the_leader(first: &Interlock, second: &Interlock) {
    let (leader, other) = wait_until("one of two leads", CAP, || match (first.leads(), second.leads()) {
        (true, _) => Ok((first, second)),
        (_, true) => Ok((second, first)),
        _ => Err("none does".to_owned()),
    });
    leader.freeze(true);
    let since = Instant::now();
    wait_for("the other leads, and twice the lease is over", CAP, || {
        since.elapsed() >= 2 * LEASE && other.leads()
    });
    leader.freeze(false);
}

/// Now and then gracefully, which takes half a minute.
fn restart(testbed: &Testbed, i: usize) {
    testbed.command(&format!("{} kube-apiserver", if i % 5 == 4 { "stop" } else { "kill" }));
    testbed.command("start kube-apiserver");
    // It would wait as long before it asks the API server again.
    for command in ["kill", "start"] {
        testbed.command(&format!("{command} kube-scheduler"));
    }
}
