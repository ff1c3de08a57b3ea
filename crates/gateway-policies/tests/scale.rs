//! What events cost in large topologies. The counts decide; the times are printed (`--nocapture`).

#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::print_stdout, missing_docs)]

#[path = "properties/kinds.rs"]
mod kinds;

use std::time::Instant;

use gateway_policies::{Changes, Cost, Index};
use serde_json::{Value, json};

const API: &str = "gateway.networking.k8s.io/v1";

fn gateway(listeners: usize) -> Value {
    let listeners: Vec<Value> = (0..listeners)
        .map(|number| {
            json!({"name": format!("l{number}"), "port": 80, "protocol": "HTTP", "hostname": format!("l{number}.org")})
        })
        .collect();
    json!({
        "apiVersion": API, "kind": "Gateway", "metadata": {"namespace": "shop", "name": "gw"},
        "spec": {"gatewayClassName": "eg", "listeners": listeners},
    })
}

fn route(number: usize) -> Value {
    json!({
        "apiVersion": API, "kind": "HTTPRoute", "metadata": {"namespace": "shop", "name": format!("r{number}")},
        "spec": {"parentRefs": [{"name": "gw"}], "rules": [{"name": "all"}]},
    })
}

fn policy(name: &str, kind: &str, target: &str, limit: usize) -> Value {
    json!({
        "apiVersion": "example.org/v1", "kind": "LimitPolicy",
        "metadata": {"namespace": "shop", "name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"targetRef": {"kind": kind, "name": target}, "limits": {"a": limit}},
    })
}

fn of_route(number: usize, limit: usize) -> Value {
    policy(&format!("p{number}"), "HTTPRoute", &format!("r{number}"), limit)
}

fn index(listeners: usize) -> Index {
    let mut index = Index::new(kinds::all());
    let class = json!({
        "apiVersion": API, "kind": "GatewayClass", "metadata": {"name": "eg"},
        "spec": {"controllerName": "example.org/ours"},
    });
    index.observe(&class).unwrap();
    index.observe(&gateway(listeners)).unwrap();
    index
}

fn timed<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = act();
    println!("{what}: {:?}", start.elapsed());
    result
}

fn build(index: &mut Index, objects: impl Iterator<Item = Value>) -> Cost {
    let mut all = Changes::default();
    for object in objects {
        let changes = index.observe(&object).unwrap();
        all.extend(Changes { cost: changes.cost, ..Changes::default() });
    }
    all.cost
}

#[test]
fn listeners_by_routes() {
    const LISTENERS: usize = 64;
    const ROUTES: usize = 63;
    let mut index = index(LISTENERS);
    let cost = timed("64 listeners, 63 routes: build", || {
        index.observe(&policy("all", "Gateway", "gw", 1)).unwrap();
        build(&mut index, (0..ROUTES).flat_map(|number| [route(number), of_route(number, 1)]))
    });
    assert_eq!(index.paths().count(), LISTENERS * ROUTES);
    // Each route once when it comes and once for its policy, and merged once for all its listeners.
    assert_eq!(cost.outputs, 2 * LISTENERS * ROUTES);
    assert_eq!(cost.merges, 2 * ROUTES);
    assert_eq!(cost.routes, ROUTES);
    // The Gateway's policy is brought up to date beside it.
    assert_eq!(cost.policies, ROUTES);

    let changes =
        timed("64 listeners, 63 routes: a route's policy", || index.observe(&of_route(7, 2)).unwrap());
    assert_eq!(changes.cost, Cost { routes: 0, outputs: LISTENERS, merges: 1, policies: 1 });
    let changes =
        timed("64 listeners, 63 routes: the Gateway", || index.observe(&gateway(LISTENERS - 1)).unwrap());
    assert_eq!((changes.cost.routes, changes.cost.outputs), (ROUTES, ROUTES));
    let event = index.deletion(&policy("all", "Gateway", "gw", 1)).unwrap();
    let difference =
        timed("64 listeners, 63 routes: difference of the Gateway's policy", || index.difference(event));
    let difference = difference.unwrap();
    assert_eq!(difference.cost.outputs, (LISTENERS - 1) * ROUTES);
    assert_eq!(difference.cost.merges, ROUTES);
}

#[test]
fn many_routes() {
    const ROUTES: usize = 10_000;
    let mut index = index(1);
    index.observe(&policy("all", "Gateway", "gw", 1)).unwrap();
    for tenth in 0..10 {
        let numbers = tenth * ROUTES / 10..(tenth + 1) * ROUTES / 10;
        let cost = timed(&format!("10,000 routes: tenth {}", tenth + 1), || {
            build(&mut index, numbers.flat_map(|number| [route(number), of_route(number, 1)]))
        });
        let tenth = ROUTES / 10;
        assert_eq!(cost, Cost { routes: tenth, outputs: 2 * tenth, merges: 2 * tenth, policies: tenth });
    }
    let changes = timed("10,000 routes: a route's policy", || index.observe(&of_route(7, 2)).unwrap());
    assert_eq!(changes.cost, Cost { routes: 0, outputs: 1, merges: 1, policies: 1 });
    assert_eq!(changes.outputs.len(), 1);
    let event = index.deletion(&of_route(7, 2)).unwrap();
    let difference =
        timed("10,000 routes: difference of a route's policy", || index.difference(event)).unwrap();
    assert_eq!(difference.cost, Cost { routes: 0, outputs: 1, merges: 1, policies: 1 });
    let deletion = index.deletion(&policy("all", "Gateway", "gw", 1)).unwrap();
    let difference =
        timed("10,000 routes: difference of the Gateway's policy", || index.difference(deletion.clone()));
    assert_eq!(difference.unwrap().cost.outputs, ROUTES);
    let changes = timed("10,000 routes: the Gateway's policy", || index.apply(deletion));
    assert_eq!(changes.cost.outputs, ROUTES);
}
