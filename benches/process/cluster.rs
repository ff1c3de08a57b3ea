//! The process beside a real API server: its memory with nothing and with many Instances at rest,
//! how soon it is ready with them, and what a new list of them takes.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use interlock::install::{self, Part};

use crate::process::forget_peak;
use crate::results::{Goal, Row, median};
use crate::support::interlock::{apply, apply_installation, await_definitions};
use crate::support::process::{Used, peak, resident};
use crate::support::{Cluster, Interlock, block_on, wait_for};
use crate::{SETTLED, population};

const CAP: Duration = Duration::from_secs(300);
const STARTS: usize = 5;
/// Flags of a process that is measured as it runs in production, but for the place.
const FLAGS: [&str; 4] =
    ["--lease-duration=15s", "--renew-deadline=10s", "--retry-period=2s", "--shutdown-delay=0s"];

pub fn rows() -> Vec<Row> {
    let instances = std::env::var("INTERLOCK_BENCH_INSTANCES").ok().and_then(|n| n.parse().ok());
    let instances: usize = instances.unwrap_or(10_000);
    let cluster = Cluster::own(&[]);
    let process = Interlock::prepare(&cluster, &FLAGS);
    let admin = cluster.admin();
    // Without the webhook: the objects are as Interlock leaves them.
    let mut objects = install::objects(Part::All, &process.options(&FLAGS)).unwrap();
    objects.retain(|object| !object["kind"].as_str().is_some_and(judges_or_runs));
    apply(&admin, objects);
    await_definitions(&admin);

    process.start();
    process.await_ready();
    quiet(&process);
    let idle = resident(pid(&process));
    process.kill();

    let begun = Instant::now();
    block_on(population::make(&admin, instances));
    println!("process: {instances} Instances at rest, made in {:.0?}", begun.elapsed());
    apply_installation(&cluster, &process.options(&FLAGS));

    let (mut listening, mut ready, mut held, mut first) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STARTS {
        process.kill();
        let (heard, able) = start(&process);
        listening.push(heard);
        ready.push(able);
        quiet(&process);
        held.push(resident(pid(&process)));
        first.push(peak(pid(&process)));
    }
    println!("process: from exec to listening {listening:.0?} ms, to ready {ready:.0?} ms");
    println!(
        "process: {idle:.1} MiB idle; with {instances} Instances {held:.1?} MiB, at most {first:.1?} MiB"
    );

    let (before, after) = relisted(&cluster, &process);
    println!("process: {before:.1} MiB before all is listed again, at most {after:.1} MiB while it is");
    let with = |what: &str| format!("{what}, with {instances} Instances");
    let memory = Some(Goal::AtMost(if instances > 10_000 { 60.0 } else { 30.0 }));
    vec![
        Row::alone("resident memory, idle, MiB", idle, Some(Goal::AtMost(30.0))),
        Row::alone(&with("from exec to listening, ms"), median(listening), Some(Goal::AtMost(50.0))),
        Row::alone(
            &with("from exec to ready, ms"),
            median(ready),
            (instances <= 10_000).then_some(Goal::AtMost(2000.0)),
        ),
        Row::alone(&with("resident memory, MiB"), median(held), memory),
        Row::beside(
            &with("most memory while all is listed again, MiB"),
            after,
            ("before", before),
            after / before,
            Some(Goal::AtMost(1.5)),
        ),
    ]
}

/// Whether objects of a kind would judge how Instances are made here, or run a second process.
fn judges_or_runs(kind: &str) -> bool {
    kind == "Deployment" || kind.ends_with("WebhookConfiguration") || kind.starts_with("ValidatingAdmission")
}

fn pid(process: &Interlock) -> u32 {
    process.pid().expect("it runs")
}

/// Milliseconds until it listens, and until it is ready.
fn start(process: &Interlock) -> (f64, f64) {
    let begun = Instant::now();
    process.start_untethered();
    let address = ("127.0.0.1", process.webhook_port());
    while TcpStream::connect(address).is_err() {
        assert!(begun.elapsed() < CAP, "nothing listens");
        std::thread::sleep(Duration::from_micros(500));
    }
    let listening = begun.elapsed();
    while process.ops("/readyz").is_none_or(|(code, _)| code != 200) {
        assert!(begun.elapsed() < CAP, "it does not become ready");
        std::thread::sleep(Duration::from_millis(2));
    }
    (listening.as_secs_f64() * 1e3, begun.elapsed().as_secs_f64() * 1e3)
}

/// Waits until it uses no processor time that counts.
fn quiet(process: &Interlock) {
    let mut before = None;
    wait_for("the process has nothing to do", CAP, || {
        std::thread::sleep(SETTLED);
        let now = Used::by(pid(process)).expect("it runs").ticks;
        before.replace(now).is_some_and(|before| now - before <= 4)
    });
}

/// Memory before and at most while the API server, started anew, is asked for everything: what it
/// remembers of changes begins anew, so that no watch can be continued.
fn relisted(cluster: &Cluster, process: &Interlock) -> (f64, f64) {
    let testbed = cluster.testbed().expect("a control plane of our own");
    testbed.command("kill kube-apiserver");
    let (before, listed) = (resident(pid(process)), lists(process));
    forget_peak(pid(process));
    testbed.command("start kube-apiserver");
    wait_for("Instances are listed again", CAP, || lists(process) > listed);
    quiet(process);
    (before, peak(pid(process)))
}

/// Lists of Instances that the process has read to their end.
fn lists(process: &Interlock) -> u64 {
    let (_, metrics) = process.ops("/metrics").expect("its metrics");
    let ours =
        metrics.lines().find_map(|line| line.strip_prefix("interlock_lists_total{kind=\"Instance\"} "));
    ours.expect("Instances were listed").parse().expect("a number")
}
