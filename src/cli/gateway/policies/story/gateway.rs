//! A Gateway: its listeners and those of its ListenerSets, the routes of each, and its policies.

use std::collections::{BTreeMap, BTreeSet};

use gateway_policies::{ListenerOf, NodeKey, RefusalReason};
use interlock_core::kinds::story::Told;
use interlock_gateway::policies::PolicySurvey;
use serde_json::{Value, json};

use super::words::{attached, count, first};

/// The routes that a listener carries, and how many it refuses, by reason.
#[derive(Default)]
struct Routes<'a> {
    carried: BTreeSet<&'a NodeKey>,
    refused: BTreeMap<RefusalReason, usize>,
}

pub(super) fn told(survey: &PolicySurvey, gateway: &NodeKey, object: &Value) -> Told {
    let class = object["spec"]["gatewayClassName"].as_str().unwrap_or_default();
    let listeners = survey.index().listeners(gateway);
    let routes = routes(survey, gateway, &listeners);
    let carried: BTreeSet<&NodeKey> = routes.values().flat_map(|own| own.carried.iter().copied()).collect();
    let mut is = vec![format!("of GatewayClass {class}; carries {}", count(carried.len(), "route"))];
    if !carried.is_empty() {
        is.push(format!("routes {}", first(carried.iter().map(ToString::to_string))));
    }
    is.extend(attached(survey, gateway).into_iter().map(|policy| format!("policy {policy}")));
    for own in &listeners {
        is.extend(listener(survey, gateway, own, &routes[&own.key.to_string()]));
    }
    if let Some(whole) = routes.get(&gateway.to_string()).filter(|own| !own.refused.is_empty()) {
        is.push(format!("no listener for {}", refusals(whole)));
    }
    let member = json!({
        "gatewayClass": class,
        "policies": attached(survey, gateway),
        "listeners": listeners.iter().map(|own| json(survey, own, &routes[&own.key.to_string()])).collect::<Vec<_>>(),
        "routes": carried.iter().map(ToString::to_string).collect::<Vec<_>>(),
    });
    Told { is, member: Some(("gateway", member)), ..Told::default() }
}

/// By the listener, or the Gateway where a route names none of its listeners.
fn routes<'a>(
    survey: &'a PolicySurvey,
    gateway: &NodeKey,
    listeners: &[ListenerOf<'_>],
) -> BTreeMap<String, Routes<'a>> {
    let nodes = listeners.iter().map(|own| &own.key).chain([gateway]);
    let mut found: BTreeMap<String, Routes<'a>> =
        nodes.map(|node| (node.to_string(), Routes::default())).collect();
    for (route, links) in survey.index().routes() {
        for own in &links.attached {
            if let Some(routes) = found.get_mut(&own.listener.to_string()) {
                routes.carried.insert(route);
            }
        }
        for refused in &links.refused {
            // A section that does not exist is one of the Gateway.
            let object = refused.parent.split('#').next().unwrap_or_default().to_owned();
            let is_listener = found.contains_key(&refused.parent);
            if let Some(routes) = found.get_mut(if is_listener { &refused.parent } else { &object }) {
                *routes.refused.entry(refused.reason).or_default() += 1;
            }
        }
    }
    found
}

fn listener(
    survey: &PolicySurvey,
    gateway: &NodeKey,
    own: &ListenerOf<'_>,
    routes: &Routes<'_>,
) -> Vec<String> {
    let fields = own.listener;
    let whose =
        if own.key.object() == *gateway { String::new() } else { format!(" of {}", own.key.object()) };
    let hostname = fields.hostname.as_deref().filter(|name| !name.is_empty());
    let hostname = hostname.map_or_else(String::new, |name| format!(" for {name}"));
    let title = format!("listener {}{whose}: {} {}{hostname}", fields.name, fields.protocol, fields.port);
    let mut lines = vec![match own.refusal {
        Some(reason) => format!("{title}; refused: {reason} ({})", reason.explanation()),
        None => format!("{title}; carries {}", count(routes.carried.len(), "route")),
    }];
    // What refuses the listener refuses its routes too.
    if own.refusal.is_none() && !routes.refused.is_empty() {
        lines.push(format!("  refuses {}", refusals(routes)));
    }
    lines.extend(attached(survey, &own.key).into_iter().map(|policy| format!("  policy {policy}")));
    lines
}

fn refusals(routes: &Routes<'_>) -> String {
    let all = routes
        .refused
        .iter()
        .map(|(reason, routes)| format!("{}: {reason} ({})", count(*routes, "route"), reason.explanation()));
    first(all)
}

fn json(survey: &PolicySurvey, own: &ListenerOf<'_>, routes: &Routes<'_>) -> Value {
    let refused: BTreeMap<&str, usize> =
        routes.refused.iter().map(|(why, count)| (why.name(), *count)).collect();
    json!({
        "listener": own.key.to_string(), "protocol": own.listener.protocol, "port": own.listener.port,
        "hostname": own.listener.hostname, "refused": own.refusal.map(RefusalReason::name),
        "routes": routes.carried.len(), "refusedRoutes": refused, "policies": attached(survey, &own.key),
    })
}
