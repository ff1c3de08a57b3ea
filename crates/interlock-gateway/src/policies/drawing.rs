//! The graph as the page draws it: Gateways, listeners, routes and rules, with the policies at their targets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_policies::{
    Index, Level, NodeKey, ObjectKey, ObjectKind, Path, PolicyId, PolicyState, RouteLinks, TargetState,
};
use interlock_core::api::display::display;
use interlock_core::kinds::page::{Drawing, DrawnLine, DrawnNode, MESSAGE_LIMIT, NAME_LIMIT, NODES, View};

use super::attachments::{Attachments, LinkedObjects};
use super::generic::Precedence;

/// Most policies that are written into one box.
const LINES: usize = 6;

/// The graph of a process; empty where it keeps none.
pub(crate) fn drawing(view: &View<'_>) -> Drawing {
    let graph = view.inventories.get::<Attachments>();
    graph.map(|graph| graph.read(|linked| Sketch::new(linked).drawing())).unwrap_or_default()
}

/// The graph while it is drawn.
struct Sketch<'a> {
    linked: &'a LinkedObjects,
    /// The policies that are attached to a node, by the node.
    attached: BTreeMap<&'a NodeKey, Vec<&'a PolicyId>>,
    drawing: Drawing,
    places: BTreeMap<NodeKey, u32>,
    left_out: BTreeSet<NodeKey>,
    edges: BTreeSet<(u32, u32)>,
}

impl<'a> Sketch<'a> {
    fn new(linked: &'a LinkedObjects) -> Self {
        let mut attached: BTreeMap<&NodeKey, Vec<&PolicyId>> = BTreeMap::new();
        for policy in linked.index.policies() {
            for target in &policy.targets {
                attached.entry(target).or_default().push(&policy.id);
            }
        }
        let (drawing, places, left_out, edges) = Default::default();
        Self { linked, attached, drawing, places, left_out, edges }
    }

    fn index(&self) -> &'a Index {
        &self.linked.index
    }

    fn drawing(mut self) -> Drawing {
        let nodes = self.index().objects().filter_map(|key| match key {
            ObjectKey::Node(node) => Some(node),
            ObjectKey::Grant(..) | ObjectKey::Namespace(_) => None,
        });
        for node in nodes.filter(|node| node.kind == ObjectKind::Gateway) {
            self.add(node, String::new());
            for listener in self.index().listeners(node) {
                let set = listener.key.object();
                let trouble =
                    listener.refusal.map(|reason| reason.explanation().to_owned()).unwrap_or_default();
                let listener = self.add(&listener.key, trouble);
                let set = if set == *node { None } else { Some(self.add(&set, String::new())) };
                let gateway = self.add(node, String::new());
                self.join(gateway, set.unwrap_or(listener));
                if set.is_some() {
                    self.join(set.unwrap_or(listener), listener);
                }
            }
        }
        for (route, links) in self.index().routes() {
            self.add_route(route, links);
        }
        self.add_without_target();
        self.drawing.total += self.left_out.len();
        self.drawing.edges = self.edges.into_iter().collect();
        self.drawing
    }

    fn add_route(&mut self, route: &NodeKey, links: &RouteLinks) {
        let place = self.add(route, not_carried(links));
        for own in &links.attached {
            let class = self.add(&own.gateway_class, String::new());
            let gateway = self.add(&own.gateway, String::new());
            let listener = self.add(&own.listener, String::new());
            self.join(class, gateway);
            self.join(listener, place);
        }
        for rule in &links.rules {
            let rule = self.add(rule, String::new());
            self.join(place, rule);
        }
    }

    /// Policies that no drawn box has, as none of their targets is there.
    fn add_without_target(&mut self) {
        for policy in self.index().policies() {
            let Some(state) = self.index().state(&policy.id) else { continue };
            let is_missing = |target: &TargetState| matches!(target, TargetState::NotFound);
            let is_of_graph = |target: &NodeKey| target.kind != ObjectKind::Service;
            if !state.targets.values().all(is_missing) || !state.targets.keys().any(is_of_graph) {
                continue;
            }
            let targets: Vec<String> = state.targets.keys().map(ToString::to_string).collect();
            self.push(DrawnNode {
                kind: "Policy",
                name: text(&policy.id),
                trouble: display(&format!("{} was not found", targets.join(", ")), MESSAGE_LIMIT),
                ..DrawnNode::default()
            });
        }
    }

    /// The place of a node; none where there is no room for it.
    fn add(&mut self, node: &NodeKey, trouble: String) -> Option<u32> {
        if let Some(place) = self.places.get(node) {
            return Some(*place);
        }
        if self.drawing.nodes.len() == NODES {
            self.left_out.insert(node.clone());
            return None;
        }
        let place = self.push(self.drawn(node, trouble))?;
        self.places.insert(node.clone(), place);
        Some(place)
    }

    fn push(&mut self, node: DrawnNode) -> Option<u32> {
        self.drawing.total += 1;
        let place =
            u32::try_from(self.drawing.nodes.len()).ok().filter(|_| self.drawing.nodes.len() < NODES)?;
        self.drawing.nodes.push(node);
        Some(place)
    }

    fn join(&mut self, from: Option<u32>, to: Option<u32>) {
        self.edges.extend(from.zip(to));
    }

    fn drawn(&self, node: &NodeKey, trouble: String) -> DrawnNode {
        let section = node.section.as_ref().map(|section| format!("#{section}")).unwrap_or_default();
        let qualified = match &*node.namespace {
            "" => node.name.to_string(),
            namespace => format!("{namespace}/{}", node.name),
        };
        let policies = self.attached.get(node).into_iter().flatten();
        let mut lines: Vec<DrawnLine> = policies.map(|policy| self.line(policy, node)).collect();
        lines.sort();
        if lines.len() > LINES {
            let more = format!("and {} more", lines.len() - (LINES - 1));
            lines.truncate(LINES - 1);
            lines.push(DrawnLine { text: more, trouble: String::new() });
        }
        DrawnNode {
            kind: kind(node),
            name: display(&format!("{qualified}{section}"), NAME_LIMIT),
            trouble: display(&trouble, MESSAGE_LIMIT),
            lines,
            concerned: self.acting_on(node).into_iter().map(text).collect(),
            command: command(node),
        }
    }

    fn line(&self, policy: &PolicyId, target: &NodeKey) -> DrawnLine {
        let trouble = self.index().state(policy).map(|state| without_effect(state, target));
        DrawnLine { text: text(policy), trouble: display(&trouble.unwrap_or_default(), MESSAGE_LIMIT) }
    }

    /// The policies that act on a path through a node, or on the node itself.
    fn acting_on(&self, node: &NodeKey) -> BTreeSet<&'a PolicyId> {
        let mut acting: BTreeSet<&PolicyId> = BTreeSet::new();
        let kinds: BTreeSet<&str> = self.index().policies().map(|policy| &*policy.id.kind).collect();
        for kind in kinds {
            for path in self.index().paths_through(node) {
                acting.extend(self.acting(kind, path));
            }
            acting.extend(self.index().direct(kind, node).into_iter().flat_map(|own| own.sources()));
        }
        acting
    }

    /// The policies of a kind that act on a path.
    fn acting(&self, kind: &str, path: &Arc<Path>) -> Vec<&'a PolicyId> {
        let index = self.index();
        let direct = |node: &NodeKey| index.direct(kind, node).map(|own| own.sources()).unwrap_or_default();
        match self.linked.kinds.precedence(kind) {
            Some(Precedence::Inherited) => {
                index.effective(kind, path).map(|own| own.sources().into_iter().collect()).unwrap_or_default()
            }
            Some(Precedence::MostSpecific) => {
                let nodes: Vec<_> = path.nodes().collect();
                let nearest = nodes.into_iter().rev().map(direct).find(|found| !found.is_empty());
                nearest.into_iter().flatten().collect()
            }
            Some(Precedence::OnePerTarget) => path.nodes().flat_map(direct).collect(),
            Some(Precedence::All) => {
                let attached = path.nodes().filter_map(|node| self.attached.get(node)).flatten();
                attached.copied().filter(|id| &*id.kind == kind).collect()
            }
            None => Vec::new(),
        }
    }
}

fn text(policy: &PolicyId) -> String {
    display(&format!("{} {}", policy.kind, policy.qualified_name()), NAME_LIMIT)
}

/// The word for a node: a section has one of its own.
fn kind(node: &NodeKey) -> &'static str {
    match node.level() {
        Level::Listener => "Listener",
        Level::Rule => "Rule",
        _ => node.kind.name(),
    }
}

/// The command that says more of the object of a node.
fn command(node: &NodeKey) -> String {
    let object = node.object();
    match node.level() {
        Level::Route | Level::Rule => format!("interlock policies effective {object}"),
        Level::Gateway | Level::Listener | Level::ListenerSet => {
            format!("interlock policies tree -n {}", object.namespace)
        }
        Level::GatewayClass | Level::Service | Level::ServicePort => String::new(),
    }
}

/// Why a policy does nothing on its target; empty where it does something.
fn without_effect(state: &PolicyState, target: &NodeKey) -> String {
    if let Some(violation) = state.violations.first() {
        return format!("invalid: {violation}");
    }
    match state.targets.get(target) {
        Some(TargetState::NotFound) => return "its target was not found".to_owned(),
        Some(TargetState::Conflicted(by)) => return format!("conflicted by {}", by.qualified_name()),
        Some(TargetState::OverLimit) => return "one of too many on its target".to_owned(),
        Some(TargetState::Attached) | None => {}
    }
    if state.ancestors.is_empty() {
        return "on no path".to_owned();
    }
    if state.ancestors.values().any(|own| own.is_live) {
        return String::new();
    }
    let by: BTreeSet<_> = state.ancestors.values().flat_map(|own| &own.replaced_by).collect();
    let by: Vec<String> = by.into_iter().map(PolicyId::qualified_name).collect();
    format!("overridden by {}", by.join(", "))
}

/// Why no listener carries a route; empty where one does.
fn not_carried(links: &RouteLinks) -> String {
    let Some(first) = links.refused.first().filter(|_| links.attached.is_empty()) else {
        return String::new();
    };
    let more = match links.refused.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    format!("no listener carries it; {}: {}{more}", first.parent, first.reason.explanation())
}
