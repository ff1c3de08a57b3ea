//! The process itself: how soon `interlock run` listens and is ready, and how much memory it
//! takes, with nothing to do and beside thousands of Instances at rest.
//!
//! The number of Instances is 10,000; `INTERLOCK_BENCH_INSTANCES=100000` asks for another one
//! (100,000 take five minutes to make).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cluster;
mod population;
mod process;
#[path = "../requests/mod.rs"]
mod requests;
#[path = "../results/mod.rs"]
mod results;
#[allow(dead_code, unused_imports, reason = "no benchmark needs all of it")]
#[path = "../../tests/support/mod.rs"]
mod support;

use std::time::Duration;

use process::Process;
use results::{Goal, Row, median};

const STARTS: usize = 15;
const SETTLED: Duration = Duration::from_secs(2);

fn main() {
    let mut rows = alone();
    rows.extend(cluster::rows());
    results::report(&rows);
}

/// The API server does not answer: ports open before anything is asked.
fn alone() -> Vec<Row> {
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, process::kubeconfig_of_nobody()).expect("a file in a folder of our own");
    let mut found = Vec::new();
    let mut resident = Vec::new();
    for start in 0..STARTS {
        let (process, took) = Process::start(&kubeconfig);
        found.push(took.as_secs_f64() * 1e3);
        if start < 3 {
            std::thread::sleep(SETTLED);
            resident.push(process.resident());
        }
    }
    println!("process: from exec to listening, ms: {found:.1?}; resident, MiB: {resident:.1?}");
    vec![
        Row::alone("from exec to listening, ms", median(found), Some(Goal::AtMost(50.0))),
        Row::alone(
            "resident memory, idle and without an API server, MiB",
            median(resident),
            Some(Goal::AtMost(30.0)),
        ),
    ]
}
