//! What `interlock topology` shows of all objects together: routes below the listeners that carry them, why others do not,
//! and policies below their targets.

use std::collections::BTreeSet;

use super::known::{KNOWN, path_kinds};
use super::survey::{PolicySurvey, UnlistedKind};
use gateway_policies::{Level, NodeKey, ObjectKind, RefusalReason, RouteLinks};
use interlock_core::kinds::descriptor::Outline;
use interlock_core::topology::snapshot::{GraphSnapshot, Is, SnapshotNode};
use interlock_core::topology::{GroupKind, NodeId};

/// Refusals of one route that are written out.
const REFUSALS: usize = 4;

/// The outline of the Gateway API.
pub(crate) static OUTLINE: Outline = Outline {
    reads: |group, kind| {
        let decides = path_kinds().any(|own| own == (group, kind)) && (group, kind) != ("", "Service");
        decides || KNOWN.name_of(group, kind).is_some()
    },
    draw: |objects, snapshot| {
        let survey = PolicySurvey::of(KNOWN.clone(), objects, Vec::<UnlistedKind>::new(), false);
        outline(&survey, snapshot);
    },
};

fn outline(survey: &PolicySurvey, snapshot: &mut GraphSnapshot) {
    let routes: Vec<_> = survey.index().routes().map(|(route, links)| (id_of(route), links)).collect();
    let shown = routes.into_iter().filter(|(route, _)| snapshot.nodes.contains_key(route));
    let shown: Vec<(NodeId, &RouteLinks)> = shown.collect();
    let all: BTreeSet<&NodeId> = shown.iter().map(|(route, _)| route).collect();
    // A parent that is not there stays, as the graph has it.
    let is_there = |parent: &NodeId| {
        let is = |kind: ObjectKind| parent.kind == GroupKind::new(kind.group(), kind.name());
        let kinds = [ObjectKind::Gateway, ObjectKind::ListenerSet, ObjectKind::XListenerSet];
        let whole = NodeId { section: "".into(), ..parent.clone() };
        kinds.into_iter().any(is) && snapshot.nodes.get(&whole).is_some_and(|node| node.is == Is::Present)
    };
    let replaced: Vec<_> = snapshot
        .edges
        .iter()
        .filter(|(parent, child, link)| *link == "parent" && all.contains(child) && is_there(parent))
        .cloned()
        .collect();
    replaced.iter().for_each(|edge| {
        snapshot.edges.remove(edge);
    });
    for (route, links) in shown {
        for own in &links.attached {
            let listener = id_of(&own.listener);
            add(snapshot, &listener);
            snapshot.edges.insert((id_of(&own.listener.object()), listener.clone(), "listener"));
            snapshot.edges.insert((listener, route.clone(), "parent"));
        }
        let refused = refusals(links);
        let node = snapshot.nodes.get_mut(&route).filter(|_| !refused.is_empty());
        node.map(|node| node.facts.insert("refused", refused));
    }
    add_policies(survey, snapshot);
}

/// Policies below what they target, where one of the two is shown.
fn add_policies(survey: &PolicySurvey, snapshot: &mut GraphSnapshot) {
    for policy in survey.index().policies() {
        let Some(group) = survey.kinds().names().find(|(name, ..)| *name == &*policy.id.kind) else {
            continue;
        };
        let kind = GroupKind::new(group.1, group.2);
        let id = NodeId::new(kind, &policy.id.namespace, &policy.id.name);
        for target in &policy.targets {
            let target = shown_as(snapshot, target);
            if snapshot.nodes.contains_key(&target) {
                add(snapshot, &id);
                snapshot.edges.insert((target, id.clone(), "policy"));
            }
        }
    }
}

fn add(snapshot: &mut GraphSnapshot, id: &NodeId) {
    let present = || SnapshotNode { is: Is::Present, facts: Default::default() };
    snapshot.nodes.entry(id.clone()).or_insert_with(present);
}

fn id_of(node: &NodeKey) -> NodeId {
    let id = NodeId::new(GroupKind::new(node.kind.group(), node.kind.name()), &node.namespace, &node.name);
    id.section(node.section.as_deref().unwrap_or_default())
}

/// A target as the graph has it: a rule without a name has its index in brackets.
fn shown_as(snapshot: &GraphSnapshot, target: &NodeKey) -> NodeId {
    let id = id_of(target);
    let number = target.section.as_deref().and_then(|section| section.strip_prefix("rule-"));
    let index =
        number.and_then(|number| number.parse::<usize>().ok()).and_then(|number| number.checked_sub(1));
    match index {
        Some(index) if target.level() == Level::Rule && !snapshot.nodes.contains_key(&id) => {
            id.section(&format!("[{index}]"))
        }
        _ => id,
    }
}

/// Which listeners refuse a route, and why; that a parent is absent the graph shows itself.
fn refusals(links: &RouteLinks) -> String {
    let refused: Vec<String> = links
        .refused
        .iter()
        .filter(|refusal| refusal.reason != RefusalReason::ParentNotFound)
        .map(|refusal| format!("{}: {}", refusal.parent, refusal.reason))
        .collect();
    let mut text = refused.iter().take(REFUSALS).cloned().collect::<Vec<_>>().join(", ");
    if refused.len() > REFUSALS {
        text.push_str(&format!(" and {} more", refused.len() - REFUSALS));
    }
    text
}

#[cfg(test)]
mod tests {
    use interlock_core::api::object::Gvk;
    use interlock_core::kinds;
    use interlock_core::topology::{Epoch, GraphChange};
    use serde_json::{Value, json};

    use super::*;

    const API: &str = "gateway.networking.k8s.io/v1";

    fn object(api_version: &str, kind: &str, name: &str, spec: &Value) -> Value {
        let metadata = json!({"namespace": "web", "name": name});
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
    }

    fn route(name: &str, gateway: &str, hostname: &str) -> Value {
        let spec = json!({"parentRefs": [{"name": gateway}], "hostnames": [hostname], "rules": [{}]});
        object(API, "HTTPRoute", name, &spec)
    }

    fn limit(name: &str, target: &Value) -> Value {
        let limits = json!({"all": {"rates": [{"limit": 1, "window": "1m"}]}});
        object("kuadrant.io/v1", "RateLimitPolicy", name, &json!({"targetRef": target, "limits": limits}))
    }

    fn objects() -> Vec<Value> {
        let listener = |name: &str, hostname: &str| json!({"name": name, "port": 80, "protocol": "HTTP", "hostname": hostname});
        let target = |kind: &str, name: &str, section: &str| json!({"group": "gateway.networking.k8s.io", "kind": kind, "name": name, "sectionName": section});
        vec![
            json!({"apiVersion": API, "kind": "GatewayClass", "metadata": {"name": "eg"}, "spec": {"controllerName": "x/y"}}),
            object(
                API,
                "Gateway",
                "gw",
                &json!({"gatewayClassName": "eg", "listeners": [listener("a", "*.a.org"), listener("b", "*.b.org")]}),
            ),
            route("shop", "gw", "www.a.org"),
            route("lost", "gw", "c.org"),
            route("absent", "other", "c.org"),
            limit("of-rule", &target("HTTPRoute", "shop", "rule-1")),
            limit("of-listener", &target("Gateway", "gw", "b")),
        ]
    }

    fn drawn() -> GraphSnapshot {
        let all = [crate::KINDS, crate::OF_ATTACHMENTS, crate::policies::KINDS].concat();
        let mut graph = kinds::graph(Box::leak(all.into_boxed_slice()));
        for object in objects() {
            let gvk = Gvk::of(&object).unwrap();
            let kind = graph.kind(&gvk.group, &gvk.kind);
            graph.kind_available(kind, Epoch::default());
            graph.apply(kind, Epoch::default(), GraphChange::Listed(&object));
        }
        let mut snapshot = graph.snapshot();
        (OUTLINE.draw)(&objects(), &mut snapshot);
        snapshot
    }

    #[test]
    fn routes_hang_below_the_listeners_that_carry_them_and_policies_below_their_targets() {
        let snapshot = drawn();
        let name = |id: &NodeId| match &*id.section {
            "" => id.name.to_string(),
            section => format!("{}#{section}", id.name),
        };
        let edges: BTreeSet<String> = snapshot
            .edges
            .iter()
            .map(|(parent, child, _)| format!("{} > {}", name(parent), name(child)))
            .collect();
        for edge in [
            "gw > gw#a",
            "gw#a > shop",
            "shop > shop#[0]",
            "shop#[0] > of-rule",
            "gw#b > of-listener",
            "other > absent",
        ] {
            assert!(edges.contains(edge), "{edge} is not in {edges:#?}");
        }
        for edge in ["gw > shop", "gw > lost", "gw#b > shop"] {
            assert!(!edges.contains(edge), "{edge} is in {edges:#?}");
        }
        let fact = |name: &str| {
            let (_, node) =
                snapshot.nodes.iter().find(|(id, _)| &*id.name == name && id.section.is_empty()).unwrap();
            node.facts.get("refused").cloned().unwrap_or_default()
        };
        assert_eq!(fact("lost"), "Gateway/web/gw#a: HostnameMismatch, Gateway/web/gw#b: HostnameMismatch");
        assert_eq!(
            (fact("shop"), fact("absent")),
            ("Gateway/web/gw#b: HostnameMismatch".to_owned(), String::new())
        );
    }
}
