//! The graph: one event in, the affected roots out.

use std::collections::HashMap;

use serde_json::Value;

use super::arena::{Arena, NodeIndex, NodeState};
use super::id::{Epoch, KindId, NodeId, Uid};
use super::kind_table::{Schema, WatchProgress};
use super::names::Sym;
use super::reading::{KeptFact, ObjectReading};
use super::schema::{DeclaredKind, EventScope, EventTriggers, LinkPath, Ref, Side};
use crate::api::object::meta_str;

/// Number of remembered uids of deleted objects, so that a late response does not bring one back.
/// Responses are late by seconds, not by thousands of deletions.
const GONE: usize = 4096;

/// A watch event of a kind. Namespaces are empty for a watch of all of them.
#[derive(Clone, Copy, Debug)]
pub enum GraphChange<'a> {
    /// A list of that namespace begins.
    Listing(&'a str),
    /// The list contains the object.
    Listed(&'a Value),
    /// The list is complete: objects that it does not contain are gone.
    Synced(&'a str),
    /// The object exists, as given.
    Applied(&'a Value),
    /// The object is gone; its last known state.
    Deleted(&'a Value),
}

/// The effect of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AffectedNodes {
    /// The roots to reconcile, sorted, each once.
    pub roots: Vec<NodeId>,
    /// Whether the change is new: no echo, not late, of this epoch.
    pub news: bool,
    /// Objects found to be gone, sorted.
    pub gone: Vec<NodeId>,
}

impl AffectedNodes {
    fn sorted(mut self) -> Self {
        self.roots.sort_unstable();
        self.roots.dedup();
        self.gone.sort_unstable();
        self
    }
}

/// All watched objects and their references.
#[derive(Debug)]
pub struct Graph {
    pub(super) schema: Schema,
    pub(super) arena: Arena,
    /// Uids of what is gone, and the version of its deletion. A later version shows that it only left the watch, as
    /// when its label was taken off, and is back.
    gone: HashMap<Uid, u64>,
}

impl Graph {
    /// An empty graph of these kinds; other kinds are read as `made`.
    pub fn new(kinds: &[&'static DeclaredKind], made: &'static DeclaredKind) -> Self {
        Self { schema: Schema::new(kinds, made), arena: Arena::default(), gone: HashMap::new() }
    }

    /// The id of a kind; registers an unknown one.
    pub fn kind(&mut self, group: &str, kind: &str) -> KindId {
        self.schema.id(group, kind)
    }

    /// The epoch of the watch of a kind; `None` while it is unavailable.
    pub fn epoch(&self, kind: KindId) -> Option<Epoch> {
        self.schema.get(kind).watch.epoch
    }

    /// Whether an object of a namespace that is not in the graph does not exist, or has no label that is watched.
    pub fn knows(&self, kind: KindId, namespace: &str) -> bool {
        self.schema.get(kind).watch.knows(namespace)
    }

    /// Starts a watch of the kind. Known objects stay until the first list is complete.
    /// [`Self::concerned_by`] returns the affected roots.
    pub fn kind_available(&mut self, kind: KindId, epoch: Epoch) {
        self.begin(kind, Some(epoch));
    }

    /// Ends the watch of the kind: known objects stay as they are, all others are unknown rather than
    /// absent. [`Self::concerned_by`] returns the affected roots.
    pub fn kind_unavailable(&mut self, kind: KindId) {
        self.begin(kind, None);
    }

    fn begin(&mut self, kind: KindId, epoch: Option<Epoch>) {
        let watch = &mut self.schema.get_mut(kind).watch;
        watch.epoch = epoch;
        watch.until = watch.round;
        watch.round += 1;
        watch.listing.clear();
        watch.synced.clear();
    }

    /// Removes a kind that is gone, with all its objects.
    pub fn gone(&mut self, kind: KindId) -> AffectedNodes {
        self.schema.get_mut(kind).watch = WatchProgress::default();
        let all = self.objects(kind).collect();
        self.end_of(kind, all, u64::MAX)
    }

    /// Forgets the objects of a kind without treating them as deleted: the kind is unavailable and they
    /// are unknown from now on. Returns their ids.
    pub fn forget(&mut self, kind: KindId) -> Vec<NodeId> {
        self.schema.get_mut(kind).watch = WatchProgress::default();
        let all: Vec<NodeIndex> = self.objects(kind).collect();
        let ids = all.iter().map(|ix| self.id(*ix)).collect();
        all.into_iter().for_each(|ix| self.remove(ix));
        ids
    }

    /// Applies a watch event and returns the affected roots. Events of another epoch are dropped.
    pub fn apply(&mut self, kind: KindId, epoch: Epoch, change: GraphChange<'_>) -> AffectedNodes {
        if self.epoch(kind) != Some(epoch) {
            return AffectedNodes::default();
        }
        match change {
            GraphChange::Applied(object) => self.observe(kind, object, false),
            GraphChange::Listed(object) => self.observe(kind, object, true),
            GraphChange::Deleted(object) => self.delete(kind, object),
            GraphChange::Listing(namespace) => {
                let watch = &mut self.schema.get_mut(kind).watch;
                watch.round += 1;
                watch.listing.insert(namespace.to_owned(), watch.round);
                AffectedNodes::default()
            }
            GraphChange::Synced(namespace) => self.sweep(kind, namespace),
        }
    }

    /// Existing objects of a kind.
    pub(super) fn objects(&self, kind: KindId) -> impl Iterator<Item = NodeIndex> + '_ {
        self.arena.places().filter(move |ix| {
            let node = self.arena.node(*ix);
            node.key.kind == kind && node.state == NodeState::Present && node.key.section.is_empty()
        })
    }

    fn observe(&mut self, kind: KindId, object: &Value, listed: bool) -> AffectedNodes {
        let Some((namespace, name)) = names_of(object) else { return AffectedNodes::default() };
        let uid = meta_str(object, "uid").map(Uid::of);
        let version = version_of(object);
        let watch = &self.schema.get(kind).watch;
        let (round, begun, until) = (watch.round, watch.begun(namespace), watch.until);
        let known = self.arena.find(kind, namespace, name, "").filter(|ix| self.arena.is_present(*ix));
        if let Some(ix) = known {
            let node = self.arena.node_mut(ix);
            // In another epoch the same version may read differently. A list is authoritative for
            // objects without an event since it began, even if versions went back, as in a restored
            // etcd.
            let unread = node.seen <= until;
            let same = version == node.version && !unread;
            let late = same || version < node.version && !(listed && node.seen < begun);
            if !(late && unread) {
                node.seen = node.seen.max(round);
            }
            if late && version != 0 {
                return AffectedNodes::default();
            }
        } else if let Some(uid) = uid {
            if !listed && self.gone.get(&uid).is_some_and(|gone_at| version <= *gone_at) {
                return AffectedNodes::default();
            }
            self.gone.remove(&uid);
        }
        let reading = ObjectReading::of(self.schema.get(kind), namespace, object);
        let mut affected = AffectedNodes { news: true, ..AffectedNodes::default() };
        match known {
            Some(ix) if self.arena.node(ix).uid == uid => self.update(ix, &reading, &mut affected),
            Some(ix) => {
                // It was gone before another got its name.
                self.remember_gone(self.arena.node(ix).uid, version);
                self.concerns(ix, self.schema.get(kind).declared.events.delete, &mut affected);
                self.take_in(ix, uid, &reading);
                self.concerns(ix, self.schema.get(kind).declared.events.create, &mut affected);
            }
            None => {
                let ix = self.arena.named(kind, namespace, name, "");
                self.arena.node_mut(ix).state = NodeState::Present;
                self.take_in(ix, uid, &reading);
                self.concerns(ix, self.schema.get(kind).declared.events.create, &mut affected);
            }
        }
        if let Some(ix) = self.arena.find(kind, namespace, name, "") {
            let node = self.arena.node_mut(ix);
            (node.version, node.seen) = (version, round);
        }
        affected.sorted()
    }

    /// Updates a known object.
    fn update(&mut self, ix: NodeIndex, reading: &ObjectReading<'_>, affected: &mut AffectedNodes) {
        let kind = self.schema.get(self.arena.node(ix).key.kind);
        let moved = self.arena.facts(ix).first() != Some(&reading.edges());
        let mut reaches: Vec<LinkPath> = Vec::new();
        if let EventScope::When(rows) = kind.declared.events.update {
            for row in rows {
                let differs = |name: &str| kind.place(name).is_some_and(|at| self.differs(ix, at, reading));
                if moved || row.differs.iter().any(|fact| differs(fact.name)) {
                    reaches.extend(row.concerns);
                }
            }
        }
        self.reach(ix, &reaches, affected);
        if moved {
            self.take_in(ix, self.arena.node(ix).uid, reading);
            self.reach(ix, &reaches, affected);
        } else {
            self.store_facts(ix, reading);
        }
    }

    fn differs(&self, ix: NodeIndex, place: usize, reading: &ObjectReading<'_>) -> bool {
        let old = self.arena.facts(ix).get(place).copied();
        match reading.facts.get(place - 1) {
            Some(KeptFact::Word(word)) => old != self.arena.names.find(word).map(|sym| u64::from(sym.0)),
            Some(KeptFact::Mark(mark)) => old != Some(*mark),
            None => false,
        }
    }

    /// Stores a reading in a node.
    fn take_in(&mut self, ix: NodeIndex, uid: Option<Uid>, reading: &ObjectReading<'_>) {
        if self.arena.node(ix).uid != uid {
            self.arena.set_uid(ix, uid);
        }
        let dangling = self.detach(ix);
        self.store_facts(ix, reading);
        self.connect(ix, reading);
        dangling.into_iter().for_each(|target| self.arena.release(target));
    }

    fn store_facts(&mut self, ix: NodeIndex, reading: &ObjectReading<'_>) {
        let names = &mut self.arena.names;
        let read = reading.facts.iter().map(|fact| match fact {
            KeptFact::Word(word) => u64::from(names.take(word).0),
            KeptFact::Mark(mark) => *mark,
        });
        let facts: Vec<u64> = std::iter::once(reading.edges()).chain(read).collect();
        let old = self.arena.set_facts(ix, &facts);
        self.release_words(ix, &old);
    }

    fn release_words(&mut self, ix: NodeIndex, facts: &[u64]) {
        let kind = self.schema.get(self.arena.node(ix).key.kind);
        for (_, fact) in facts.iter().enumerate().filter(|(place, _)| kind.is_word(*place)) {
            self.arena.names.release(Sym::of(*fact));
        }
    }

    /// Adds the edges of an object and of its parts.
    fn connect(&mut self, ix: NodeIndex, reading: &ObjectReading<'_>) {
        let key = self.arena.node(ix).key;
        let (namespace, name) =
            (self.arena.names.text(key.namespace).to_owned(), self.arena.names.text(key.name).to_owned());
        let to_parts = self.schema.get(key.kind).parts;
        let mut parts = Vec::with_capacity(reading.parts.len());
        for part in &reading.parts {
            let at = self.arena.named(key.kind, &namespace, &name, part);
            self.arena.node_mut(at).state = NodeState::Present;
            self.arena.link(ix, at, to_parts, Side::Child, false);
            parts.push(at);
        }
        for reference in &reading.references {
            let row = *self.schema.link(reference.link);
            let holder = reference.part.and_then(|at| parts.get(at).copied()).unwrap_or(ix);
            let (target, by_uid) = match (&reference.to, row.kind) {
                (Ref::Uid(uid), _) => (self.arena.of_uid(Uid::of(uid)), true),
                (Ref::Named { namespace, name, section }, Some(kind)) => {
                    (self.arena.named(kind, namespace, name, section), false)
                }
                // A link without a kind refers by uid.
                (Ref::Named { .. }, None) => continue,
            };
            self.arena.link(holder, target, reference.link, row.other, by_uid);
        }
    }

    /// Removes the edges of an object and of its parts, and the parts; returns the targets.
    fn detach(&mut self, ix: NodeIndex) -> Vec<NodeIndex> {
        let to_parts = self.schema.get(self.arena.node(ix).key.kind).parts;
        let is_object = self.arena.node(ix).key.section.is_empty();
        let parts: Vec<NodeIndex> = self
            .arena
            .held(ix)
            .filter(|edge| is_object && edge.link == to_parts && edge.other == Side::Child)
            .map(|edge| edge.target)
            .collect();
        let mut targets = self.arena.unlink(ix);
        for part in parts {
            targets.extend(self.arena.unlink(part));
            self.arena.node_mut(part).state = NodeState::Named;
        }
        targets
    }

    fn delete(&mut self, kind: KindId, object: &Value) -> AffectedNodes {
        let uid = meta_str(object, "uid").map(Uid::of);
        // Where a read did not find it, its version is not known.
        let version = Some(version_of(object)).filter(|version| *version != 0);
        let gone_at = version.unwrap_or(u64::MAX);
        self.remember_gone(uid, gone_at);
        let Some((namespace, name)) = names_of(object) else { return AffectedNodes::default() };
        let found = self.arena.find(kind, namespace, name, "").filter(|ix| self.arena.is_present(*ix));
        // A late event must not delete an object that was recreated since.
        let same = |ix: &NodeIndex| match (self.arena.node(*ix).uid, uid) {
            (Some(known), Some(uid)) => known == uid,
            _ => true,
        };
        let late = |ix: &NodeIndex| version.is_some_and(|version| version < self.arena.node(*ix).version);
        let found = found.filter(same).filter(|ix| !late(ix));
        let Some(ix) = found else { return AffectedNodes::default() };
        self.end_of(kind, vec![ix], gone_at)
    }

    /// Removes the objects that a list does not contain.
    fn sweep(&mut self, kind: KindId, namespace: &str) -> AffectedNodes {
        let watch = &mut self.schema.get_mut(kind).watch;
        watch.synced.insert(namespace.to_owned());
        let Some(round) = watch.listing.remove(namespace) else {
            return AffectedNodes { news: true, ..AffectedNodes::default() };
        };
        let unseen = |ix: &NodeIndex| {
            let node = self.arena.node(*ix);
            let listed = namespace.is_empty() || self.arena.names.text(node.key.namespace) == namespace;
            listed && node.seen < round
        };
        let unseen = self.objects(kind).filter(unseen).collect();
        self.end_of(kind, unseen, u64::MAX)
    }

    /// Removes objects of a kind that are gone since a version.
    fn end_of(&mut self, kind: KindId, gone: Vec<NodeIndex>, version: u64) -> AffectedNodes {
        let mut affected = AffectedNodes { news: true, ..AffectedNodes::default() };
        let declared = self.schema.get(kind).declared;
        gone.iter().for_each(|ix| self.concerns(*ix, declared.events.delete, &mut affected));
        for ix in gone {
            self.remember_gone(self.arena.node(ix).uid, version);
            affected.gone.push(self.id(ix));
            self.remove(ix);
        }
        affected.sorted()
    }

    fn remember_gone(&mut self, uid: Option<Uid>, version: u64) {
        if self.gone.len() >= GONE {
            self.gone.clear();
        }
        if let Some(uid) = uid {
            let gone_at = self.gone.entry(uid).or_insert(version);
            *gone_at = version.max(*gone_at);
        }
    }

    fn remove(&mut self, ix: NodeIndex) {
        let targets = self.detach(ix);
        let facts = self.arena.set_facts(ix, &[]);
        self.release_words(ix, &facts);
        self.arena.drop_uid(ix);
        let node = self.arena.node_mut(ix);
        (node.state, node.version) = (NodeState::Named, 0);
        self.arena.release(ix);
        targets.into_iter().for_each(|target| self.arena.release(target));
    }

    /// An object appears or is deleted: the roots of its kind's row, and the objects that follow it.
    fn concerns(&self, ix: NodeIndex, concerns: EventTriggers, affected: &mut AffectedNodes) {
        self.reach(ix, &self.schema.get(self.arena.node(ix).key.kind).followers, affected);
        if let EventTriggers::Roots(reaches) = concerns {
            self.reach(ix, reaches, affected);
        }
    }

    fn reach(&self, from: NodeIndex, ways: &[LinkPath], affected: &mut AffectedNodes) {
        affected.roots.extend(self.reached(from, ways).into_iter().map(|ix| self.id(ix)));
    }
}

fn names_of(object: &Value) -> Option<(&str, &str)> {
    Some((meta_str(object, "namespace").unwrap_or_default(), meta_str(object, "name")?))
}

/// `metadata.resourceVersion`, an ordered number; 0 if it is no number.
pub(super) fn version_of(object: &Value) -> u64 {
    meta_str(object, "resourceVersion").and_then(|version| version.parse().ok()).unwrap_or(0)
}
