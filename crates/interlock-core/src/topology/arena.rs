//! Storage of nodes and edges: two slabs and two indexes.
//!
//! A node represents an object, a part of one, or a referenced name or uid that no object has yet. So
//! an edge always has two ends, and a dangling one resolves by itself when its target appears. An edge
//! is in three lists (of its holder, and of its target's children or parents), so the cost of adding or
//! removing it does not depend on how many other edges its ends have. The indexes store node indexes
//! and read the keys from the nodes.

use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;

use super::facts::{FactRange, FactStore};
use super::id::{KindId, Uid};
use super::names::{NameTable, Sym};
pub(super) use super::node_index::{NONE, NodeIndex, place};
use super::schema::Side;

/// The key of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeKey {
    pub kind: KindId,
    pub namespace: Sym,
    pub name: Sym,
    pub section: Sym,
}

/// The state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeState {
    /// An existing object or part of an object.
    Present,
    /// A referenced name.
    Named,
    /// A referenced uid; the key is unused.
    Anchor,
    /// The slot is free.
    Free,
}

#[derive(Debug)]
pub(super) struct ArenaNode {
    pub key: NodeKey,
    pub state: NodeState,
    /// Round of the last list that contained the object.
    pub seen: u32,
    /// Edges that it holds.
    pub held: NodeIndex,
    /// Edges held by its children.
    pub below: NodeIndex,
    /// Edges held by its parents.
    pub above: NodeIndex,
    /// `metadata.resourceVersion`.
    pub version: u64,
    pub uid: Option<Uid>,
    /// Range of its facts.
    facts: FactRange,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub holder: NodeIndex,
    pub target: NodeIndex,
    /// Next edge of the holder.
    next_held: NodeIndex,
    /// Neighbours in the list of the target.
    previous: NodeIndex,
    next: NodeIndex,
    pub link: u16,
    /// Side of the target, seen from the holder.
    pub other: Side,
    pub by_uid: bool,
}

/// Nodes, edges and their indexes.
#[derive(Debug, Default)]
pub(super) struct Arena {
    pub names: NameTable,
    nodes: Vec<ArenaNode>,
    edges: Vec<Edge>,
    free_nodes: Vec<NodeIndex>,
    free_edges: Vec<NodeIndex>,
    facts: FactStore,
    /// Nodes that have a name, by their keys.
    keys: HashTable<NodeIndex>,
    /// Nodes by their uids.
    uids: HashTable<NodeIndex>,
    hasher: RandomState,
}

impl Arena {
    pub(super) fn node(&self, ix: NodeIndex) -> &ArenaNode {
        &self.nodes[ix as usize]
    }

    pub(super) fn node_mut(&mut self, ix: NodeIndex) -> &mut ArenaNode {
        &mut self.nodes[ix as usize]
    }

    /// Indexes of all nodes in use.
    pub(super) fn places(&self) -> impl Iterator<Item = NodeIndex> + '_ {
        (0..).zip(&self.nodes).filter(|(_, node)| node.state != NodeState::Free).map(|(ix, _)| ix)
    }

    pub(super) fn is_present(&self, ix: NodeIndex) -> bool {
        self.node(ix).state == NodeState::Present
    }

    /// The node of that name, present or only referenced.
    pub(super) fn find(&self, kind: KindId, namespace: &str, name: &str, section: &str) -> Option<NodeIndex> {
        let key = NodeKey {
            kind,
            namespace: self.names.find(namespace)?,
            name: self.names.find(name)?,
            section: self.names.find(section)?,
        };
        self.keys.find(self.hasher.hash_one(key), |ix| self.node(*ix).key == key).copied()
    }

    /// Adds a node to the index by key.
    fn index_key(&mut self, ix: NodeIndex) {
        let Self { keys, nodes, hasher, .. } = self;
        let hash = |ix: &NodeIndex| hasher.hash_one(nodes[*ix as usize].key);
        keys.insert_unique(hash(&ix), ix, hash);
    }

    fn with_uid(&self, uid: Uid) -> Option<NodeIndex> {
        self.uids.find(self.hasher.hash_one(uid), |ix| self.node(*ix).uid == Some(uid)).copied()
    }

    /// Adds a node to the index by uid.
    fn index_uid(&mut self, ix: NodeIndex) {
        let Self { uids, nodes, hasher, .. } = self;
        let hash = |ix: &NodeIndex| hasher.hash_one(nodes[*ix as usize].uid.unwrap_or_default());
        uids.insert_unique(hash(&ix), ix, hash);
    }

    /// Removes the uid of a node, also from the index.
    fn take_uid(&mut self, ix: NodeIndex) -> Option<Uid> {
        let uid = self.node(ix).uid?;
        if let Ok(entry) = self.uids.find_entry(self.hasher.hash_one(uid), |known| *known == ix) {
            entry.remove();
        }
        self.node_mut(ix).uid.take()
    }

    /// Hash of the references of a node, then the facts of its kind; empty for a node that is only
    /// referenced.
    pub(super) fn facts(&self, ix: NodeIndex) -> &[u64] {
        self.facts.at(self.node(ix).facts)
    }

    /// Replaces the facts of a node and returns the old ones.
    pub(super) fn set_facts(&mut self, ix: NodeIndex, facts: &[u64]) -> Vec<u64> {
        let old = self.facts(ix).to_vec();
        self.facts.free(self.node(ix).facts);
        self.node_mut(ix).facts = self.facts.put(facts);
        old
    }

    /// The node of that name; creates a referenced one if there is none.
    pub(super) fn named(&mut self, kind: KindId, namespace: &str, name: &str, section: &str) -> NodeIndex {
        if let Some(ix) = self.find(kind, namespace, name, section) {
            return ix;
        }
        let names = &mut self.names;
        let key = NodeKey {
            kind,
            namespace: names.take(namespace),
            name: names.take(name),
            section: names.take(section),
        };
        let ix = self.add(key, NodeState::Named, None);
        self.index_key(ix);
        ix
    }

    /// The node of that uid; creates an anchor if there is none.
    pub(super) fn of_uid(&mut self, uid: Uid) -> NodeIndex {
        if let Some(ix) = self.with_uid(uid) {
            return ix;
        }
        let key = NodeKey {
            kind: KindId(0),
            namespace: Sym::default(),
            name: Sym::default(),
            section: Sym::default(),
        };
        let ix = self.add(key, NodeState::Anchor, Some(uid));
        self.index_uid(ix);
        ix
    }

    fn add(&mut self, key: NodeKey, state: NodeState, uid: Option<Uid>) -> NodeIndex {
        let node = ArenaNode {
            key,
            state,
            seen: 0,
            held: NONE,
            below: NONE,
            above: NONE,
            version: 0,
            uid,
            facts: FactRange::default(),
        };
        put(&mut self.nodes, &mut self.free_nodes, node)
    }

    /// Sets the uid of a node; edges to that uid point to the node from now on.
    pub(super) fn set_uid(&mut self, ix: NodeIndex, uid: Option<Uid>) {
        self.drop_uid(ix);
        let Some(uid) = uid else { return };
        if let Some(known) = self.with_uid(uid) {
            // The anchor is no longer needed. If two objects have one uid (one object under two kinds),
            // the later one takes it.
            self.move_edges(known, ix);
            self.take_uid(known);
            self.release(known);
        }
        self.node_mut(ix).uid = Some(uid);
        self.index_uid(ix);
    }

    /// Removes the uid of a node; edges to that uid dangle from now on.
    pub(super) fn drop_uid(&mut self, ix: NodeIndex) {
        let Some(uid) = self.take_uid(ix) else { return };
        let meant =
            |arena: &Self, list: NodeIndex| arena.listed(list).any(|edge| arena.edges[edge as usize].by_uid);
        if meant(self, self.node(ix).below) || meant(self, self.node(ix).above) {
            let anchor = self.of_uid(uid);
            self.move_edges(ix, anchor);
        }
    }

    /// Moves the edges that refer by uid.
    fn move_edges(&mut self, from: NodeIndex, to: NodeIndex) {
        let node = self.node(from);
        let all: Vec<NodeIndex> = self.listed(node.below).chain(self.listed(node.above)).collect();
        for edge in all {
            if self.edges[edge as usize].by_uid {
                self.take_from_target(edge);
                self.edges[edge as usize].target = to;
                self.add_to_target(edge);
            }
        }
    }

    /// Adds an edge.
    pub(super) fn link(
        &mut self,
        holder: NodeIndex,
        target: NodeIndex,
        link: u16,
        other: Side,
        by_uid: bool,
    ) {
        let next_held = self.node(holder).held;
        let edge = Edge { holder, target, next_held, previous: NONE, next: NONE, link, other, by_uid };
        let edge = put(&mut self.edges, &mut self.free_edges, edge);
        self.node_mut(holder).held = edge;
        self.add_to_target(edge);
    }

    /// Removes all edges that a node holds and returns their targets.
    pub(super) fn unlink(&mut self, holder: NodeIndex) -> Vec<NodeIndex> {
        let mut targets = Vec::new();
        let mut next = std::mem::replace(&mut self.node_mut(holder).held, NONE);
        while next != NONE {
            let edge = self.edges[next as usize];
            self.take_from_target(next);
            targets.push(edge.target);
            self.free_edges.push(next);
            next = edge.next_held;
        }
        targets
    }

    fn list_of_target(&mut self, edge: NodeIndex) -> &mut NodeIndex {
        let Edge { target, other, .. } = self.edges[edge as usize];
        let node = self.node_mut(target);
        match other {
            Side::Parent => &mut node.below,
            Side::Child => &mut node.above,
        }
    }

    fn add_to_target(&mut self, edge: NodeIndex) {
        let first = std::mem::replace(self.list_of_target(edge), edge);
        let added = &mut self.edges[edge as usize];
        (added.previous, added.next) = (NONE, first);
        if first != NONE {
            self.edges[first as usize].previous = edge;
        }
    }

    fn take_from_target(&mut self, edge: NodeIndex) {
        let Edge { previous, next, .. } = self.edges[edge as usize];
        match previous {
            NONE => *self.list_of_target(edge) = next,
            _ => self.edges[previous as usize].next = next,
        }
        if next != NONE {
            self.edges[next as usize].previous = previous;
        }
    }

    /// Frees the slot of a node that is neither present nor referenced.
    pub(super) fn release(&mut self, ix: NodeIndex) {
        let node = self.node(ix);
        let used = matches!(node.state, NodeState::Present | NodeState::Free);
        if used || node.held != NONE || node.below != NONE || node.above != NONE {
            return;
        }
        let (key, state) = (node.key, node.state);
        if state == NodeState::Named {
            if let Ok(entry) = self.keys.find_entry(self.hasher.hash_one(key), |known| *known == ix) {
                entry.remove();
            }
            [key.namespace, key.name, key.section].into_iter().for_each(|sym| self.names.release(sym));
        }
        self.take_uid(ix);
        self.set_facts(ix, &[]);
        self.node_mut(ix).state = NodeState::Free;
        self.free_nodes.push(ix);
    }

    fn listed(&self, first: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        std::iter::successors(some(first), |edge| some(self.edges[*edge as usize].next))
    }

    /// The edges that a node holds.
    pub(super) fn held(&self, ix: NodeIndex) -> impl Iterator<Item = &Edge> + '_ {
        let next = |edge: &NodeIndex| some(self.edges[*edge as usize].next_held);
        std::iter::successors(some(self.node(ix).held), next).map(|edge| &self.edges[edge as usize])
    }

    /// Parents or children of a node, each with the link of the edge.
    pub(super) fn neighbours(
        &self,
        ix: NodeIndex,
        side: Side,
    ) -> impl Iterator<Item = (NodeIndex, u16)> + '_ {
        let theirs = match side {
            Side::Parent => self.node(ix).above,
            Side::Child => self.node(ix).below,
        };
        let mine = self.held(ix).filter(move |edge| edge.other == side).map(|edge| (edge.target, edge.link));
        let theirs = self.listed(theirs).map(|edge| {
            let edge = &self.edges[edge as usize];
            (edge.holder, edge.link)
        });
        mine.chain(theirs)
    }

    /// Number of nodes, including those only referenced, and of edges.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.nodes.len() - self.free_nodes.len(), self.edges.len() - self.free_edges.len())
    }
}

fn some(ix: NodeIndex) -> Option<NodeIndex> {
    (ix != NONE).then_some(ix)
}

fn put<T>(slab: &mut Vec<T>, free: &mut Vec<NodeIndex>, item: T) -> NodeIndex {
    match free.pop() {
        Some(ix) => {
            slab[ix as usize] = item;
            ix
        }
        None => {
            slab.push(item);
            place(slab.len() - 1)
        }
    }
}
