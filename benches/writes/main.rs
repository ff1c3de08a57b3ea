//! What a user waits for: a write of an Instance through kube-apiserver, with Interlock registered;
//! with a webhook that writes the same stamp by one operation and does nothing else; with one that
//! writes nothing; and with none. Then the price of a stamp by the size of the spec, and by its form.
//!
//! All are registered at once on one control plane, each for a namespace of its own, and take turns
//! in every round; ratios are of numbers of one round. What Interlock is registered with is what is
//! rendered: policies as well.
//!
//! An Instance is created, which schedules its plan and stamps it. Nothing carries the plans out:
//! another process holds the lease.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod constant;
mod instances;
#[path = "../requests/mod.rs"]
mod requests;
#[path = "../results/mod.rs"]
mod results;
mod rounds;
#[path = "../https/server.rs"]
mod server;
#[allow(dead_code, unused_imports, reason = "no benchmark needs all of it")]
#[path = "../../tests/support/mod.rs"]
mod support;

use std::path::Path;

use constant::Constant;
use instances::{Stamp, operator_version, parameters};
use interlock_core::api::meta;
use requests::lead;
use results::{Goal, Row};
use rounds::{P50, P99, PROCESSOR, Rounds, World};
use support::{Cluster, Interlock, Namespace, block_on};

const FLAGS: [&str; 3] = ["--lease-duration=15s", "--renew-deadline=10s", "--retry-period=2s"];
const BYTES: usize = 9 * 1024;
const ROUNDS: usize = 11;
const WRITES: usize = 40;

/// Of the curve: sizes of Instances, and the stamps that are tried with each.
const SIZES: [usize; 4] = [1, 4, 9, 32];
const FORMS: [(&str, Option<Stamp>); 5] = [
    ("no stamp", None),
    ("a stamp with the spec", Some(Stamp::Inline)),
    ("a stamp that refers to it", Some(Stamp::Reference)),
    ("a stamp with two specs", Some(Stamp::Twice)),
    ("a stamp without quotes", Some(Stamp::Flow)),
];
const CURVE_ROUNDS: usize = 5;
const CURVE_WRITES: usize = 12;

fn main() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", folder] => constant::serve(Path::new(folder)),
        _ => bench(),
    }
}

fn bench() {
    let cluster = Cluster::own(&[]);
    let admin = cluster.admin();
    let spaces = ["interlock", "stamps", "nothing", "none"].map(|name| cluster.namespace(name));
    let [ours, stamps, nothing, _] = spaces.each_ref().map(Namespace::name);
    let tried = tried(&cluster);
    let parameters = parameters(BYTES);
    let flag = format!("--watch-namespaces={ours}");
    let _process = Interlock::install(&cluster, &[&[flag.as_str()], &FLAGS[..]].concat());
    let mut answers = constant::Stamps::new();
    answers.insert(stamps, Some(Stamp::Inline.text(stamps, parameters)));
    answers.insert(nothing, None);
    answers.extend(tried.iter().map(|one| (one.space.name(), one.stamp())));
    let _constant = Constant::start(&admin, &answers);
    admin.post(&path(&spaces[0], "operatorversions"), &operator_version(parameters)).ok();
    // A process that does not lead answers reviews and carries nothing out.
    lead(&admin, "another process", 3600);

    let names =
        ["interlock", "a webhook that writes the same stamp", "a webhook that writes nothing", "no webhook"];
    let mut worlds: Vec<World> = spaces
        .iter()
        .zip(names)
        .map(|(space, name)| World::new(name, path(space, "instances"), parameters))
        .collect();
    let client = admin.kube();
    let api_server = cluster.testbed().expect("a control plane of our own").ready.pids["kube-apiserver"];
    block_on(Rounds { client: &client, api_server, rounds: ROUNDS, writes: WRITES }.measure(&mut worlds));
    results::report(&rows(&worlds));

    let mut worlds: Vec<World> = tried.iter().map(Tried::world).collect();
    let rounds = Rounds { client: &client, api_server, rounds: CURVE_ROUNDS, writes: CURVE_WRITES };
    block_on(rounds.measure(&mut worlds));
    results::report(&curve(&worlds));
}

fn path(space: &Namespace<'_>, plural: &str) -> String {
    space.path(meta::KUDO_API_VERSION, plural, "")
}

fn rows(worlds: &[World]) -> Vec<Row> {
    let [ours, stamp, nothing, none] = worlds else { panic!("four worlds") };
    let write = format!("a write of an Instance of {} KB", BYTES / 1024);
    let price = format!("{write}, its stamp alone");
    let goal = Some(Goal::AtMost(1.15));
    [(P50, goal), (P99, goal), (PROCESSOR, None)]
        .into_iter()
        .flat_map(|(quantile, goal)| {
            [
                ours.beside(stamp, quantile, &write, goal),
                ours.beside(nothing, quantile, &write, None),
                ours.beside(none, quantile, &write, None),
                stamp.beside(nothing, quantile, &price, None),
            ]
        })
        .collect()
}

/// A size and a form of the curve, and its namespace.
struct Tried<'a> {
    kilobytes: usize,
    form: (&'static str, Option<Stamp>),
    space: Namespace<'a>,
}

fn tried(cluster: &Cluster) -> Vec<Tried<'_>> {
    let all = SIZES.into_iter().flat_map(|kilobytes| FORMS.map(|form| (kilobytes, form)));
    all.map(|(kilobytes, form)| Tried { kilobytes, form, space: cluster.namespace("curve") }).collect()
}

impl Tried<'_> {
    fn parameters(&self) -> usize {
        parameters(self.kilobytes * 1024)
    }

    fn stamp(&self) -> Option<String> {
        Some(self.form.1?.text(self.space.name(), self.parameters()))
    }

    fn world(&self) -> World {
        let name = format!("{} KB, {}", self.kilobytes, self.form.0);
        World::new(&name, path(&self.space, "instances"), self.parameters())
    }
}

fn curve(worlds: &[World]) -> Vec<Row> {
    let mut rows = Vec::new();
    for worlds in worlds.chunks(FORMS.len()) {
        for world in &worlds[1..] {
            let what = format!("a write of {}", world.name);
            rows.extend([P50, PROCESSOR].map(|number| world.beside(&worlds[0], number, &what, None)));
        }
    }
    rows
}
