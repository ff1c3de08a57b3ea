//! What an event costs the topology: at 1,000, 10,000 and 100,000 nodes, each beside a rebuild of
//! all of it; and what a node takes.
//!
//! The world is made of equal parts, so that an event concerns as many roots in a large one as in
//! a small one: an OperatorVersion with twenty Instances of three objects each, and a Gateway
//! with a route to five Services. Events go all over it, in an order that no cache foresees.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

#[path = "results/mod.rs"]
mod results;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

use interlock_core::kinds;
use interlock_core::topology::{Epoch, Graph, GraphChange, KindId};
use results::{Goal, Row, median};
use serde_json::{Value, json};

/// Nodes of the worlds; the goals compare the first with the last.
const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
/// The same for people.
const SIZED: [&str; 3] = ["1,000 nodes", "10,000 nodes", "100,000 nodes"];
/// Samples of each kind of event, in one world and round.
const SAMPLES: usize = 2_000;
/// In a round, one world comes after the other, within parts of a second: what else the machine
/// does is then the same for all of them.
const ROUNDS: usize = 15;
const INSTANCES: usize = 20;
const MADE: usize = 3;
const SERVICES: usize = 5;

fn main() {
    let mut rows = Vec::new();
    let mut worlds = Vec::new();
    for size in SIZES {
        let before = resident();
        let world = World::of(size);
        let (nodes, edges) = world.graph.size();
        let bytes = (resident() - before) as f64 / nodes as f64;
        println!("topology: {nodes} nodes, {edges} edges, {bytes:.0} bytes of resident memory each");
        if size == SIZES[2] {
            rows.push(Row::alone("a node of 100,000, its edges included, bytes", bytes, None));
        }
        worlds.push(world);
    }
    let rebuilds: Vec<f64> = worlds.iter().map(World::rebuilds).collect();
    for (size, rebuild) in SIZED.iter().zip(&rebuilds) {
        rows.push(Row::alone(&format!("topology, a rebuild of {size}, us"), *rebuild, None));
    }
    for event in EVENTS {
        let round = |_| worlds.iter_mut().map(|world| world.cost(event)).collect();
        let rounds: Vec<Vec<f64>> = (0..ROUNDS).map(round).collect();
        let costs = [0, 1, 2].map(|size: usize| median(rounds.iter().map(|round| round[size])));
        println!("topology: {}: {costs:.2?} us", event.name);
        let name = |size: usize| format!("topology, {}: {}, us", event.name, SIZED[size]);
        for (size, goal) in [(1, None), (2, Some(Goal::AtMost(2.0)))] {
            let ratio = median(rounds.iter().map(|round| round[size] / round[0]));
            let of = (SIZED[0], costs[0]);
            rows.push(Row::beside(&name(size), costs[size], of, ratio, goal));
        }
        for (size, goal) in [(0, None), (1, None), (2, Some(Goal::AtMost(1e-3)))] {
            let (of, ratio) = (("a rebuild", rebuilds[size]), costs[size] / rebuilds[size]);
            rows.push(Row::beside(&name(size), costs[size], of, ratio, goal));
        }
    }
    results::report(&rows);
}

/// A graph and what it was made of.
struct World {
    graph: Graph,
    kinds: BTreeMap<&'static str, KindId>,
    parts: usize,
    version: u64,
    dice: u64,
}

/// Something that happens to one object, and is undone.
struct Event {
    name: &'static str,
    object: fn(usize, usize, u64) -> Value,
    roots: usize,
}

const EVENTS: [&Event; 4] = [
    &Event { name: "an Instance is edited", object: |part, which, n| instance(part, which, n), roots: 1 },
    &Event {
        name: "what an Instance made is edited",
        object: |part, which, n| made(part, which, 0, n),
        roots: 1,
    },
    &Event {
        name: "an OperatorVersion of twenty is edited",
        object: |part, _, n| operator_version(part, n),
        roots: INSTANCES,
    },
    &Event {
        name: "a route is sent to a Service that is not there",
        object: |part, _, n| route(part, SERVICES + n as usize),
        roots: 1,
    },
];

impl World {
    fn of(nodes: usize) -> Self {
        let mut graph = kinds::graph(interlock::kinds::all());
        let names = [
            ("kudo.dev", "OperatorVersion"),
            ("kudo.dev", "Instance"),
            ("", "Namespace"),
            ("", "ConfigMap"),
            ("", "Service"),
            ("gateway.networking.k8s.io", "Gateway"),
            ("gateway.networking.k8s.io", "HTTPRoute"),
        ];
        let kinds: BTreeMap<_, _> = names.map(|(group, kind)| (kind, graph.kind(group, kind))).into();
        for kind in kinds.values() {
            graph.kind_available(*kind, Epoch(1));
            graph.apply(*kind, Epoch(1), GraphChange::Listing(""));
        }
        let mut world = Self { graph, kinds, parts: 0, version: 0, dice: 1 };
        while world.graph.size().0 < nodes {
            each(world.parts, |object| world.take(object));
            world.parts += 1;
        }
        for kind in world.kinds.values() {
            world.graph.apply(*kind, Epoch(1), GraphChange::Synced(""));
        }
        world
    }

    fn take(&mut self, mut object: Value) {
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let kind = self.kinds[object["kind"].as_str().expect("a kind")];
        self.graph.apply(kind, Epoch(1), GraphChange::Listed(&object));
    }

    /// The middle of many, in microseconds; objects are parsed before.
    fn cost(&mut self, event: &Event) -> f64 {
        let mut found = Vec::with_capacity(SAMPLES);
        for _ in 0..SAMPLES {
            self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (self.dice >> 33) as usize;
            self.version += 1;
            let mut object = (event.object)(at % self.parts, at % INSTANCES, self.version);
            object["metadata"]["resourceVersion"] = self.version.to_string().into();
            let kind = self.kinds[object["kind"].as_str().expect("a kind")];
            let begun = Instant::now();
            let dirty = black_box(self.graph.apply(kind, Epoch(1), GraphChange::Applied(&object)));
            found.push(begun.elapsed().as_secs_f64() * 1e6);
            assert_eq!(dirty.roots.len(), event.roots, "whom {object} concerns");
        }
        median(found)
    }

    /// The middle of a few rebuilds, of more where one takes little.
    fn rebuilds(&self) -> f64 {
        let rounds = (SIZES[2] / self.graph.size().0).clamp(1, 9);
        median((0..rounds).map(|_| self.rebuild()))
    }

    /// What it takes to make all of it anew from parsed objects, in microseconds.
    fn rebuild(&self) -> f64 {
        let mut took = std::time::Duration::ZERO;
        let mut fresh = Self::of(0);
        for part in 0..self.parts {
            let mut objects = Vec::new();
            each(part, |object| objects.push(object));
            let begun = Instant::now();
            for object in objects {
                fresh.take(object);
            }
            took += begun.elapsed();
        }
        assert_eq!(fresh.graph.size().0, self.graph.size().0);
        took.as_secs_f64() * 1e6
    }
}

/// The objects of one part.
fn each(part: usize, mut take: impl FnMut(Value)) {
    take(object("v1", "Namespace", "", &format!("namespace-{part}"), json!({})));
    take(operator_version(part, 0));
    for which in 0..INSTANCES {
        take(instance(part, which, 0));
        for object in 0..MADE {
            take(made(part, which, object, 0));
        }
    }
    let listeners = json!({"spec": {"gatewayClassName": "kong", "listeners": [{"name": "http"}]}});
    let gateway = "gateway.networking.k8s.io/v1";
    take(object(gateway, "Gateway", &format!("namespace-{part}"), "gateway", listeners));
    for which in 0..SERVICES {
        let spec = json!({"spec": {"ports": [{"port": 80}]}});
        take(object("v1", "Service", &format!("namespace-{part}"), &format!("service-{which}"), spec));
    }
    take(route(part, 0));
}

fn object(api_version: &str, kind: &str, namespace: &str, name: &str, rest: Value) -> Value {
    let uid = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, format!("{kind}/{namespace}/{name}").as_bytes());
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "uid": uid.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z"},
    });
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = namespace.into();
    }
    json_patch::merge(&mut object, &rest);
    object
}

fn operator_version(part: usize, n: u64) -> Value {
    let spec = json!({"spec": {"operator": {"name": "kafka"}, "version": format!("1.0.{n}")}});
    object("kudo.dev/v1beta1", "OperatorVersion", &format!("namespace-{part}"), "kafka-1.0", spec)
}

fn instance(part: usize, which: usize, n: u64) -> Value {
    let rest = json!({
        "spec": {"operatorVersion": {"name": "kafka-1.0"}, "parameters": {
            "BROKER_COUNT": n.to_string(), "BROKER_CPUS": "2", "BROKER_MEM": "8Gi", "LOG_RETENTION_HOURS": "168"}},
        "status": {"planStatus": {"deploy": {"name": "deploy", "status": "COMPLETE", "phases": [
            {"name": "deploy", "status": "COMPLETE", "steps": [{"name": "deploy", "status": "COMPLETE"}]}]}}},
    });
    object("kudo.dev/v1beta1", "Instance", &format!("namespace-{part}"), &format!("kafka-{which}"), rest)
}

fn made(part: usize, which: usize, number: usize, n: u64) -> Value {
    let owner = &instance(part, which, 0)["metadata"]["uid"];
    let rest = json!({
        "metadata": {"labels": {"heritage": "kudo"}, "ownerReferences": [
            {"apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "name": format!("kafka-{which}"), "uid": owner}]},
        "data": {"server.properties": format!("broker.id={n}\nlog.dirs=/var/lib/kafka\nnum.io.threads=8\n")},
    });
    let name = format!("kafka-{which}-configuration-{number}");
    object("v1", "ConfigMap", &format!("namespace-{part}"), &name, rest)
}

fn route(part: usize, service: usize) -> Value {
    let spec = json!({"spec": {
        "parentRefs": [{"name": "gateway", "sectionName": "http"}],
        "rules": [{"backendRefs": [{"name": format!("service-{service}")}]}],
    }});
    object("gateway.networking.k8s.io/v1", "HTTPRoute", &format!("namespace-{part}"), "route", spec)
}

/// Resident memory of this process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status of this process");
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("resident memory");
    kib.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
}
