//! A second implementation, from the same sheet of rules: everything anew each time, on raw JSON.

mod conflicts;
mod links;

use std::collections::{BTreeMap, BTreeSet};

use links::{World, age, backends, carried, list, locator, rule_names, text};
use serde_json::{Map, Value, json};

/// Whether a policy acts, who replaced rules of it, and whether any was replaced.
type State = (bool, BTreeSet<String>, bool);
type States = BTreeMap<String, State>;

/// A policy: everything that the fold needs.
struct Policy<'a> {
    object: &'a Value,
    short: String,
    targets: BTreeSet<String>,
    overrides: bool,
    merges: bool,
    /// None: never valid.
    rules: Option<BTreeMap<String, Value>>,
    age: (String, String),
}

fn policies<'a>(world: &World<'a>, kind: &'a str) -> Vec<Policy<'a>> {
    let mut all: Vec<Policy> = world
        .0
        .iter()
        .copied()
        .filter(|object| text(object, "/kind") == kind)
        .map(|object| {
            let namespace = text(object, "/metadata/namespace");
            let spec = &object["spec"];
            let references = spec.get("targetRef").into_iter().chain(list(spec, "/targetRefs"));
            let targets = references.map(|reference| {
                let (kind, name) = (text(reference, "/kind"), text(reference, "/name"));
                let object = if kind == "GatewayClass" {
                    format!("{kind}/{name}")
                } else {
                    format!("{kind}/{namespace}/{name}")
                };
                let section = text(reference, "/sectionName");
                if section.is_empty() { object } else { format!("{object}#{section}") }
            });
            let used: Vec<&Value> =
                [spec.get("defaults"), spec.get("overrides")].into_iter().flatten().collect();
            let block = used.first().copied().unwrap_or(spec);
            let limits = block["limits"].as_object().unwrap();
            let rules = limits.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            let short = format!("{namespace}/{}", text(object, "/metadata/name"));
            Policy {
                object,
                targets: targets.collect(),
                overrides: spec.get("overrides").is_some(),
                merges: text(block, "/strategy") == "merge",
                rules: (used.len() < 2).then_some(rules),
                age: (age(object), short.clone()),
                short,
            }
        })
        .collect();
    all.sort_by(|a, b| a.age.cmp(&b.age));
    all
}

fn is_alive(policy: &Policy) -> bool {
    policy.object.pointer("/metadata/deletionTimestamp").is_none()
}

/// The rules of a chain by key, each with the number of its policy.
fn combine(chain: &[&Policy]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    let valid: Vec<usize> = (0..chain.len()).filter(|index| chain[*index].rules.is_some()).collect();
    let Some((first, rest)) = valid.split_first() else { return found };
    let own: Vec<&String> = chain[*first].rules.as_ref().unwrap().keys().collect();
    let Some(next) = rest.first() else {
        return own.into_iter().map(|key| (key.clone(), *first)).collect();
    };
    let lower: BTreeMap<String, usize> =
        combine(&chain[*next..]).into_iter().map(|(key, index)| (key, index + next)).collect();
    let keys: BTreeSet<String> = own.iter().map(|key| (*key).clone()).chain(lower.keys().cloned()).collect();
    for key in keys {
        let (mine, theirs) = (own.contains(&&key), lower.get(&key));
        let winner = match (chain[*first].overrides, chain[*first].merges) {
            (true, false) => mine.then_some(*first),
            (false, false) => theirs.copied(),
            (true, true) => mine.then_some(*first).or(theirs.copied()),
            (false, true) => theirs.copied().or(mine.then_some(*first)),
        };
        if let Some(winner) = winner {
            found.insert(key, winner);
        }
    }
    found
}

/// What the policies of a chain come to, and for each policy: whether it acts, and who replaced it.
fn effective(chain: &[&Policy]) -> (Value, States) {
    let rules = combine(chain);
    let sources: BTreeSet<&str> = rules.values().map(|index| chain[*index].short.as_str()).collect();
    let (mut order, mut replaced, mut unreadable, mut states) =
        (Vec::new(), Vec::new(), Vec::new(), BTreeMap::new());
    for policy in chain {
        if order.contains(&policy.short) {
            continue;
        }
        order.push(policy.short.clone());
        let mut by_all = BTreeSet::new();
        let mut lost = false;
        match &policy.rules {
            None => unreadable.push(policy.short.clone()),
            Some(own) => {
                for key in own.keys() {
                    let by: Vec<String> = match rules.get(key) {
                        Some(index) if chain[*index].short == policy.short => continue,
                        Some(index) => vec![chain[*index].short.clone()],
                        None => sources.iter().map(|source| (*source).to_owned()).collect(),
                    };
                    lost = true;
                    by_all.extend(by.iter().cloned());
                    let place = (
                        text(policy.object, "/metadata/namespace"),
                        text(policy.object, "/metadata/name"),
                        key,
                    );
                    replaced.push((place, json!({"policy": policy.short, "rule": key, "by": sorted(by)})));
                }
            }
        }
        states.insert(policy.short.clone(), (sources.contains(policy.short.as_str()), by_all, lost));
    }
    replaced.sort_by(|a, b| a.0.cmp(&b.0));
    let rules: Map<String, Value> = rules
        .iter()
        .map(|(key, index)| {
            let rule = &chain[*index].rules.as_ref().unwrap()[key];
            (key.clone(), json!({"source": chain[*index].short, "rule": rule}))
        })
        .collect();
    let replaced: Vec<Value> = replaced.into_iter().map(|(_, own)| own).collect();
    let value =
        json!({"rules": rules, "policies": order, "replaced": replaced, "unreadable": sorted(unreadable)});
    (value, states)
}

/// Sorted by namespace and name, as the identities of policies are.
fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_by(|a, b| a.split_once('/').cmp(&b.split_once('/')));
    names
}

type Ancestors = BTreeMap<String, States>;

fn add(ancestors: &mut Ancestors, ancestor: &str, states: States) {
    for (policy, (live, by, lost)) in states {
        let entry = ancestors.entry(policy).or_default().entry(ancestor.to_owned()).or_default();
        entry.0 |= live;
        entry.1.extend(by);
        entry.2 |= lost;
    }
}

pub fn compute(objects: &[&Value], controller: &str) -> Value {
    let world = World(objects);
    let (mut paths, mut refused, mut found_backends) = (Map::new(), BTreeSet::new(), Vec::new());
    let mut outputs = Map::new();
    let limits = policies(&world, "LimitPolicy");
    let certificates = policies(&world, "CertificatePolicy");
    let (mut of_limits, mut of_certificates) = (Ancestors::new(), Ancestors::new());
    for route in world.of_kinds(&["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"]) {
        backends(&world, route, &mut found_backends);
        for (above, hostnames) in carried(&world, route, controller, &mut refused) {
            for (index, rule) in rule_names(route).iter().enumerate() {
                let mut nodes = above.clone();
                nodes.push(locator(route));
                nodes.push(format!("{}#{rule}", locator(route)));
                let path = format!("{} @{index}", nodes.join(" > "));
                let chain: Vec<&Policy> = nodes
                    .iter()
                    .flat_map(|node| {
                        limits.iter().filter(|own| is_alive(own) && own.targets.contains(node)).take(16)
                    })
                    .collect();
                if !chain.is_empty() {
                    let (value, states) = effective(&chain);
                    add(&mut of_limits, &above[1], states);
                    outputs.insert(format!("LimitPolicy on {path}"), value);
                }
                paths.insert(path, json!(hostnames));
            }
        }
    }
    let targets: BTreeSet<&String> = certificates.iter().flat_map(|own| &own.targets).collect();
    for target in targets.into_iter().filter(|target| world.exists(target)) {
        let winner = certificates.iter().find(|own| is_alive(own) && own.targets.contains(target));
        if let Some(winner) = winner {
            let (value, states) = effective(&[winner]);
            add(&mut of_certificates, target.split('#').next().unwrap(), states);
            outputs.insert(format!("CertificatePolicy on {target}"), value);
        }
    }
    let mut states = Map::new();
    for (kind, all, ancestors) in
        [("LimitPolicy", &limits, &of_limits), ("CertificatePolicy", &certificates, &of_certificates)]
    {
        for policy in all {
            let state = state(&world, kind, all, policy, ancestors.get(&policy.short));
            states.insert(format!("{kind}/{}", policy.short), state);
        }
    }
    found_backends.sort();
    json!({
        "paths": paths, "refused": refused, "backends": found_backends, "outputs": outputs, "states": states,
    })
}

fn state(world: &World, kind: &str, all: &[Policy], policy: &Policy, ancestors: Option<&States>) -> Value {
    let targets: Map<String, Value> = policy
        .targets
        .iter()
        .map(|target| {
            let winner = all.iter().find(|own| is_alive(own) && own.targets.contains(target));
            let state = match winner {
                _ if !world.exists(target) => "NotFound".to_owned(),
                Some(winner)
                    if kind == "CertificatePolicy" && is_alive(policy) && winner.short != policy.short =>
                {
                    format!("Conflicted by {kind}/{}", winner.short)
                }
                _ => "Attached".to_owned(),
            };
            (target.clone(), json!(state))
        })
        .collect();
    let ancestors: Map<String, Value> = ancestors
        .into_iter()
        .flatten()
        .map(|(ancestor, (live, by, lost))| {
            let by = sorted(by.iter().cloned().collect());
            let by: Vec<String> = by.iter().map(|by| format!("{kind}/{by}")).collect();
            (ancestor.clone(), json!({"live": live, "replaced": lost, "by": by}))
        })
        .collect();
    json!({"targets": targets, "ancestors": ancestors})
}
