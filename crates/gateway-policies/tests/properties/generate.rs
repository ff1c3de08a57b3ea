//! Objects and histories from seeds. Few names, so that most references meet.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// SplitMix64.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn is(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.below(last + 1));
        }
    }
}

#[derive(Debug)]
pub enum Step {
    Apply(Value),
    Delete(Value),
}

pub fn step(dice: &mut Dice, world: &BTreeMap<String, Value>) -> Step {
    if !world.is_empty() && dice.is(15) {
        let gone = dice.below(world.len());
        return Step::Delete(world.values().nth(gone).unwrap().clone());
    }
    Step::Apply(object(dice))
}

const NAMESPACES: [&str; 3] = ["a", "a-b", "c"];
const HOSTNAMES: [&str; 7] = [
    "*.example.com",
    "www.example.com",
    "a.b.example.com",
    "*.b.example.com",
    "example.com",
    "other.org",
    "*.org",
];
const ROUTES: [&str; 5] = ["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"];
const GROUP: &str = "gateway.networking.k8s.io";
const EXPERIMENTAL: &str = "gateway.networking.x-k8s.io";

pub fn object(dice: &mut Dice) -> Value {
    match dice.below(20) {
        0 | 1 => gateway_class(dice),
        2..=4 => gateway(dice),
        5 | 6 => listener_set(dice),
        7..=10 => route(dice),
        11 => namespace(dice),
        12 => service(dice),
        13 => grant(dice),
        14 | 15 => certificate(dice),
        _ => limit(dice),
    }
}

fn meta(namespace: &str, name: &str) -> Value {
    json!({"namespace": namespace, "name": name})
}

fn named(dice: &mut Dice, names: &[&str]) -> Value {
    let (namespace, name) = (dice.one(&NAMESPACES), dice.one(names));
    meta(namespace, name)
}

fn gateway_class(dice: &mut Dice) -> Value {
    let (name, controller) =
        if dice.is(85) { ("ours", super::CONTROLLER) } else { ("theirs", "example.org/theirs") };
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "GatewayClass", "metadata": {"name": name},
        "spec": {"controllerName": controller},
    })
}

fn gateway(dice: &mut Dice) -> Value {
    let class = if dice.is(85) { "ours" } else { dice.one(&["theirs", "absent"]) };
    let mut spec = json!({"gatewayClassName": class, "listeners": listeners(dice)});
    if dice.is(70) {
        spec["allowedListeners"] = json!({"namespaces": namespaces(dice)});
    }
    let metadata = named(dice, &["g", "h"]);
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "Gateway", "metadata": metadata, "spec": spec})
}

fn listener_set(dice: &mut Dice) -> Value {
    let mut parent = json!({"name": dice.one(&["g", "h"])});
    if dice.is(60) {
        parent["namespace"] = json!(dice.one(&NAMESPACES));
    }
    let mut listeners = listeners(dice);
    let mut metadata = named(dice, &["s", "t"]);
    created(dice, &mut metadata);
    let is_experimental = dice.is(30);
    let (version, kind) = if is_experimental {
        (format!("{EXPERIMENTAL}/v1alpha1"), "XListenerSet")
    } else {
        (format!("{GROUP}/v1"), "ListenerSet")
    };
    if is_experimental && dice.is(20) {
        for listener in &mut listeners {
            listener.as_object_mut().unwrap().remove("port");
        }
    }
    json!({
        "apiVersion": version, "kind": kind, "metadata": metadata,
        "spec": {"parentRef": parent, "listeners": listeners},
    })
}

fn listeners(dice: &mut Dice) -> Vec<Value> {
    let count = dice.below(4);
    (0..count)
        .map(|index| {
            let protocol =
                dice.one(&["HTTP", "HTTP", "HTTPS", "HTTPS", "TLS", "TCP", "UDP", "example.org/own"]);
            let name = ["x", "y", "z"][index];
            let mut listener =
                json!({"name": name, "port": dice.one(&[80, 443, 8080, 8443]), "protocol": protocol});
            if dice.is(50) {
                listener["hostname"] = json!(dice.one(&HOSTNAMES));
            }
            if dice.is(30) {
                listener["tls"] = json!({"mode": dice.one(&["Terminate", "Passthrough"])});
            }
            let mut allowed = Map::new();
            if dice.is(70) {
                allowed.insert("namespaces".to_owned(), namespaces(dice));
            }
            if dice.is(20) {
                allowed.insert(
                    "kinds".to_owned(),
                    json!([{"kind": dice.one(&ROUTES)}, {"group": "example.org", "kind": "HTTPRoute"}]),
                );
            }
            listener["allowedRoutes"] = Value::Object(allowed);
            listener
        })
        .collect()
}

fn namespaces(dice: &mut Dice) -> Value {
    let from = dice.one(&["All", "All", "Same", "Selector", "None"]);
    let mut rule = json!({"from": from});
    if from == "Selector" && dice.is(90) {
        let expression = match dice.below(5) {
            0 => json!({"key": "team", "operator": "In", "values": ["red", "blue"]}),
            1 => json!({"key": "team", "operator": "NotIn", "values": ["red"]}),
            2 => json!({"key": "team", "operator": "Exists"}),
            3 => json!({"key": "team", "operator": "DoesNotExist"}),
            _ => json!({"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["a"]}),
        };
        rule["selector"] = match dice.below(3) {
            0 => json!({"matchLabels": {"team": dice.one(&["red", "blue"])}}),
            1 => json!({"matchExpressions": [expression]}),
            _ => json!({}),
        };
    }
    rule
}

fn route(dice: &mut Dice) -> Value {
    let parents: Vec<Value> = (0..1 + dice.below(3)).map(|_| parent_ref(dice)).collect();
    let hostnames: Vec<&str> = (0..dice.below(3)).map(|_| dice.one(&HOSTNAMES)).collect();
    let mut spec = json!({"parentRefs": parents, "hostnames": hostnames});
    if dice.is(90) {
        let rules: Vec<Value> = (0..dice.below(4)).map(|_| rule(dice)).collect();
        spec["rules"] = json!(rules);
    }
    let kind = if dice.is(60) { "HTTPRoute" } else { dice.one(&ROUTES) };
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": named(dice, &["r", "q"]), "spec": spec})
}

fn parent_ref(dice: &mut Dice) -> Value {
    let (kind, name) = match dice.below(10) {
        0..=5 => (None, dice.one(&["g", "h"])),
        6 | 7 => (Some("ListenerSet"), dice.one(&["s", "t"])),
        8 => (Some("XListenerSet"), dice.one(&["s", "t"])),
        _ => (Some(dice.one(&["GatewayClass", "Mesh"])), "g"),
    };
    let mut parent = json!({"name": name});
    if let Some(kind) = kind {
        parent["kind"] = json!(kind);
        if kind == "XListenerSet" {
            parent["group"] = json!(EXPERIMENTAL);
        }
    }
    if dice.is(60) {
        parent["namespace"] = json!(dice.one(&NAMESPACES));
    }
    if dice.is(30) {
        parent["sectionName"] = json!(dice.one(&["x", "y", "z", ""]));
    }
    if dice.is(20) {
        parent["port"] = json!(dice.one(&[80, 443]));
    }
    parent
}

fn rule(dice: &mut Dice) -> Value {
    let mut rule = json!({});
    if dice.is(50) {
        rule["name"] = json!(dice.one(&["one", "rule-1", "rule-2", ""]));
    }
    if dice.is(40) {
        let mut backend = json!({"name": dice.one(&["v", "w"])});
        if dice.is(50) {
            backend["namespace"] = json!(dice.one(&NAMESPACES));
        }
        if dice.is(60) {
            backend["port"] = json!(dice.one(&[80, 443]));
        }
        if dice.is(10) {
            backend["kind"] = json!("Bucket");
        }
        rule["backendRefs"] = json!([backend]);
    }
    rule
}

fn namespace(dice: &mut Dice) -> Value {
    let mut metadata = json!({"name": dice.one(&NAMESPACES)});
    if dice.is(70) {
        metadata["labels"] = json!({"team": dice.one(&["red", "blue", "green"])});
    }
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
}

fn service(dice: &mut Dice) -> Value {
    let ports =
        if dice.is(50) { json!([{"port": 80}]) } else { json!([{"port": 80, "name": "web"}, {"port": 443}]) };
    json!({"apiVersion": "v1", "kind": "Service", "metadata": named(dice, &["v", "w"]), "spec": {"ports": ports}})
}

fn grant(dice: &mut Dice) -> Value {
    let mut to = json!({"group": "", "kind": dice.one(&["Service", "Service", "Secret"])});
    if dice.is(40) {
        to["name"] = json!(dice.one(&["v", "w"]));
    }
    let from = json!({"group": GROUP, "kind": dice.one(&ROUTES), "namespace": dice.one(&NAMESPACES)});
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ReferenceGrant", "metadata": named(dice, &["grant"]),
        "spec": {"from": [from], "to": [to]},
    })
}

fn created(dice: &mut Dice, metadata: &mut Value) {
    if dice.is(90) {
        let time = dice.one(&["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-01-02T00:00:00+01:00"]);
        metadata["creationTimestamp"] = json!(time);
    }
    if dice.is(5) {
        metadata["deletionTimestamp"] = json!("2026-02-01T00:00:00Z");
    }
}

fn target(dice: &mut Dice, kinds: &[&str]) -> Value {
    let kind = dice.one(kinds);
    let (group, names, sections): (_, &[&str], &[&str]) = match kind {
        "Gateway" => (GROUP, &["g", "h"], &["x", "y"]),
        "ListenerSet" => (GROUP, &["s", "t"], &["x", "y"]),
        "XListenerSet" => (EXPERIMENTAL, &["s", "t"], &["x", "y"]),
        "GatewayClass" => (GROUP, &["ours", "theirs"], &[]),
        "Service" => ("", &["v", "w"], &["web", "443"]),
        _ => (GROUP, &["r", "q"], &["one", "rule-1", "rule-2", "rule-3"]),
    };
    let mut target = json!({"group": group, "kind": kind, "name": dice.one(names)});
    if !sections.is_empty() && dice.is(40) {
        target["sectionName"] = json!(dice.one(sections));
    }
    target
}

fn certificate(dice: &mut Dice) -> Value {
    let mut metadata = named(dice, &["p", "o", "m"]);
    created(dice, &mut metadata);
    json!({
        "apiVersion": "example.org/v1", "kind": "CertificatePolicy", "metadata": metadata,
        "spec": {"targetRef": target(dice, &["Gateway", "Service"]), "limits": {"one": 1}},
    })
}

fn limit(dice: &mut Dice) -> Value {
    let kinds = [
        "Gateway",
        "Gateway",
        "HTTPRoute",
        "HTTPRoute",
        "GRPCRoute",
        "ListenerSet",
        "XListenerSet",
        "GatewayClass",
    ];
    let is_broken = dice.is(5);
    let mut metadata = named(dice, if is_broken { &["broken"] } else { &["p", "o", "m"] });
    created(dice, &mut metadata);
    let mut limits = Map::new();
    for _ in 0..1 + dice.below(3) {
        limits.insert(dice.one(&["one", "two", "three", "four"]).to_owned(), json!(dice.below(3)));
    }
    let mut block = json!({"limits": limits});
    match dice.below(3) {
        0 => block["strategy"] = json!("merge"),
        1 => block["strategy"] = json!("atomic"),
        _ => {}
    }
    let mut spec = match dice.below(3) {
        0 => json!({"limits": limits}),
        1 => json!({"defaults": block}),
        _ => json!({"overrides": block}),
    };
    if is_broken {
        spec = json!({"defaults": block, "overrides": block});
    }
    if dice.is(75) {
        spec["targetRef"] = target(dice, &kinds);
    } else {
        let targets: Vec<Value> = (0..1 + dice.below(2)).map(|_| target(dice, &kinds)).collect();
        spec["targetRefs"] = json!(targets);
    }
    json!({"apiVersion": "example.org/v1", "kind": "LimitPolicy", "metadata": metadata, "spec": spec})
}

/// Any JSON, a few levels deep.
pub fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z*.#/\"\\\\\\PC]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-zA-Z]{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Puts junk into a random place of an object.
pub fn damage(dice: &mut Dice, value: &mut Value, junk: &Value) {
    let is_here = dice.is(20);
    match value {
        Value::Object(map) if !map.is_empty() && !is_here => {
            let key = dice.below(map.len());
            if let Some(inner) = map.values_mut().nth(key) {
                damage(dice, inner, junk);
            }
        }
        Value::Array(list) if !list.is_empty() && !is_here => {
            let place = dice.below(list.len());
            damage(dice, &mut list[place], junk);
        }
        _ => *value = junk.clone(),
    }
}
