//! Paths through the graph, and lookups of single nodes.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::arena::{NodeIndex, NodeKey, NodeState};
use super::graph::{Graph, version_of};
use super::id::{GroupKind, KindId, KindName, NodeId};
use super::names::Sym;
use super::schema::{EventTriggers, Family, LinkPath, Side};

/// Result of looking up an object.
#[derive(Clone, Copy, Debug)]
pub enum NodeLookup<'g> {
    /// It exists.
    Present(ObjectRow<'g>),
    /// It does not exist: its kind was listed completely.
    Absent,
    /// Its kind is unavailable, or not listed yet.
    Unknown,
}

/// An existing object.
#[derive(Clone, Copy, Debug)]
pub struct ObjectRow<'g> {
    graph: &'g Graph,
    ix: NodeIndex,
}

impl Graph {
    /// Looks an object up. Finds the known objects of an unavailable kind, too; its other objects are
    /// unknown, never absent.
    pub fn get(&self, kind: KindId, namespace: &str, name: &str) -> NodeLookup<'_> {
        match self.row(kind, namespace, name) {
            Some(row) => NodeLookup::Present(row),
            None if self.schema.get(kind).watch.knows(namespace) => NodeLookup::Absent,
            None => NodeLookup::Unknown,
        }
    }

    /// An object as last known, however long ago.
    pub fn row(&self, kind: KindId, namespace: &str, name: &str) -> Option<ObjectRow<'_>> {
        let ix = self.arena.find(kind, namespace, name, "").filter(|ix| self.arena.is_present(*ix))?;
        Some(ObjectRow { graph: self, ix })
    }

    /// Objects that refer to an object of that name, existing or not, as [`ObjectRow::along`].
    pub fn along(
        &self,
        kind: KindId,
        namespace: &str,
        name: &str,
        side: Side,
        link: &'static str,
    ) -> impl Iterator<Item = ObjectRow<'_>> + '_ {
        let found = self.arena.find(kind, namespace, name, "");
        found.into_iter().flat_map(move |ix| self.ends(ix, side, link))
    }

    fn ends(
        &self,
        ix: NodeIndex,
        side: Side,
        link: &'static str,
    ) -> impl Iterator<Item = ObjectRow<'_>> + '_ {
        let named = move |number: u16| self.schema.link(number).name == link;
        let ends = self.arena.neighbours(ix, side).filter(move |(_, number)| named(*number));
        ends.filter(|(end, _)| self.arena.is_present(*end)).map(|(end, _)| ObjectRow { graph: self, ix: end })
    }

    /// All objects of a kind, unordered.
    pub fn rows(&self, kind: KindId) -> impl Iterator<Item = ObjectRow<'_>> + '_ {
        self.objects(kind).map(|ix| ObjectRow { graph: self, ix })
    }

    /// The roots that the existing objects of a kind affect, sorted, each once. There may be many, so
    /// their ids are made one by one.
    pub fn concerned_by(&self, kind: KindId) -> impl Iterator<Item = NodeId> + '_ {
        let mut found = Vec::new();
        if let EventTriggers::Roots(ways) = self.schema.get(kind).declared.events.create {
            self.objects(kind).for_each(|ix| found.extend(self.reached(ix, ways)));
        }
        found.sort_unstable_by(|a, b| self.order(*a).cmp(&self.order(*b)));
        found.dedup();
        found.into_iter().map(|ix| self.id(ix))
    }

    /// Sort key, in the order of ids.
    fn order(&self, ix: NodeIndex) -> (&GroupKind, [&str; 3]) {
        let NodeKey { kind, namespace, name, section } = self.arena.node(ix).key;
        (&self.schema.get(kind).name, [namespace, name, section].map(|sym| self.arena.names.text(sym)))
    }

    /// The nodes at the ends of these paths from a node.
    pub(super) fn reached(&self, from: NodeIndex, ways: &[LinkPath]) -> BTreeSet<NodeIndex> {
        let mut found = BTreeSet::new();
        for way in ways {
            match way {
                LinkPath::Itself => _ = found.insert(from),
                LinkPath::Up(family, kind) => self.walk(from, Side::Parent, *family, *kind, &mut found),
                LinkPath::Down(family, kind) => self.walk(from, Side::Child, *family, *kind, &mut found),
            }
        }
        found
    }

    /// The id of a known kind.
    pub fn find_kind(&self, group: &str, kind: &str) -> Option<KindId> {
        self.schema.find(group, kind)
    }

    /// Group and kind of a known kind.
    pub fn name_of(&self, kind: KindId) -> &GroupKind {
        &self.schema.get(kind).name
    }

    /// All kinds, declared or not, in the order in which they were added.
    pub fn kinds(&self) -> impl Iterator<Item = (KindId, &GroupKind)> {
        self.schema.kinds().map(|(id, entry)| (id, &entry.name))
    }

    /// Number of nodes, including those only referenced, and of edges.
    pub fn size(&self) -> (usize, usize) {
        self.arena.size()
    }

    /// The id of a node; for an anchor, the uid is the name.
    pub(super) fn id(&self, ix: NodeIndex) -> NodeId {
        let node = self.arena.node(ix);
        if let (NodeState::Anchor, Some(uid)) = (node.state, node.uid) {
            return NodeId::new(KindName::new("", "uid"), "", &uid.to_string());
        }
        let text = |sym: Sym| if sym.is_empty() { Arc::default() } else { self.arena.names.text(sym).into() };
        NodeId {
            kind: self.schema.get(node.key.kind).name.clone(),
            namespace: text(node.key.namespace),
            name: text(node.key.name),
            section: text(node.key.section),
        }
    }

    /// The nearest objects of a kind in one direction, along edges of one family.
    fn walk(
        &self,
        from: NodeIndex,
        side: Side,
        family: Family,
        to: KindName,
        into: &mut BTreeSet<NodeIndex>,
    ) {
        let Some(goal) = self.schema.find(to.group, to.kind) else { return };
        let mut open = vec![from];
        let mut seen = HashSet::from([from]);
        while let Some(ix) = open.pop() {
            for (next, link) in self.arena.neighbours(ix, side) {
                if self.schema.link(link).family != family || !seen.insert(next) {
                    continue;
                }
                let node = self.arena.node(next);
                if node.key.kind == goal && node.key.section.is_empty() && node.state != NodeState::Anchor {
                    if node.state == NodeState::Present {
                        into.insert(next);
                    }
                } else {
                    open.push(next);
                }
            }
        }
    }
}

impl<'g> ObjectRow<'g> {
    /// Its id.
    pub fn id(&self) -> NodeId {
        self.graph.id(self.ix)
    }

    /// Whether it was read from a later version of the object than this one.
    pub fn is_newer_than(&self, object: &Value) -> bool {
        self.graph.arena.node(self.ix).version > version_of(object)
    }

    /// A fact that is a word, as declared under that name.
    pub fn word(&self, fact: &str) -> Option<&'g str> {
        let node = self.graph.arena.node(self.ix);
        let kind = self.graph.schema.get(node.key.kind);
        let place = kind.place(fact).filter(|place| kind.is_word(*place))?;
        Some(self.graph.arena.names.text(Sym::of(*self.graph.arena.facts(self.ix).get(place)?)))
    }

    /// A fact that is a number, as declared under that name.
    pub fn number(&self, fact: &str) -> Option<u64> {
        let node = self.graph.arena.node(self.ix);
        let kind = self.graph.schema.get(node.key.kind);
        let place = kind.place(fact).filter(|place| !kind.is_word(*place))?;
        self.graph.arena.facts(self.ix).get(place).copied()
    }

    /// `metadata.uid`, as text that names the same object.
    pub fn uid(&self) -> Option<String> {
        self.graph.arena.node(self.ix).uid.map(|uid| uid.to_string())
    }

    /// `metadata.resourceVersion` as a number; 0 if it is no number.
    pub fn version(&self) -> u64 {
        self.graph.arena.node(self.ix).version
    }

    /// Objects that refer to this one, or that this one refers to, by the link of that name, on
    /// one side of it.
    pub fn along(&self, side: Side, link: &'static str) -> impl Iterator<Item = ObjectRow<'g>> + 'g {
        self.graph.ends(self.ix, side, link)
    }
}
