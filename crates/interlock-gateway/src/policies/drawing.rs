//! The graph as the page draws it: Gateways, listeners, routes and rules, with the policies at their targets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_policies::{
    EffectivePolicy, Index, Level, NodeKey, ObjectKey, ObjectKind, Path, PolicyId, PolicyState, RouteLinks,
    TargetState,
};
use interlock_core::api::display::display;
use interlock_core::kinds::page::{
    Draw, Drawing, DrawnLine, DrawnNode, MESSAGE_LIMIT, NAME_LIMIT, NODES, View,
};

use super::attachments::Attachments;
use super::generic::Precedence;
use super::linked::LinkedObjects;

/// Most policies that are written into one box.
const LINES: usize = 6;
/// Most paths that are looked at for the policies that act.
const PATHS: usize = 20_000;

/// Draws the graph of a process, without the cache; empty where it keeps none.
pub(crate) fn drawing(view: &View<'_>) -> Draw {
    let graph = view.inventories.get::<Attachments>().map(Attachments::graph);
    Box::new(|| graph.map(|graph| graph.read(|linked| Sketch::new(linked).drawing())).unwrap_or_default())
}

/// The graph while it is drawn.
struct Sketch<'a> {
    linked: &'a LinkedObjects,
    /// The policies that are attached to a node, by the node.
    attached: BTreeMap<&'a NodeKey, Vec<&'a PolicyId>>,
    drawing: Drawing,
    /// The policies that act on a path, by the path.
    acting: BTreeMap<&'a Arc<Path>, BTreeSet<&'a PolicyId>>,
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
        let acting = acting(linked, &attached);
        Self { linked, attached, acting, drawing, places, left_out, edges }
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
        let paths = self.index().paths_through(node).take(PATHS).filter_map(|path| self.acting.get(path));
        let mut acting: BTreeSet<&PolicyId> = paths.flatten().copied().collect();
        let kinds: BTreeSet<&str> =
            self.attached.get(node).into_iter().flatten().map(|id| &*id.kind).collect();
        for kind in kinds {
            acting.extend(self.index().direct(kind, node).into_iter().flat_map(EffectivePolicy::sources));
        }
        acting
    }
}

/// The policies that act on each path, for as many paths as are looked at.
fn acting<'a>(
    linked: &'a LinkedObjects,
    attached: &BTreeMap<&'a NodeKey, Vec<&'a PolicyId>>,
) -> BTreeMap<&'a Arc<Path>, BTreeSet<&'a PolicyId>> {
    let kinds: BTreeSet<&str> = attached.values().flatten().map(|id| &*id.kind).collect();
    // Paths with the same policies share an output.
    let mut sources: BTreeMap<*const EffectivePolicy, BTreeSet<&'a PolicyId>> = BTreeMap::new();
    let mut of = |effective: Option<&'a EffectivePolicy>| {
        let effective = effective?;
        Some(sources.entry(std::ptr::from_ref(effective)).or_insert_with(|| effective.sources()).clone())
    };
    let mut acting = BTreeMap::new();
    for path in linked.index.paths().take(PATHS) {
        let mut found: BTreeSet<&PolicyId> = BTreeSet::new();
        for kind in &kinds {
            let mut direct = |node: &NodeKey| of(linked.index.direct(kind, node)).unwrap_or_default();
            match linked.kinds.precedence(kind) {
                Some(Precedence::Inherited) => {
                    found.extend(
                        of(linked.index.effective(kind, path).map(AsRef::as_ref)).into_iter().flatten(),
                    );
                }
                Some(Precedence::MostSpecific) => {
                    let nodes: Vec<_> = path.nodes().collect();
                    let nearest = nodes.into_iter().rev().map(direct).find(|own| !own.is_empty());
                    found.extend(nearest.into_iter().flatten());
                }
                Some(Precedence::OnePerTarget) => found.extend(path.nodes().flat_map(&mut direct)),
                Some(Precedence::All) => {
                    let own = path.nodes().filter_map(|node| attached.get(node)).flatten();
                    found.extend(own.filter(|id| &*id.kind == *kind));
                }
                None => {}
            }
        }
        acting.insert(path, found);
    }
    acting
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
        Level::Gateway | Level::Listener if node.kind == ObjectKind::Gateway => {
            format!("interlock why {object}")
        }
        _ => String::new(),
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

#[cfg(test)]
mod tests {
    use interlock_core::kinds::inventory::Inventory as _;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    const API: &str = "gateway.networking.k8s.io/v1";

    fn object(api_version: &str, kind: &str, name: &str, spec: &Value) -> Value {
        let metadata = json!({"namespace": "web", "name": name, "creationTimestamp": "2026-01-01T00:00:00Z"});
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
    }

    fn topology() -> Vec<Value> {
        let listeners = json!([
            {"name": "a", "port": 80, "protocol": "HTTP", "hostname": "*.a.org"},
            {"name": "b", "port": 80, "protocol": "HTTP", "hostname": "*.b.org"},
        ]);
        let route = |name: &str, hostname: &str| {
            let spec = json!({"parentRefs": [{"name": "gw"}], "hostnames": [hostname], "rules": [{}]});
            object(API, "HTTPRoute", name, &spec)
        };
        let class = json!({"apiVersion": API, "kind": "GatewayClass", "metadata": {"name": "eg"}, "spec": {"controllerName": "x/y"}});
        let gateway =
            object(API, "Gateway", "gw", &json!({"gatewayClassName": "eg", "listeners": listeners}));
        vec![class, gateway, route("shop", "www.a.org"), route("lost", "c.org")]
    }

    fn drawn(policies: &[Value]) -> Drawing {
        let mut graph = Attachments::default();
        topology().iter().chain(policies).for_each(|object| graph.take(object));
        graph.graph().read(|linked| Sketch::new(linked).drawing())
    }

    fn target(kind: &str, name: &str) -> Value {
        json!({"group": "gateway.networking.k8s.io", "kind": kind, "name": name})
    }

    fn limit(name: &str, kind: &str, of: &str, block: &str) -> Value {
        let limits = json!({"limits": {"all": {"rates": [{"limit": 1, "window": "1m"}]}}});
        object(
            "kuadrant.io/v1",
            "RateLimitPolicy",
            name,
            &json!({"targetRef": target(kind, of), block: limits}),
        )
    }

    fn cors(name: &str, kind: &str, of: &str) -> Value {
        let spec = json!({"targetRefs": [target(kind, of)], "cors": {}});
        object("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy", name, &spec)
    }

    fn find<'a>(drawing: &'a Drawing, name: &str) -> &'a DrawnNode {
        drawing.nodes.iter().find(|node| node.name == name).unwrap()
    }

    #[test]
    fn lines_lead_from_the_class_to_the_rule() {
        let drawing = drawn(&[]);
        let name = |place: &u32| drawing.nodes[*place as usize].name.as_str();
        let mut edges: Vec<_> = drawing.edges.iter().map(|(from, to)| (name(from), name(to))).collect();
        edges.sort_unstable();
        let expected = [
            ("eg", "web/gw"),
            ("web/gw", "web/gw#a"),
            ("web/gw", "web/gw#b"),
            ("web/gw#a", "web/shop"),
            ("web/lost", "web/lost#rule-1"),
            ("web/shop", "web/shop#rule-1"),
        ];
        assert_eq!(edges, expected);
        assert!(find(&drawing, "web/lost").trouble.starts_with("no listener carries it; Gateway/web/gw#a: "));
        assert_eq!((drawing.total, drawing.nodes.len()), (8, 8));
    }

    #[rstest]
    #[case::defaults_of_the_route(vec![limit("up", "Gateway", "gw", "defaults"), limit("own", "HTTPRoute", "shop", "defaults")], &["own"], "")]
    #[case::overrides_of_the_gateway(
        vec![limit("up", "Gateway", "gw", "overrides"), limit("own", "HTTPRoute", "shop", "defaults")],
        &["up"],
        "overridden by web/up"
    )]
    #[case::the_most_specific_of_envoy_gateway(vec![cors("up", "Gateway", "gw"), cors("own", "HTTPRoute", "shop")], &["own"], "")]
    #[case::both_kinds(vec![limit("up", "Gateway", "gw", "overrides"), cors("own", "HTTPRoute", "shop")], &["up", "own"], "")]
    fn a_route_has_the_policies_that_act(
        #[case] policies: Vec<Value>,
        #[case] acting: &[&str],
        #[case] trouble_of_own: &str,
    ) {
        let drawing = drawn(&policies);
        let route = find(&drawing, "web/shop");
        let found: Vec<_> = route.concerned.iter().map(|text| text.rsplit('/').next().unwrap()).collect();
        assert_eq!(found, acting);
        let own: Vec<_> = route.lines.iter().map(|line| line.trouble.as_str()).collect();
        assert_eq!(own, [trouble_of_own]);
    }

    #[test]
    fn a_policy_without_its_target_is_a_box() {
        let drawing = drawn(&[limit("nowhere", "HTTPRoute", "absent", "defaults")]);
        let node = find(&drawing, "RateLimitPolicy web/nowhere");
        assert_eq!(node.trouble, "HTTPRoute/web/absent was not found");
    }

    #[test]
    fn a_box_has_few_lines() {
        let policies: Vec<_> =
            (0..9).map(|number| limit(&format!("p{number}"), "HTTPRoute", "shop", "defaults")).collect();
        let drawing = drawn(&policies);
        let lines = &find(&drawing, "web/shop").lines;
        assert_eq!((lines.len(), lines[LINES - 1].text.as_str()), (LINES, "and 4 more"));
    }
}
