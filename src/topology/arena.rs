//! Where nodes and edges are kept: two slabs and two indexes.
//!
//! A node stands for an object, for a part of one, or for something that is only referred to:
//! a name or a uid that no object has yet. So an edge always has two ends, and one that dangles
//! resolves by itself when its target appears. An edge is in three lists (of its holder, and of
//! its target's children or parents), so that adding and removing one does not depend on how
//! many others its ends have.

use std::collections::HashMap;

use super::declare::Side;
use super::id::{KindId, Uid};
use super::names::{Names, Sym};

/// Place of a node or an edge.
pub(super) type Ix = u32;
/// No place.
pub(super) const NONE: Ix = u32::MAX;

/// What a node is keyed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub kind: KindId,
    pub namespace: Sym,
    pub name: Sym,
    pub section: Sym,
}

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// An object or a part of one that is there.
    Present,
    /// A name that is referred to.
    Named,
    /// A uid that is referred to; the key says nothing.
    Anchor,
    /// Nothing: the place is free.
    Free,
}

#[derive(Debug)]
pub(super) struct Node {
    pub key: Key,
    pub state: State,
    /// The list in which it was seen last.
    pub seen: u32,
    /// Edges that it holds.
    pub held: Ix,
    /// Edges of others that are its children.
    pub below: Ix,
    /// Edges of others that are its parents.
    pub above: Ix,
    /// `metadata.resourceVersion`.
    pub version: u64,
    pub uid: Option<Uid>,
    /// Hash of the references, then the facts of the kind.
    pub facts: Box<[u64]>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub holder: Ix,
    pub target: Ix,
    /// Next edge of the holder.
    next_held: Ix,
    /// Neighbours in the list of the target.
    previous: Ix,
    next: Ix,
    pub link: u16,
    /// What the target is to the holder.
    pub other: Side,
    pub by_uid: bool,
}

/// Nodes, edges and their indexes.
#[derive(Debug, Default)]
pub(super) struct Arena {
    pub names: Names,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    free_nodes: Vec<Ix>,
    free_edges: Vec<Ix>,
    index: HashMap<Key, Ix>,
    uids: HashMap<Uid, Ix>,
}

impl Arena {
    pub(super) fn node(&self, ix: Ix) -> &Node {
        &self.nodes[ix as usize]
    }

    pub(super) fn node_mut(&mut self, ix: Ix) -> &mut Node {
        &mut self.nodes[ix as usize]
    }

    /// Places of all nodes that are not free.
    pub(super) fn places(&self) -> impl Iterator<Item = Ix> + '_ {
        (0..).zip(&self.nodes).filter(|(_, node)| node.state != State::Free).map(|(ix, _)| ix)
    }

    pub(super) fn is_present(&self, ix: Ix) -> bool {
        self.node(ix).state == State::Present
    }

    /// The node of that name, present or only referred to.
    pub(super) fn find(&self, kind: KindId, namespace: &str, name: &str, section: &str) -> Option<Ix> {
        let key = Key {
            kind,
            namespace: self.names.find(namespace)?,
            name: self.names.find(name)?,
            section: self.names.find(section)?,
        };
        self.index.get(&key).copied()
    }

    /// The node of that name; one that is only referred to where there is none.
    pub(super) fn named(&mut self, kind: KindId, namespace: &str, name: &str, section: &str) -> Ix {
        if let Some(ix) = self.find(kind, namespace, name, section) {
            return ix;
        }
        let names = &mut self.names;
        let key = Key {
            kind,
            namespace: names.take(namespace),
            name: names.take(name),
            section: names.take(section),
        };
        let ix = self.add(key, State::Named, None);
        self.index.insert(key, ix);
        ix
    }

    /// The node of that uid; an anchor where there is none.
    pub(super) fn of_uid(&mut self, uid: Uid) -> Ix {
        if let Some(ix) = self.uids.get(&uid) {
            return *ix;
        }
        let key =
            Key { kind: KindId(0), namespace: Sym::default(), name: Sym::default(), section: Sym::default() };
        let ix = self.add(key, State::Anchor, Some(uid));
        self.uids.insert(uid, ix);
        ix
    }

    fn add(&mut self, key: Key, state: State, uid: Option<Uid>) -> Ix {
        let node = Node {
            key,
            state,
            seen: 0,
            held: NONE,
            below: NONE,
            above: NONE,
            version: 0,
            uid,
            facts: Box::default(),
        };
        put(&mut self.nodes, &mut self.free_nodes, node)
    }

    /// Gives a node its uid; edges to that uid are its from now on.
    pub(super) fn set_uid(&mut self, ix: Ix, uid: Option<Uid>) {
        self.drop_uid(ix);
        let Some(uid) = uid else { return };
        if let Some(anchor) = self.uids.insert(uid, ix).filter(|anchor| *anchor != ix) {
            self.move_edges(anchor, ix);
            if self.node(anchor).state == State::Anchor {
                self.release(anchor);
            } else {
                // Two objects of one uid: a copy in another graph of kinds; the later one has it.
                self.node_mut(anchor).uid = None;
            }
        }
        self.node_mut(ix).uid = Some(uid);
    }

    /// Takes the uid from a node; edges to it dangle from now on.
    pub(super) fn drop_uid(&mut self, ix: Ix) {
        let Some(uid) = self.node_mut(ix).uid.take() else { return };
        self.uids.remove(&uid);
        let meant = |arena: &Self, list: Ix| arena.listed(list).any(|edge| arena.edges[edge as usize].by_uid);
        if meant(self, self.node(ix).below) || meant(self, self.node(ix).above) {
            let anchor = self.of_uid(uid);
            self.move_edges(ix, anchor);
        }
    }

    /// Moves the edges that mean a uid.
    fn move_edges(&mut self, from: Ix, to: Ix) {
        let node = self.node(from);
        let all: Vec<Ix> = self.listed(node.below).chain(self.listed(node.above)).collect();
        for edge in all {
            if self.edges[edge as usize].by_uid {
                self.take_from_target(edge);
                self.edges[edge as usize].target = to;
                self.add_to_target(edge);
            }
        }
    }

    /// Adds an edge.
    pub(super) fn link(&mut self, holder: Ix, target: Ix, link: u16, other: Side, by_uid: bool) {
        let next_held = self.node(holder).held;
        let edge = Edge { holder, target, next_held, previous: NONE, next: NONE, link, other, by_uid };
        let edge = put(&mut self.edges, &mut self.free_edges, edge);
        self.node_mut(holder).held = edge;
        self.add_to_target(edge);
    }

    /// Removes all edges that a node holds; gives their targets.
    pub(super) fn unlink(&mut self, holder: Ix) -> Vec<Ix> {
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

    fn list_of_target(&mut self, edge: Ix) -> &mut Ix {
        let Edge { target, other, .. } = self.edges[edge as usize];
        let node = self.node_mut(target);
        match other {
            Side::Parent => &mut node.below,
            Side::Child => &mut node.above,
        }
    }

    fn add_to_target(&mut self, edge: Ix) {
        let first = std::mem::replace(self.list_of_target(edge), edge);
        let added = &mut self.edges[edge as usize];
        (added.previous, added.next) = (NONE, first);
        if first != NONE {
            self.edges[first as usize].previous = edge;
        }
    }

    fn take_from_target(&mut self, edge: Ix) {
        let Edge { previous, next, .. } = self.edges[edge as usize];
        match previous {
            NONE => *self.list_of_target(edge) = next,
            _ => self.edges[previous as usize].next = next,
        }
        if next != NONE {
            self.edges[next as usize].previous = previous;
        }
    }

    /// Frees the place of a node that nothing is about any more.
    pub(super) fn release(&mut self, ix: Ix) {
        let node = self.node(ix);
        let used = matches!(node.state, State::Present | State::Free);
        if used || node.held != NONE || node.below != NONE || node.above != NONE {
            return;
        }
        let (key, state, uid) = (node.key, node.state, node.uid);
        if state == State::Named {
            self.index.remove(&key);
            [key.namespace, key.name, key.section].into_iter().for_each(|sym| self.names.give(sym));
        } else if let Some(uid) = uid.filter(|uid| self.uids.get(uid) == Some(&ix)) {
            self.uids.remove(&uid);
        }
        let node = self.node_mut(ix);
        (node.state, node.uid, node.facts) = (State::Free, None, Box::default());
        self.free_nodes.push(ix);
    }

    fn listed(&self, first: Ix) -> impl Iterator<Item = Ix> + '_ {
        std::iter::successors(some(first), |edge| some(self.edges[*edge as usize].next))
    }

    /// The edges that a node holds.
    pub(super) fn held(&self, ix: Ix) -> impl Iterator<Item = &Edge> + '_ {
        let next = |edge: &Ix| some(self.edges[*edge as usize].next_held);
        std::iter::successors(some(self.node(ix).held), next).map(|edge| &self.edges[edge as usize])
    }

    /// Parents or children of a node, with the link that says so.
    pub(super) fn neighbours(&self, ix: Ix, side: Side) -> impl Iterator<Item = (Ix, u16)> + '_ {
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

    /// Number of nodes, those that are only referred to among them, and of edges.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.nodes.len() - self.free_nodes.len(), self.edges.len() - self.free_edges.len())
    }
}

fn some(ix: Ix) -> Option<Ix> {
    (ix != NONE).then_some(ix)
}

fn put<T>(slab: &mut Vec<T>, free: &mut Vec<Ix>, item: T) -> Ix {
    match free.pop() {
        Some(ix) => {
            slab[ix as usize] = item;
            ix
        }
        None => {
            slab.push(item);
            // A graph of four thousand million nodes does not fit into memory.
            u32::try_from(slab.len() - 1).unwrap_or(NONE)
        }
    }
}
