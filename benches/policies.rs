//! What a change of one policy costs until its outputs are there to be written: at 100, 1,000 and 10,000 routes with a
//! policy each, beside all of it made anew. With limits alone, and with authentication too.
//!
//! All routes are of one Gateway, so that its one output has all of them: the worst that an event can cost.

#![allow(clippy::expect_used, clippy::unwrap_used, missing_docs)]

#[path = "results/mod.rs"]
mod results;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use interlock_core::admission::lister::KindListers;
use interlock_core::api::object::ObjectKey;
use interlock_core::effect::Effect;
use interlock_core::kinds::inventory::Inventory as _;
use interlock_core::reconcile::{Facts, Lookup, Needs, ReconcileStep, View};
use interlock_gateway::policies::Attachments;
use results::{Goal, Row, median};
use serde_json::{Value, json};

/// Routes, and the same for people.
const SIZES: [(usize, &str); 3] = [(100, "100"), (1_000, "1,000"), (10_000, "10,000")];
const ROUNDS: usize = 9;

/// What Kuadrant's machinery takes for any event beside so many routes, in seconds of processor time: to build the topology,
/// and to walk the paths of one of its three kinds of policies (policy-machinery v0.10.0, measured on another machine).
const OF_KUADRANT: [(&str, f64); 2] = [("100", 0.19 * 3.0 + 0.024), ("1,000", 18.0 * 3.0 + 1.8)];

fn main() {
    let mut rows = Vec::new();
    for (kinds, what) in
        [(&["RateLimitPolicy"][..], "limits"), (&["RateLimitPolicy", "AuthPolicy"], "limits and guards")]
    {
        for (routes, shown) in SIZES {
            let before = resident();
            let mut world = World::of(routes, kinds);
            let bytes = resident().saturating_sub(before) as f64 / routes as f64;
            let rounds: Vec<(f64, f64)> =
                (0..ROUNDS).map(|round| (world.change(round), world.anew())).collect();
            let own = median(rounds.iter().map(|(own, _)| *own));
            let anew = median(rounds.iter().map(|(_, anew)| *anew));
            let ratio = median(rounds.iter().map(|(own, anew)| own / anew));
            let (low, high) = rounds
                .iter()
                .fold((f64::MAX, 0.0_f64), |(low, high), (own, _)| (low.min(*own), high.max(*own)));
            println!(
                "policies: {shown} routes, {what}: {own:.2} ms ({low:.2} to {high:.2}), anew {anew:.1} ms"
            );
            let name = format!("policies, a change beside {shown} routes, {what}, ms");
            rows.push(Row::beside(&name, own, ("all of it anew", anew), ratio, Some(Goal::AtMost(0.5))));
            if let Some((_, seconds)) = OF_KUADRANT.iter().find(|(size, _)| *size == shown) {
                let theirs = seconds * 1_000.0;
                rows.push(Row::beside(
                    &name,
                    own,
                    ("Kuadrant's machinery", theirs),
                    own / theirs,
                    Some(Goal::AtMost(0.01)),
                ));
            }
            rows.push(Row::alone(
                &format!("policies, memory a route beside {shown}, {what}, bytes"),
                bytes,
                None,
            ));
        }
    }
    results::report(&rows);
}

/// A Gateway with routes and policies, and what was written for it.
struct World {
    attachments: Attachments,
    objects: Vec<Value>,
    written: BTreeMap<ObjectKey, Arc<Value>>,
}

impl World {
    fn of(routes: usize, kinds: &[&str]) -> Self {
        let mut objects = vec![settings(), class(), gateway()];
        objects.extend((0..routes).map(route));
        for kind in kinds {
            objects.extend((0..routes).map(|n| policy(kind, n, 0)));
        }
        let mut world = Self { attachments: Attachments::default(), objects, written: BTreeMap::new() };
        world.objects.iter().for_each(|own| world.attachments.take(own));
        world.reconcile();
        world
    }

    /// Milliseconds from the report of a change to what is to be written for it.
    fn change(&mut self, round: usize) -> f64 {
        let changed = policy("RateLimitPolicy", round, round as u64 + 1);
        let began = Instant::now();
        self.attachments.take(&changed);
        let writes = self.reconcile();
        let took = began.elapsed();
        assert!(writes > 0, "a change is written");
        took.as_secs_f64() * 1_000.0
    }

    /// Milliseconds until all of it is made of the same objects.
    fn anew(&self) -> f64 {
        let began = Instant::now();
        let mut other =
            Self { attachments: Attachments::default(), objects: Vec::new(), written: BTreeMap::new() };
        self.objects.iter().for_each(|own| other.attachments.take(own));
        let writes = other.reconcile();
        let took = began.elapsed();
        assert!(writes > 0, "all of it is written");
        took.as_secs_f64() * 1_000.0
    }

    /// Writes what the Gateway wants, and says how much that is.
    fn reconcile(&mut self) -> usize {
        let reconciler = interlock_gateway::GATEWAY.reconciler.expect("Gateways are reconciled");
        let listers = self.attachments.listers(KindListers::default());
        let mut facts = Facts { listers, ..Facts::default() };
        let object = gateway();
        let now = "2026-01-02T00:00:00Z".parse().expect("a time");
        let effects = loop {
            match (reconciler.reconcile)(&View::new(&object, &facts, now)) {
                Ok(ReconcileStep::Write(effects) | ReconcileStep::InOrder(effects)) => break effects,
                Ok(ReconcileStep::Await(_)) => break Vec::new(),
                Err(needs) => self.look_up(&mut facts, needs),
            }
        };
        let written: Vec<Value> = effects
            .into_iter()
            .filter_map(|effect| match effect {
                Effect::Apply { object, .. } => Some(object),
                _ => None,
            })
            .collect();
        for object in &written {
            self.written.insert(ObjectKey::of(object).expect("a key"), Arc::new(object.clone()));
        }
        written.len()
    }

    fn look_up(&self, facts: &mut Facts, needs: Needs) {
        for key in needs.objects {
            let found = self.written.get(&key).map_or(Lookup::Absent, |own| Lookup::Found(own.clone()));
            facts.objects.insert(key, found);
        }
        for list in needs.lists {
            let is_in = |own: &Value| {
                list.labels.iter().all(|(name, value)| own["metadata"]["labels"][name] == **value)
            };
            let found = self.written.iter().filter(|(key, own)| key.gvk == list.gvk && is_in(own));
            let found = found.map(|(_, own)| own.clone()).collect();
            facts.lists.insert(list, found);
        }
    }
}

fn object(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    let metadata = json!({
        "namespace": "shop", "name": name, "uid": name, "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
    });
    json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
}

fn settings() -> Value {
    let policies = json!({
        "limitadors": [{"namespace": "system", "configMap": "limits", "host": "limitador.system"}],
        "authServers": [{"host": "auth.system"}],
    });
    json!({
        "apiVersion": "interlock.dev/v1alpha1", "kind": "Interlock", "metadata": {"name": "default"},
        "spec": {"policies": policies},
    })
}

const GATEWAY_API: &str = "gateway.networking.k8s.io/v1";

fn class() -> Value {
    let controller = "gateway.envoyproxy.io/gatewayclass-controller";
    json!({
        "apiVersion": GATEWAY_API, "kind": "GatewayClass", "metadata": {"name": "eg"}, "spec": {"controllerName": controller},
    })
}

fn gateway() -> Value {
    let listeners = json!([{"name": "http", "port": 80, "protocol": "HTTP"}]);
    object(GATEWAY_API, "Gateway", "gw", json!({"gatewayClassName": "eg", "listeners": listeners}))
}

fn route(n: usize) -> Value {
    let spec = json!({
        "parentRefs": [{"name": "gw"}], "hostnames": [format!("r{n}.example.org")],
        "rules": [{"backendRefs": [{"name": "backend", "port": 80}]}],
    });
    object(GATEWAY_API, "HTTPRoute", &format!("r{n}"), spec)
}

/// A policy of a route, in one of its versions.
fn policy(kind: &str, n: usize, version: u64) -> Value {
    let mut spec = match kind {
        "AuthPolicy" => {
            json!({"rules": {"authentication": {"user": {"jwt": {"issuerUrl": "https://issuer.example"}}}}})
        }
        _ => json!({"limits": {"user": {
            "rates": [{"limit": 5 + version, "window": "1m"}],
            "when": [{"predicate": format!("request.method == 'GET' && request.path != '/{version}'")}],
            "counters": [{"expression": "request.headers['x-user']"}],
        }}}),
    };
    let target = json!({"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": format!("r{n}")});
    spec["targetRef"] = target;
    object("kuadrant.io/v1", kind, &format!("p{n}"), spec)
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status of this process");
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("resident memory");
    kib.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
}
