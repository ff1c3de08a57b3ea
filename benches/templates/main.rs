//! Rendering the largest real package, all its templates with its default parameters: by go-template, and by Go's
//! `text/template` with sprig 2.22.0 (`tests/peers/gotemplate`). Parsed and rendered, as for a package that is seen
//! first; and rendered alone, as for each later plan, for which Interlock keeps what it has parsed (KUDO parses each time).
//!
//! Both make the same text, which is checked. Time is measured inside each process, over many repetitions; the two take
//! turns.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod package;
mod peer;
#[path = "../../tests/support/process.rs"]
#[allow(dead_code, reason = "a benchmark needs the builds alone")]
mod process;
#[path = "../results/mod.rs"]
mod results;
#[path = "../../tests/support/shared.rs"]
mod shared;

use std::time::Instant;

use go_template::{Generator, Never, Root, Template, Value};
use interlock_kudo::package::functions;
use package::Package;
use peer::Peer;
use results::{Goal, Row, median};

const ROUNDS: usize = 9;
const REPETITIONS: usize = 50;

/// How long all templates take, in microseconds.
struct Times {
    /// Parsed and rendered.
    both: f64,
    /// Rendered.
    rendered: f64,
}

impl Times {
    #[expect(clippy::cast_precision_loss, reason = "a round takes no centuries")]
    fn of(both: u128, rendered: u128) -> Self {
        let each = |nanoseconds: u128| nanoseconds as f64 / 1e3 / REPETITIONS as f64;
        Self { both: each(both), rendered: each(rendered) }
    }
}

fn main() {
    let Some(package) = Package::largest() else { return };
    let mut peer = Peer::start();
    // What is looked up on first use is not measured.
    let (text, _) = ours(&package);
    let (said, _) = peer.measure(&package);
    assert_eq!(text, said, "Go renders another text");
    let (mut our, mut go) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        go.push(peer.measure(&package).1);
        our.push(ours(&package).1);
    }
    println!(
        "templates: {}, {} files of {} bytes, {} bytes rendered",
        package.name,
        package.templates.len(),
        package.templates.iter().map(|(_, template)| template.len()).sum::<usize>(),
        text.len()
    );
    let row = |what: &str, of: fn(&Times) -> f64| {
        let told = |times: &[Times]| times.iter().map(of).collect::<Vec<f64>>();
        println!("templates: {what}, us: {:.0?}; Go {:.0?}", told(&our), told(&go));
        let ratio = median(our.iter().zip(&go).map(|(our, go)| of(our) / of(go)));
        let name = format!("the largest real package {what}, us");
        let other = ("Go with sprig", median(told(&go)));
        Row::beside(&name, median(told(&our)), other, ratio, Some(Goal::AtMost(1.0)))
    };
    results::report(&[
        row("parsed and rendered", |times| times.both),
        row("rendered", |times| times.rendered),
    ]);
}

/// What go-template makes of it, all files one after the other.
fn ours(package: &Package) -> (String, Times) {
    let data = Value::from(package.data.clone());
    let root = Root::from(&data);
    let generator = Generator::new(jiff::Timestamp::UNIX_EPOCH, [7; 32]);
    let parse = |name: &str, text: &str| functions::parse(name, text).expect("a template");
    let render =
        |template: &Template| template.render_with(&root, &generator, &Never).expect("it is rendered");
    let mut parsed = Vec::new();
    let began = Instant::now();
    for _ in 0..REPETITIONS {
        parsed = package.templates.iter().map(|(name, text)| parse(name, text)).collect();
        parsed.iter().for_each(|template| drop(std::hint::black_box(render(template))));
    }
    let both = began.elapsed().as_nanos();
    let mut texts = Vec::new();
    let began = Instant::now();
    for _ in 0..REPETITIONS {
        texts = parsed.iter().map(render).collect::<Vec<String>>();
    }
    let rendered = began.elapsed().as_nanos();
    (texts.concat(), Times::of(both, rendered))
}

/// Where `shared` says what it left out.
fn announce(said: &str) {
    println!("{said}");
}
