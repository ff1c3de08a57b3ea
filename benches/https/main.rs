//! Requests per second over HTTPS on one core: our webhook, beside an endpoint of the same
//! server that only parses the uid, and beside the same decision written with
//! controller-runtime.
//!
//! Each server runs pinned to one core, the load to another one. Servers take turns in every
//! round, and ratios are of numbers of one round, so that a machine that is busy with other
//! things hurts all alike. Beside requests per second stand requests per second of the server's
//! CPU time, which say the same on a quiet machine.
//!
//! With the word `train` the first two servers work for a profile instead (`hack/profile`).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod child;
mod load;
mod peer;
#[path = "../results/mod.rs"]
mod results;
mod reviewers;
#[path = "../reviews/mod.rs"]
mod reviews;
mod server;
mod training;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use interlock::cluster::certificates::authority::{authority, leaf};
use jiff::Timestamp;

use child::{Child, Cores};
use load::{Load, Measured, Pace};
use results::{Goal, Row, median};

/// Many and short: what else the machine does comes and goes within seconds, and is then the same
/// for the servers of one round.
const FLAT_ROUNDS: usize = 21;
const FLAT_ROUND: Duration = Duration::from_secs(1);
const STEADY_ROUNDS: usize = 7;
const STEADY_ROUND: Duration = Duration::from_secs(3);
const REVIEW_BYTES: usize = 9 * 1024;
const CONNECTIONS: usize = 16;
const STEADY_RATE: u32 = 1_000;

const OURS: &str = "interlock";
const FLOOR: &str = "an endpoint that only parses the uid";
const PEER: &str = "controller-runtime";

fn main() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", what, bytes, folder] => server::serve(reviewers::named(what, bytes), Path::new(folder)),
        ["load", folder, load] => load::main(Path::new(folder), load),
        ["train"] => match Cores::two() {
            Ok(cores) => training::train(&cores),
            Err(why) => {
                eprintln!("https: nothing to learn from: {why}");
                std::process::exit(1);
            }
        },
        _ => match Cores::two() {
            Ok(cores) => bench(&cores),
            Err(why) => println!("https: skipped: {why}"),
        },
    }
}

/// One server while it is measured.
struct Server {
    name: &'static str,
    path: &'static str,
    address: SocketAddr,
    child: Child,
    rounds: Vec<Measured>,
}

impl Server {
    fn measure(&self, folder: &Path, cores: &Cores, pace: Pace, seconds: Duration) -> Measured {
        let before = self.child.cpu();
        let load =
            Load { address: self.address, path: self.path.to_owned(), pace, seconds: seconds.as_secs_f64() };
        let mut measured = load::run(folder, &cores.load, &load);
        measured.server_cpu = (self.child.cpu() - before).as_secs_f64();
        measured
    }
}

fn bench(cores: &Cores) {
    let (folder, size) = given(REVIEW_BYTES);
    let folder = folder.as_path();
    println!(
        "https: {} bytes a review, {CONNECTIONS} connections, {FLAT_ROUNDS} rounds of {FLAT_ROUND:?}; servers on core {}, load on core {}",
        size, cores.server, cores.load
    );
    let mut servers: Vec<_> = [OURS, FLOOR].map(|name| start(name, REVIEW_BYTES, folder, cores)).into();
    match peer::start(folder, &cores.server) {
        Ok((child, address)) => {
            servers.push(Server { name: PEER, path: "/admit", address, child, rounds: Vec::new() });
        }
        Err(why) => println!("https: without {PEER}: {why}"),
    }
    for server in &servers {
        server.measure(folder, cores, Pace::Flat, Duration::from_millis(500));
    }
    for round in 1..=FLAT_ROUNDS {
        for server in &mut servers {
            let measured = server.measure(folder, cores, Pace::Flat, FLAT_ROUND);
            println!(
                "round {round}: {:>38}: {:>6.0} requests/s, p99 {:>6.2} ms; busy for {:>3.0} % of the time",
                server.name,
                measured.rate(),
                measured.p99 * 1e3,
                100.0 * measured.server_cpu / measured.seconds
            );
            server.rounds.push(measured);
        }
    }
    let mut rows = rates(&servers);
    rows.push(steady(&servers, folder, cores));
    results::report(&rows);
}

fn rates(servers: &[Server]) -> Vec<Row> {
    let goals = [Goal::AtLeast(0.6), Goal::AtLeast(15.0)];
    let size = REVIEW_BYTES / 1024;
    let mut rows = Vec::new();
    for (other, goal) in servers[1..].iter().zip(goals) {
        let mut row = |name: String, rate: fn(&Measured) -> f64| {
            let ours = &servers[0].rounds;
            let ratio = median(ours.iter().zip(&other.rounds).map(|(ours, other)| rate(ours) / rate(other)));
            let (ours, theirs) = (median(ours.iter().map(rate)), median(other.rounds.iter().map(rate)));
            rows.push(Row::beside(&name, ours, (other.name, theirs), ratio, Some(goal)));
        };
        row(format!("HTTPS requests/s on one core, {size} KB update"), Measured::rate);
        row(format!("HTTPS requests per second of CPU, {size} KB update"), Measured::rate_of_cpu);
    }
    rows
}

/// At a rate that leaves the core idle most of the time.
fn steady(servers: &[Server], folder: &Path, cores: &Cores) -> Row {
    let mut found = [Vec::new(), Vec::new()];
    for _ in 0..STEADY_ROUNDS {
        for (server, found) in servers.iter().zip(&mut found) {
            found.push(server.measure(folder, cores, Pace::PerSecond(STEADY_RATE), STEADY_ROUND).p99 * 1e3);
        }
    }
    println!("p99 at {STEADY_RATE}/s by round, ms: {OURS} {:.2?}; {FLOOR} {:.2?}", found[0], found[1]);
    let [ours, floor] = found.map(median);
    let mut row =
        Row::alone(&format!("HTTPS p99 at {STEADY_RATE} requests/s, ms"), ours, Some(Goal::AtMost(2.0)));
    row.other = Some(floor);
    FLOOR.clone_into(&mut row.of);
    row
}

fn start(name: &'static str, bytes: usize, folder: &Path, cores: &Cores) -> Server {
    let me = std::env::current_exe().expect("this program");
    let arguments = ["serve", name, &bytes.to_string(), &folder.to_string_lossy()];
    let mut child = Child::pinned(&cores.server, &me, &arguments);
    let address = child.first_line().parse().expect("the server says where it listens");
    Server { name, path: "/mutate", address, child, rounds: Vec::new() }
}

/// What servers and load read: a review of so many bytes or a little less, and `tls.crt`, `tls.key`
/// and `ca.crt`, for all servers alike. Their folder, and the exact size of the review.
fn given(bytes: usize) -> (PathBuf, usize) {
    let folder = results::folder().join("https");
    std::fs::create_dir_all(&folder).expect("a folder");
    let review = reviews::update(bytes).body;
    assert!(review.len() <= bytes, "the smallest review has {} bytes", review.len());
    write(&folder, "review.json", &review);
    let now = Timestamp::now();
    let hour = Duration::from_secs(3600);
    let ca = authority(now, hour).expect("a CA");
    let pair = leaf(&ca, &["127.0.0.1".to_owned()], now, hour).expect("a certificate");
    write(&folder, "ca.crt", ca.certificate.as_bytes());
    write(&folder, "tls.crt", pair.certificate.as_bytes());
    write(&folder, "tls.key", pair.key.as_bytes());
    (folder, review.len())
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    std::fs::write(folder.join(name), bytes).expect("a file in a folder of our own");
}
