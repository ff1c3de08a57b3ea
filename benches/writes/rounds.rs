//! Worlds that take turns in rounds, so that a machine that is busy with other things hurts all alike.

use std::time::{Duration, Instant};

use futures::future::join_all;
use http::Method;
use serde_json::json;

use crate::instances::instance;
use crate::requests::send;
use crate::results::{Goal, Row, median};
use crate::support::process::Used;

pub const WRITERS: usize = 16;
/// Of the kernel's accounting, in milliseconds.
const TICK: f64 = 10.0;

/// Where Instances are written, and how long that took.
pub struct World {
    pub name: String,
    pub path: String,
    pub parameters: usize,
    pub rounds: Vec<Round>,
}

/// Of the writes of a round, in milliseconds.
#[derive(Clone, Copy)]
pub struct Round {
    p50: f64,
    p99: f64,
    processor: f64,
}

/// A number of a round, by its name.
pub type Number = (&'static str, fn(&Round) -> f64);
pub const P50: Number = ("p50", |round| round.p50);
pub const P99: Number = ("p99", |round| round.p99);
/// What a busy machine changes least.
pub const PROCESSOR: Number = ("processor time of the API server", |round| round.processor);

impl World {
    pub fn new(name: &str, path: String, parameters: usize) -> Self {
        Self { name: name.to_owned(), path, parameters, rounds: Vec::new() }
    }

    /// Beside another one that was measured in the same rounds.
    pub fn beside(&self, other: &Self, (number, of): Number, what: &str, goal: Option<Goal>) -> Row {
        let name = format!("{what}, {WRITERS} writers, {number}, ms");
        let mut ratios: Vec<f64> =
            self.rounds.iter().zip(&other.rounds).map(|(a, b)| of(a) / of(b)).collect();
        ratios.sort_by(f64::total_cmp);
        let [low, high] = [1, 3].map(|quarter| ratios[(ratios.len() - 1) * quarter / 4]);
        let ratio = median(ratios);
        println!(
            "{name}: {} over {}: {ratio:.2}, half of the rounds {low:.2} to {high:.2}",
            self.name, other.name
        );
        let [mine, theirs] = [self, other].map(|world| median(world.rounds.iter().map(of)));
        Row::beside(&name, mine, (&other.name, theirs), ratio, goal)
    }
}

/// How worlds are measured.
pub struct Rounds<'a> {
    pub client: &'a kube::Client,
    /// Process id of the API server.
    pub api_server: u32,
    /// One more goes before them.
    pub rounds: usize,
    /// By each writer, in a round.
    pub writes: usize,
}

impl Rounds<'_> {
    /// Measures all worlds in each round.
    pub async fn measure(&self, worlds: &mut [World]) {
        for number in 0..=self.rounds {
            for turn in 0..worlds.len() {
                let turn = (number + turn) % worlds.len();
                let round = self.round(&worlds[turn], &format!("r{number}")).await;
                worlds[turn].rounds.push(round);
            }
            // The API server holds as much in every round.
            for world in worlds.iter() {
                send(self.client, Method::DELETE, &world.path, &json!({})).await;
            }
            if number == 0 {
                worlds.iter_mut().for_each(|world| world.rounds.clear());
                continue;
            }
            let found = worlds.iter().map(|world| (&world.name, world.rounds[number - 1]));
            let found: Vec<String> = found
                .map(|(name, m)| format!("{name} {:.1}/{:.1}/{:.2}", m.p50, m.p99, m.processor))
                .collect();
            println!("round {number}: p50/p99/processor ms: {}", found.join("; "));
        }
    }

    /// Creates Instances from all writers at once.
    async fn round(&self, world: &World, prefix: &str) -> Round {
        let before = self.processor();
        let writers = (0..WRITERS).map(|writer| async move {
            let mut took = Vec::with_capacity(self.writes);
            for number in 0..self.writes {
                let object = instance(&format!("{prefix}-{writer}-{number}"), world.parameters);
                let begun = Instant::now();
                send(self.client, Method::POST, &world.path, &object).await;
                took.push(begun.elapsed());
            }
            took
        });
        let mut took: Vec<Duration> = join_all(writers).await.concat();
        took.sort_unstable();
        let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
        let processor = (self.processor() - before) / took.len() as f64;
        Round { p50: at(0.5), p99: at(0.99), processor }
    }

    /// Milliseconds that the API server has used.
    fn processor(&self) -> f64 {
        Used::by(self.api_server).expect("it runs").ticks as f64 * TICK
    }
}
