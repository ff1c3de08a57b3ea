//! Printable snapshots: the whole graph, or an object with its ancestors and descendants; sorted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::arena::{NodeIndex, NodeState};
use super::graph::Graph;
use super::id::NodeId;
use super::names::Sym;
use super::schema::{ReadDepth, Side};

/// Nodes and edges, sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphSnapshot {
    /// Nodes.
    pub nodes: BTreeMap<NodeId, SnapshotNode>,
    /// Edges: parent, child, name of the link.
    pub edges: BTreeSet<(NodeId, NodeId, &'static str)>,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotNode {
    /// Whether it exists, as far as known.
    pub is: Is,
    /// Facts that are words and not empty.
    pub facts: BTreeMap<&'static str, String>,
}

/// Known state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Is {
    /// It exists.
    Present,
    /// It existed when its kind was last available.
    Frozen,
    /// It is referenced and does not exist.
    Missing,
    /// It is referenced; its existence is unknown.
    Unknown,
}

impl Is {
    /// The word in every format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Frozen => "frozen",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
        }
    }
}

impl Graph {
    /// A snapshot of the whole graph.
    pub fn snapshot(&self) -> GraphSnapshot {
        self.snapshot_nodes(&self.arena.places().collect())
    }

    /// A snapshot of an object with all its ancestors and descendants; `None` for an unknown object.
    pub fn snapshot_of(&self, root: &NodeId) -> Option<GraphSnapshot> {
        let kind = self.find_kind(&root.kind.group, &root.kind.kind)?;
        let root = self.arena.find(kind, &root.namespace, &root.name, &root.section)?;
        let mut chosen = BTreeSet::new();
        self.gather(root, Side::Parent, &mut chosen);
        self.gather(root, Side::Child, &mut chosen);
        Some(self.snapshot_nodes(&chosen))
    }

    fn gather(&self, from: NodeIndex, side: Side, into: &mut BTreeSet<NodeIndex>) {
        let mut seen = BTreeSet::from([from]);
        let mut open = vec![from];
        while let Some(ix) = open.pop() {
            open.extend(
                self.arena.neighbours(ix, side).map(|(next, _)| next).filter(|next| seen.insert(*next)),
            );
        }
        into.extend(seen);
    }

    fn snapshot_nodes(&self, chosen: &BTreeSet<NodeIndex>) -> GraphSnapshot {
        let mut snapshot = GraphSnapshot::default();
        for ix in chosen {
            snapshot.nodes.insert(self.id(*ix), self.snapshot_node(*ix));
            for edge in self.arena.held(*ix).filter(|edge| chosen.contains(&edge.target)) {
                let (parent, child) = match edge.other {
                    Side::Parent => (edge.target, edge.holder),
                    Side::Child => (edge.holder, edge.target),
                };
                snapshot.edges.insert((self.id(parent), self.id(child), self.schema.link(edge.link).name));
            }
        }
        snapshot
    }

    fn snapshot_node(&self, ix: NodeIndex) -> SnapshotNode {
        let node = self.arena.node(ix);
        let kind = self.schema.get(node.key.kind);
        let is = match node.state {
            NodeState::Present if kind.watch.epoch.is_some() => Is::Present,
            NodeState::Present => Is::Frozen,
            NodeState::Named if kind.watch.knows(self.arena.names.text(node.key.namespace)) => Is::Missing,
            NodeState::Named | NodeState::Anchor | NodeState::Free => Is::Unknown,
        };
        let words = kind.facts.iter().zip(self.arena.facts(ix).iter().skip(1));
        let words = words.filter(|(fact, _)| matches!(fact.read, ReadDepth::Word(_)));
        let text = |fact: &u64| self.arena.names.text(Sym::of(*fact)).to_string();
        let facts = words.map(|(fact, sym)| (fact.name, text(sym))).filter(|(_, word)| !word.is_empty());
        SnapshotNode { is, facts: facts.collect() }
    }
}

impl GraphSnapshot {
    /// The snapshot in Graphviz's DOT language.
    pub fn dot(&self) -> String {
        let mut text =
            "digraph topology {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n".to_owned();
        let numbers: BTreeMap<&NodeId, usize> = self.nodes.keys().zip(1..).collect();
        for (id, node) in &self.nodes {
            let style = match node.is {
                Is::Present => "",
                Is::Frozen => ", style=filled, fillcolor=\"#e5e5e5\"",
                Is::Missing => ", style=dashed, color=\"#b00020\"",
                Is::Unknown => ", style=dashed",
            };
            let _ = writeln!(text, "  n{} [label={}{style}];", numbers[id], quoted(&label(id, node)));
        }
        for (parent, child, link) in &self.edges {
            let (Some(from), Some(to)) = (numbers.get(parent), numbers.get(child)) else { continue };
            let _ = writeln!(text, "  n{from} -> n{to} [label={}];", quoted(link));
        }
        text.push_str("}\n");
        text
    }

    /// The snapshot as JSON.
    pub fn json(&self) -> Value {
        let name = |id: &NodeId| {
            let mut map = Map::new();
            for (field, text) in [
                ("group", &id.kind.group),
                ("kind", &id.kind.kind),
                ("namespace", &id.namespace),
                ("name", &id.name),
                ("section", &id.section),
            ] {
                if !text.is_empty() {
                    map.insert(field.to_owned(), (**text).into());
                }
            }
            map
        };
        let nodes = self.nodes.iter().map(|(id, node)| {
            let mut map = name(id);
            map.insert("id".to_owned(), id.to_string().into());
            map.insert("is".to_owned(), node.is.as_str().into());
            map.insert("facts".to_owned(), json!(node.facts));
            Value::Object(map)
        });
        let edges = self.edges.iter();
        let edges = edges
            .map(|(from, to, link)| json!({"from": from.to_string(), "to": to.to_string(), "link": link}));
        json!({ "nodes": nodes.collect::<Vec<_>>(), "edges": edges.collect::<Vec<_>>() })
    }

    /// The snapshot as a tree, for people: parents first, repeated nodes only by name.
    pub fn tree(&self) -> String {
        let mut children: BTreeMap<&NodeId, BTreeSet<&NodeId>> = BTreeMap::new();
        let mut below: BTreeSet<&NodeId> = BTreeSet::new();
        for (parent, child, _) in &self.edges {
            children.entry(parent).or_default().insert(child);
            below.insert(child);
        }
        let mut tree = Tree { snapshot: self, children, printed: BTreeSet::new(), text: String::new() };
        self.nodes.keys().filter(|id| !below.contains(id)).for_each(|id| tree.print(id));
        // The remaining nodes are in cycles.
        self.nodes.keys().for_each(|id| {
            if !tree.printed.contains(id) {
                tree.print(id);
            }
        });
        tree.text
    }
}

struct Tree<'p> {
    snapshot: &'p GraphSnapshot,
    children: BTreeMap<&'p NodeId, BTreeSet<&'p NodeId>>,
    printed: BTreeSet<&'p NodeId>,
    text: String,
}

impl<'p> Tree<'p> {
    /// Prints a root and its descendants; on a stack of its own, as chains may be long.
    fn print(&mut self, root: &'p NodeId) {
        let mut open = vec![(root, String::new(), String::new())];
        while let Some((id, head, indent)) = open.pop() {
            let node = self.snapshot.nodes.get(id);
            let first = self.printed.insert(id);
            let words = node.map(words).unwrap_or_default();
            let again = if first || !self.children.contains_key(id) { "" } else { " (above)" };
            let _ = writeln!(self.text, "{head}{id}{words}{again}");
            if !first {
                continue;
            }
            let below = self.children.get(id).into_iter().flatten();
            for (place, child) in below.rev().enumerate() {
                let (branch, rest) = if place == 0 { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                open.push((child, format!("{indent}{branch}"), format!("{indent}{rest}")));
            }
        }
    }
}

fn words(node: &SnapshotNode) -> String {
    let is = (node.is != Is::Present).then(|| node.is.as_str().to_owned());
    let facts = node.facts.iter().map(|(name, word)| format!("{name}={word}"));
    let all: Vec<String> = is.into_iter().chain(facts).collect();
    if all.is_empty() { String::new() } else { format!(" [{}]", all.join(", ")) }
}

fn label(id: &NodeId, node: &SnapshotNode) -> String {
    let place = if id.namespace.is_empty() { String::new() } else { format!("{}/", id.namespace) };
    let section = if id.section.is_empty() { String::new() } else { format!("#{}", id.section) };
    format!("{}\n{place}{}{section}{}", id.kind.kind, id.name, words(node).replace(" [", "\n["))
}

/// A quoted string of the DOT language.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
