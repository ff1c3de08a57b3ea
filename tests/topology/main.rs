//! Random objects and events: the graph that events made, and whom they concern, are those that a
//! slow and simple reference finds by looking at everything.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod events;
mod objects;
mod reference;

use std::collections::{BTreeMap, BTreeSet};

use interlock_core::kinds;
use interlock_core::topology::schema::{Holder, Link};
use interlock_core::topology::{Epoch, Graph, GraphChange, KindId, NodeId};
use objects::{Op, op};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use reference::{Key, Reference};
use serde_json::Value;

/// The graph beside what is known to be in the cluster.
struct World {
    graph: Graph,
    known: Reference,
    version: u64,
    epochs: BTreeMap<&'static str, u64>,
    deleted: Vec<Value>,
    /// Read in an earlier life of the watch, and not in this one.
    unread: BTreeSet<Key>,
}

impl World {
    fn new() -> Self {
        let mut world = Self {
            graph: kinds::graph(interlock::kinds::all()),
            known: Reference::default(),
            version: 0,
            epochs: BTreeMap::new(),
            deleted: Vec::new(),
            unread: BTreeSet::new(),
        };
        objects::KINDS.iter().for_each(|(_, kind, _)| world.available(kind));
        world
    }

    fn id(&mut self, kind: &str) -> KindId {
        let name = objects::kind_name(kind);
        self.graph.kind(name.group, name.kind)
    }

    fn available(&mut self, kind: &'static str) {
        let epoch = self.epochs.entry(kind).or_default();
        *epoch += 1;
        let epoch = Epoch(*epoch);
        let id = self.id(kind);
        self.graph.kind_available(id, epoch);
        self.concerned_by(id, kind);
        self.known.available.insert(kind, false);
        self.unread.extend(self.known.objects.keys().filter(|key| key.kind == kind).cloned());
    }

    fn concerned_by(&self, id: KindId, kind: &str) {
        let told: Vec<NodeId> = self.graph.concerned_by(id).collect();
        assert_eq!(told, self.known.concerned_by_all(kind), "whom {kind} concerns");
    }

    fn take(&mut self, op: &Op) {
        match op {
            Op::Apply(object) => self.apply(object),
            Op::Delete(key) => self.delete(key),
            Op::Late(which) => self.late(*which),
            Op::Echo(key) => self.echo(key),
            Op::Unavailable(kind) => {
                let id = self.id(kind);
                self.graph.kind_unavailable(id);
                self.concerned_by(id, kind);
                self.known.available.remove(kind);
            }
            Op::Available(kind) => self.available(kind),
            Op::List(kind, missing) => self.list(kind, *missing),
            Op::Gone(kind) => self.gone(kind),
        }
        self.compare();
    }

    fn compare(&self) {
        let (picture, expected) = (self.graph.snapshot(), self.known.picture());
        assert_eq!(picture.edges, expected.edges);
        let is = picture.nodes.iter().map(|(id, node)| (id.clone(), node.is)).collect();
        assert_eq!(expected.nodes, is);
    }

    fn epoch(&self, kind: &str) -> Epoch {
        Epoch(self.epochs[kind])
    }

    fn stamped(&mut self, object: &Value) -> Value {
        self.version += 1;
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        object
    }

    fn apply(&mut self, object: &Value) {
        let object = self.stamped(object);
        let key = Key::of(&object);
        let id = self.id(key.kind);
        // An object that was deleted does not come back: the next one has another uid. One that a watch by labels
        // reported as gone does, with a later version.
        let gone_at = self.known.gone.get(objects::uid(&object));
        let buried =
            gone_at.is_some_and(|gone_at| self.version <= *gone_at) && !self.known.objects.contains_key(&key);
        let expected = if self.known.available.contains_key(key.kind) && !buried {
            self.unread.remove(&key);
            self.known.put(&key, object.clone())
        } else {
            Vec::new()
        };
        let dirty = self.graph.apply(id, self.epoch(key.kind), GraphChange::Applied(&object));
        assert_eq!(dirty.roots, expected, "whom {object} concerns");
        let other = Epoch(self.epochs[key.kind] + 7);
        assert!(!self.graph.apply(id, other, GraphChange::Deleted(&object)).news, "of another epoch");
    }

    fn delete(&mut self, key: &Key) {
        let Some(object) = self.known.objects.get(key).cloned() else { return };
        let id = self.id(key.kind);
        let expected = if self.known.available.contains_key(key.kind) {
            self.deleted.push(object.clone());
            let concerned = self.known.remove(std::slice::from_ref(key));
            let version = objects::version(&object);
            self.known.gone.insert(objects::uid(&object).to_owned(), version);
            concerned
        } else {
            Vec::new()
        };
        let dirty = self.graph.apply(id, self.epoch(key.kind), GraphChange::Deleted(&object));
        assert_eq!(dirty.roots, expected, "whom the end of {object} concerns");
    }

    /// A word about an object that is gone, or is another one by now.
    fn late(&mut self, which: usize) {
        let Some(object) = self.deleted.get(which).cloned() else { return };
        let key = Key::of(&object);
        if self.known.objects.get(&key).is_some_and(|now| objects::uid(now) == objects::uid(&object)) {
            return;
        }
        let id = self.id(key.kind);
        for change in [GraphChange::Applied(&object), GraphChange::Deleted(&object)] {
            assert!(!self.graph.apply(id, self.epoch(key.kind), change).news, "late: {change:?}");
        }
    }

    /// An answer that is heard of twice.
    fn echo(&mut self, key: &Key) {
        let Some(object) = self.known.objects.get(key).cloned() else { return };
        let id = self.id(key.kind);
        let unread = self.known.available.contains_key(key.kind) && self.unread.remove(key);
        assert_eq!(self.graph.apply(id, self.epoch(key.kind), GraphChange::Applied(&object)).news, unread);
    }

    /// A list in which some objects are missing.
    fn list(&mut self, kind: &'static str, missing: u8) {
        if !self.known.available.contains_key(kind) {
            return;
        }
        let (id, epoch) = (self.id(kind), self.epoch(kind));
        self.graph.apply(id, epoch, GraphChange::Listing(""));
        let mine = self.known.objects.iter().filter(|(key, _)| key.kind == kind).enumerate();
        let (gone, there): (Vec<_>, Vec<_>) = mine.partition(|(place, _)| missing >> (place % 8) & 1 == 1);
        // A first try breaks off.
        for (_, (key, object)) in there.iter().chain(&gone).step_by(2) {
            let news = self.graph.apply(id, epoch, GraphChange::Listed(object)).news;
            assert_eq!(news, self.unread.remove(*key), "what is new in {object}");
        }
        self.graph.apply(id, epoch, GraphChange::Listing(""));
        for (_, (key, object)) in there {
            let news = self.graph.apply(id, epoch, GraphChange::Listed(object)).news;
            assert_eq!(news, self.unread.remove(key), "what is new in {object}");
        }
        let gone: Vec<Key> = gone.into_iter().map(|(_, (key, _))| key.clone()).collect();
        self.deleted.extend(gone.iter().map(|key| self.known.objects[key].clone()));
        let dirty = self.graph.apply(id, epoch, GraphChange::Synced(""));
        assert_eq!(dirty.gone.len(), gone.len());
        assert_eq!(dirty.roots, self.known.remove(&gone), "whom the end of {gone:?} concerns");
        self.known.available.insert(kind, true);
    }

    /// The definition of a kind is deleted, and its objects with it.
    fn gone(&mut self, kind: &'static str) {
        let id = self.id(kind);
        let keys: Vec<Key> = self.known.objects.keys().filter(|key| key.kind == kind).cloned().collect();
        self.deleted.extend(keys.iter().map(|key| self.known.objects[key].clone()));
        let dirty = self.graph.gone(id);
        assert_eq!(dirty.gone.len(), keys.len());
        assert_eq!(dirty.roots, self.known.remove(&keys), "whom the end of {kind} concerns");
        self.known.available.remove(kind);
    }

    /// The graph made anew from what is known, in another order, is the same.
    fn rebuilt(&mut self) -> Graph {
        let mut fresh = Self::new();
        for object in self.known.objects.values().rev() {
            fresh.apply(object);
        }
        fresh.graph
    }
}

/// Whatever is declared is played with, and every link of it leads somewhere.
#[test]
fn every_declared_kind_and_link_is_in_the_small_world() {
    for declared in kinds::schemas(interlock::kinds::all()) {
        let found = objects::KINDS.iter().find(|(_, kind, _)| objects::kind_name(kind) == declared.name);
        let (_, kind, namespaced) = *found.unwrap_or_else(|| panic!("{} is not played with", declared.name));
        let objects: Vec<Value> = objects::contents(kind).collect();
        let leads = |link: &Link, parts: &dyn Fn(&Value) -> Vec<Value>| {
            let namespace = if namespaced { "a" } else { "" };
            let read =
                |object: &Value, part: &Value| !(link.read)(&Holder { object, part, namespace }).is_empty();
            objects.iter().any(|object| parts(object).iter().any(|part| read(object, part)))
        };
        for link in declared.links {
            assert!(leads(link, &|object| vec![object.clone()]), "{}: {} of none", declared.name, link.name);
        }
        for sections in declared.sections.iter() {
            let parts = |object: &Value| -> Vec<Value> {
                (sections.read)(object).into_iter().map(|(_, part)| part.clone()).collect()
            };
            for link in sections.links {
                assert!(leads(link, &parts), "{}: {} of no {}", declared.name, link.name, sections.noun);
            }
        }
    }
}

#[test]
fn the_graph_is_what_a_rebuild_makes_of_it() {
    // A few seconds of an unoptimised build; `make soak` tries 120,000.
    let cases = if std::env::var_os("INTERLOCK_SOAK").is_some() { 120_000 } else { 600 };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let ops = proptest::collection::vec(op(), 1..24);
    let mut events = 0_usize;
    let counted = std::cell::RefCell::new(&mut events);
    let result = TestRunner::new(config).run(&ops, |ops| {
        let mut world = World::new();
        for op in &ops {
            world.take(op);
        }
        let rebuilt = world.rebuilt().snapshot();
        let found = world.graph.snapshot();
        prop_assert_eq!(&found.edges, &rebuilt.edges);
        let facts = |picture: &interlock_core::topology::snapshot::GraphSnapshot| -> BTreeSet<_> {
            picture.nodes.iter().map(|(id, node)| (id.clone(), node.facts.clone())).collect()
        };
        prop_assert_eq!(facts(&found), facts(&rebuilt));
        **counted.borrow_mut() += ops.len();
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    println!("{cases} cases, {events} events");
}
