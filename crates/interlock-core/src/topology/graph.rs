//! The graph: one event in, the affected roots out.

use std::collections::HashSet;

use serde_json::Value;

use super::arena::{Arena, Ix, State};
use super::declare::{Concerns, Kind, Reach, Ref, Side, Update};
use super::id::{Epoch, Id, KindId, Uid};
use super::names::Sym;
use super::reading::{Kept, Reading};
use super::schema::{Schema, Watch};
use crate::api::object::meta_str;

/// uids of deleted objects that are remembered, so that a late answer does not bring one back; it
/// is late by seconds, not by thousands of deletions.
const GONE: usize = 4096;

/// What happened to an object of a kind. Namespaces are empty where a watch is of all of them.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// A list of that namespace begins.
    Listing(&'a str),
    /// It is in the list.
    Listed(&'a Value),
    /// The list is complete: what was not in it is gone.
    Synced(&'a str),
    /// It is there, as given.
    Applied(&'a Value),
    /// It is gone; its last known state.
    Deleted(&'a Value),
}

/// What came of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Who has to act, in order and each once.
    pub roots: Vec<Id>,
    /// Whether the change told anything new: not an echo, nothing late, of this epoch.
    pub news: bool,
    /// Objects that turned out to be gone, in order.
    pub gone: Vec<Id>,
}

impl Dirty {
    fn sorted(mut self) -> Self {
        self.roots.sort_unstable();
        self.roots.dedup();
        self.gone.sort_unstable();
        self
    }
}

/// Every object that we care about, and how they hang together.
#[derive(Debug)]
pub struct Graph {
    pub(super) schema: Schema,
    pub(super) arena: Arena,
    gone: HashSet<Uid>,
}

impl Graph {
    /// An empty graph of these kinds; other kinds are read as `made`.
    pub fn new(kinds: &[&'static Kind], made: &'static Kind) -> Self {
        Self { schema: Schema::new(kinds, made), arena: Arena::default(), gone: HashSet::new() }
    }

    /// A kind, by group and kind.
    pub fn kind(&mut self, group: &str, kind: &str) -> KindId {
        self.schema.id(group, kind)
    }

    /// The life of the watch of a kind; `None` while it is unavailable.
    pub fn epoch(&self, kind: KindId) -> Option<Epoch> {
        self.schema.get(kind).watch.epoch
    }

    /// A watch of the kind begins. What is known of it from before is kept until the first list
    /// is complete. [`Self::concerned_by`] tells whom that concerns.
    pub fn kind_available(&mut self, kind: KindId, epoch: Epoch) {
        self.begin(kind, Some(epoch));
    }

    /// The kind is not watched any more: what is known of it stays as it is, and says nothing
    /// about what is not known. [`Self::concerned_by`] tells whom that concerns.
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

    /// The kind is gone, and every object of it with it.
    pub fn gone(&mut self, kind: KindId) -> Dirty {
        self.schema.get_mut(kind).watch = Watch::default();
        let all = self.objects(kind).collect();
        self.end_of(kind, all)
    }

    /// Forgets the objects of a kind, which says nothing of them: it is unavailable and unknown
    /// from now on. Answers what was forgotten.
    pub fn forget(&mut self, kind: KindId) -> Vec<Id> {
        self.schema.get_mut(kind).watch = Watch::default();
        let all: Vec<Ix> = self.objects(kind).collect();
        let ids = all.iter().map(|ix| self.id(*ix)).collect();
        all.into_iter().for_each(|ix| self.remove(ix));
        ids
    }

    /// Takes in what happened; answers who has to act. An event of another epoch is dropped.
    pub fn apply(&mut self, kind: KindId, epoch: Epoch, change: Change<'_>) -> Dirty {
        if self.epoch(kind) != Some(epoch) {
            return Dirty::default();
        }
        match change {
            Change::Applied(object) => self.see(kind, object, false),
            Change::Listed(object) => self.see(kind, object, true),
            Change::Deleted(object) => self.delete(kind, object),
            Change::Listing(namespace) => {
                let watch = &mut self.schema.get_mut(kind).watch;
                watch.round += 1;
                watch.listing.insert(namespace.to_owned(), watch.round);
                Dirty::default()
            }
            Change::Synced(namespace) => self.sweep(kind, namespace),
        }
    }

    /// Objects of a kind that are there.
    pub(super) fn objects(&self, kind: KindId) -> impl Iterator<Item = Ix> + '_ {
        self.arena.places().filter(move |ix| {
            let node = self.arena.node(*ix);
            node.key.kind == kind && node.state == State::Present && node.key.section.is_empty()
        })
    }

    fn see(&mut self, kind: KindId, object: &Value, listed: bool) -> Dirty {
        let Some((namespace, name)) = names_of(object) else { return Dirty::default() };
        let uid = meta_str(object, "uid").map(Uid::of);
        let version = version_of(object);
        let watch = &self.schema.get(kind).watch;
        let (round, begun, until) = (watch.round, watch.begun(namespace), watch.until);
        let known = self.arena.find(kind, namespace, name, "").filter(|ix| self.arena.is_present(*ix));
        if let Some(ix) = known {
            let node = self.arena.node_mut(ix);
            // In another life of the watch the same version may read otherwise. A list tells the
            // truth about what nobody has told since it began, also where versions have gone back,
            // as in a restored etcd.
            let unread = node.seen <= until;
            let same = version == node.version && !unread;
            let late = same || version < node.version && !(listed && node.seen < begun);
            if !(late && unread) {
                node.seen = node.seen.max(round);
            }
            if late && version != 0 {
                return Dirty::default();
            }
        } else if !listed && uid.is_some_and(|uid| self.gone.contains(&uid)) {
            return Dirty::default();
        }
        let reading = Reading::of(self.schema.get(kind), namespace, object);
        let mut dirty = Dirty { news: true, ..Dirty::default() };
        match known {
            Some(ix) if self.arena.node(ix).uid == uid => self.update(ix, &reading, &mut dirty),
            Some(ix) => {
                self.concerns(ix, self.schema.get(kind).declared.events.delete, &mut dirty);
                self.take_in(ix, uid, &reading);
                self.concerns(ix, self.schema.get(kind).declared.events.create, &mut dirty);
            }
            None => {
                let ix = self.arena.named(kind, namespace, name, "");
                self.arena.node_mut(ix).state = State::Present;
                self.take_in(ix, uid, &reading);
                self.concerns(ix, self.schema.get(kind).declared.events.create, &mut dirty);
            }
        }
        if let Some(ix) = self.arena.find(kind, namespace, name, "") {
            let node = self.arena.node_mut(ix);
            (node.version, node.seen) = (version, round);
        }
        dirty.sorted()
    }

    /// An object that is known changes.
    fn update(&mut self, ix: Ix, reading: &Reading<'_>, dirty: &mut Dirty) {
        let kind = self.schema.get(self.arena.node(ix).key.kind);
        let moved = self.arena.facts(ix).first() != Some(&reading.edges());
        let mut reaches: Vec<Reach> = Vec::new();
        if let Update::When(rows) = kind.declared.events.update {
            for row in rows {
                let differs = |name: &str| kind.place(name).is_some_and(|at| self.differs(ix, at, reading));
                if moved || row.differs.iter().any(|fact| differs(fact.name)) {
                    reaches.extend(row.concerns);
                }
            }
        }
        self.reach(ix, &reaches, dirty);
        if moved {
            self.take_in(ix, self.arena.node(ix).uid, reading);
            self.reach(ix, &reaches, dirty);
        } else {
            self.keep_facts(ix, reading);
        }
    }

    fn differs(&self, ix: Ix, place: usize, reading: &Reading<'_>) -> bool {
        let old = self.arena.facts(ix).get(place).copied();
        match reading.facts.get(place - 1) {
            Some(Kept::Word(word)) => old != self.arena.names.find(word).map(|sym| u64::from(sym.0)),
            Some(Kept::Mark(mark)) => old != Some(*mark),
            None => false,
        }
    }

    /// Makes a node what was read.
    fn take_in(&mut self, ix: Ix, uid: Option<Uid>, reading: &Reading<'_>) {
        if self.arena.node(ix).uid != uid {
            self.arena.set_uid(ix, uid);
        }
        let dangling = self.let_go(ix);
        self.keep_facts(ix, reading);
        self.connect(ix, reading);
        dangling.into_iter().for_each(|target| self.arena.release(target));
    }

    fn keep_facts(&mut self, ix: Ix, reading: &Reading<'_>) {
        let names = &mut self.arena.names;
        let read = reading.facts.iter().map(|fact| match fact {
            Kept::Word(word) => u64::from(names.take(word).0),
            Kept::Mark(mark) => *mark,
        });
        let facts: Vec<u64> = std::iter::once(reading.edges()).chain(read).collect();
        let old = self.arena.set_facts(ix, &facts);
        self.give_words(ix, &old);
    }

    fn give_words(&mut self, ix: Ix, facts: &[u64]) {
        let kind = self.schema.get(self.arena.node(ix).key.kind);
        for (_, fact) in facts.iter().enumerate().filter(|(place, _)| kind.is_word(*place)) {
            self.arena.names.give(Sym::of(*fact));
        }
    }

    /// Adds the edges of an object and of its parts.
    fn connect(&mut self, ix: Ix, reading: &Reading<'_>) {
        let key = self.arena.node(ix).key;
        let (namespace, name) =
            (self.arena.names.text(key.namespace).to_owned(), self.arena.names.text(key.name).to_owned());
        let to_parts = self.schema.get(key.kind).parts;
        let mut parts = Vec::with_capacity(reading.parts.len());
        for part in &reading.parts {
            let at = self.arena.named(key.kind, &namespace, &name, part);
            self.arena.node_mut(at).state = State::Present;
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
                // A link without a kind says who is meant by uid.
                (Ref::Named { .. }, None) => continue,
            };
            self.arena.link(holder, target, reference.link, row.other, by_uid);
        }
    }

    /// Removes the edges of an object and of its parts, and the parts; gives what they led to.
    fn let_go(&mut self, ix: Ix) -> Vec<Ix> {
        let to_parts = self.schema.get(self.arena.node(ix).key.kind).parts;
        let is_object = self.arena.node(ix).key.section.is_empty();
        let parts: Vec<Ix> = self
            .arena
            .held(ix)
            .filter(|edge| is_object && edge.link == to_parts && edge.other == Side::Child)
            .map(|edge| edge.target)
            .collect();
        let mut targets = self.arena.unlink(ix);
        for part in parts {
            targets.extend(self.arena.unlink(part));
            self.arena.node_mut(part).state = State::Named;
        }
        targets
    }

    fn delete(&mut self, kind: KindId, object: &Value) -> Dirty {
        let uid = meta_str(object, "uid").map(Uid::of);
        self.bury(uid);
        let Some((namespace, name)) = names_of(object) else { return Dirty::default() };
        let found = self.arena.find(kind, namespace, name, "").filter(|ix| self.arena.is_present(*ix));
        // A late word about an object that was recreated since.
        let same = |ix: &Ix| match (self.arena.node(*ix).uid, uid) {
            (Some(known), Some(uid)) => known == uid,
            _ => true,
        };
        let Some(ix) = found.filter(same) else { return Dirty::default() };
        self.end_of(kind, vec![ix])
    }

    /// An object that a list does not hold is gone.
    fn sweep(&mut self, kind: KindId, namespace: &str) -> Dirty {
        let watch = &mut self.schema.get_mut(kind).watch;
        watch.synced.insert(namespace.to_owned());
        let Some(round) = watch.listing.remove(namespace) else {
            return Dirty { news: true, ..Dirty::default() };
        };
        let unseen = |ix: &Ix| {
            let node = self.arena.node(*ix);
            let listed = namespace.is_empty() || self.arena.names.text(node.key.namespace) == namespace;
            listed && node.seen < round
        };
        let unseen = self.objects(kind).filter(unseen).collect();
        self.end_of(kind, unseen)
    }

    /// These objects of a kind are gone.
    fn end_of(&mut self, kind: KindId, gone: Vec<Ix>) -> Dirty {
        let mut dirty = Dirty { news: true, ..Dirty::default() };
        let declared = self.schema.get(kind).declared;
        gone.iter().for_each(|ix| self.concerns(*ix, declared.events.delete, &mut dirty));
        for ix in gone {
            self.bury(self.arena.node(ix).uid);
            dirty.gone.push(self.id(ix));
            self.remove(ix);
        }
        dirty.sorted()
    }

    fn bury(&mut self, uid: Option<Uid>) {
        if self.gone.len() >= GONE {
            self.gone.clear();
        }
        self.gone.extend(uid);
    }

    fn remove(&mut self, ix: Ix) {
        let targets = self.let_go(ix);
        let facts = self.arena.set_facts(ix, &[]);
        self.give_words(ix, &facts);
        self.arena.drop_uid(ix);
        let node = self.arena.node_mut(ix);
        (node.state, node.version) = (State::Named, 0);
        self.arena.release(ix);
        targets.into_iter().for_each(|target| self.arena.release(target));
    }

    fn concerns(&self, ix: Ix, concerns: Concerns, dirty: &mut Dirty) {
        if let Concerns::Roots(reaches) = concerns {
            self.reach(ix, reaches, dirty);
        }
    }

    fn reach(&self, from: Ix, ways: &[Reach], dirty: &mut Dirty) {
        dirty.roots.extend(self.reached(from, ways).into_iter().map(|ix| self.id(ix)));
    }
}

fn names_of(object: &Value) -> Option<(&str, &str)> {
    Some((meta_str(object, "namespace").unwrap_or_default(), meta_str(object, "name")?))
}

/// `metadata.resourceVersion`, an ordered number; 0 where it is none.
fn version_of(object: &Value) -> u64 {
    meta_str(object, "resourceVersion").and_then(|version| version.parse().ok()).unwrap_or(0)
}
