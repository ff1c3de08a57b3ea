//! Which listeners are in conflict, by comparing each with each.

use std::collections::BTreeMap;

use serde_json::Value;

use super::links::{World, age, list, locator, or, text};

/// Why two listeners cannot both be.
fn clash(one: &Value, other: &Value) -> Option<&'static str> {
    if one.get("port").is_none() || one.get("port") != other.get("port") {
        return None;
    }
    match (text(one, "/protocol"), text(other, "/protocol")) {
        ("TCP", "TCP") | ("UDP", "UDP") => Some("ProtocolConflict"),
        ("UDP" | "example.org/own", b) if b != text(one, "/protocol") => None,
        (a, "UDP" | "example.org/own") if a != text(other, "/protocol") => None,
        (a, b) if a == b || [a, b] == ["TLS", "HTTPS"] || [a, b] == ["HTTPS", "TLS"] => {
            (text(one, "/hostname") == text(other, "/hostname")).then_some("HostnameConflict")
        }
        _ => Some("ProtocolConflict"),
    }
}

fn worst(listener: &Value, others: &[&Value]) -> Option<&'static str> {
    let found: Vec<&str> = others.iter().filter_map(|other| clash(listener, other)).collect();
    if found.contains(&"ProtocolConflict") {
        Some("ProtocolConflict")
    } else {
        found.first().map(|_| "HostnameConflict")
    }
}

/// The conflicted listeners of a Gateway and its sets.
pub fn conflicts(world: &World, gateway: &Value) -> BTreeMap<String, &'static str> {
    let own = text(gateway, "/metadata/namespace");
    let mut sets: Vec<&Value> = world
        .of_kinds(&["ListenerSet", "XListenerSet"])
        .filter(|set| {
            let namespace = text(set, "/metadata/namespace");
            let parent = or(text(set, "/spec/parentRef/namespace"), namespace);
            let rule = &gateway["spec"]["allowedListeners"]["namespaces"];
            format!("Gateway/{parent}/{}", text(set, "/spec/parentRef/name")) == locator(gateway)
                && world.selects(rule, "None", own, namespace) == Some(true)
        })
        .collect();
    sets.sort_by_key(|set| {
        let name = format!("{}/{}", text(set, "/metadata/namespace"), text(set, "/metadata/name"));
        (age(set), name, text(set, "/kind").to_owned())
    });
    let (mut found, mut claimed) = (BTreeMap::new(), Vec::new());
    for object in [gateway].into_iter().chain(sets) {
        let all = list(object, "/spec/listeners");
        let free: Vec<&Value> = all.iter().filter(|listener| worst(listener, &claimed).is_none()).collect();
        for listener in all {
            let others: Vec<&Value> = free
                .iter()
                .copied()
                .filter(|other| text(other, "/name") != text(listener, "/name"))
                .collect();
            if let Some(reason) = worst(listener, &claimed).or_else(|| worst(listener, &others)) {
                found.insert(format!("{}#{}", locator(object), text(listener, "/name")), reason);
            }
        }
        claimed.extend(free);
    }
    found
}
