//! What the graph must be and whom events must concern, by looking at everything every time:
//! nothing is indexed, nothing is kept but the objects. It shares the declarations with the graph
//! and nothing else.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use interlock_core::kinds;
use interlock_core::topology::schema::{
    DeclaredKind, EventScope, EventTriggers, Family, Holder, Link, LinkPath, ReadDepth, Ref, Side,
};
use interlock_core::topology::snapshot::Is;
use interlock_core::topology::{KindName, NodeId};
use serde_json::Value;

use super::objects;

/// Name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub kind: &'static str,
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn of(object: &Value) -> Self {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        Self { kind: objects::kind_of(object), namespace: text("namespace"), name: text("name") }
    }

    fn id(&self) -> NodeId {
        NodeId::new(objects::kind_name(self.kind), &self.namespace, &self.name)
    }
}

pub fn declared(kind: &'static str) -> &'static DeclaredKind {
    let name = objects::kind_name(kind);
    kinds::schemas(interlock::kinds::all())
        .into_iter()
        .find(|declared| declared.name == name)
        .unwrap_or(&kinds::MADE)
}

/// An edge: parent, child, name of the link, what it says.
type Edge = (NodeId, NodeId, &'static str, Family);

/// What is known.
#[derive(Default)]
pub struct Reference {
    pub objects: BTreeMap<Key, Value>,
    /// Kinds that are watched, and whether they were listed.
    pub available: BTreeMap<&'static str, bool>,
    /// uids that are gone, and the version of their deletion; what a list lacks was deleted at an unknown one.
    pub gone: BTreeMap<String, u64>,
    /// Made anew from all objects whenever one changes.
    edges: BTreeSet<Edge>,
}

/// The graph as it must be.
pub struct Expected {
    pub nodes: BTreeMap<NodeId, Is>,
    pub edges: BTreeSet<(NodeId, NodeId, &'static str)>,
}

impl Reference {
    /// An object appears, changes or is replaced; whom that concerns.
    pub fn put(&mut self, key: &Key, object: Value) -> Vec<NodeId> {
        let events = &declared(key.kind).events;
        self.gone.remove(objects::uid(&object));
        let (there, old) = (self.present(), self.objects.insert(key.clone(), object.clone()));
        let (now, after) = (self.present(), self.all_edges());
        let before = std::mem::replace(&mut self.edges, after);
        let after = &self.edges;
        let mut roots = BTreeSet::new();
        match old {
            None => concern(key, events.create, after, &now, &mut roots),
            Some(old) if objects::uid(&old) != objects::uid(&object) => {
                concern(key, events.delete, &before, &there, &mut roots);
                concern(key, events.create, after, &now, &mut roots);
            }
            Some(old) => {
                let moved = refers(key.kind, &old) != refers(key.kind, &object);
                let EventScope::When(rows) = events.update else { return Vec::new() };
                for row in rows {
                    let differs = row.differs.iter().any(|fact| differs(fact.read, &old, &object));
                    if moved || differs {
                        concern(key, EventTriggers::Roots(row.concerns), &before, &there, &mut roots);
                        concern(key, EventTriggers::Roots(row.concerns), after, &now, &mut roots);
                    }
                }
            }
        }
        roots.into_iter().collect()
    }

    /// Objects go; whom that concerns.
    pub fn remove(&mut self, keys: &[Key]) -> Vec<NodeId> {
        let there = self.present();
        let mut roots = BTreeSet::new();
        for key in keys {
            concern(key, declared(key.kind).events.delete, &self.edges, &there, &mut roots);
        }
        for key in keys {
            let object = self.objects.remove(key).unwrap();
            self.gone.insert(objects::uid(&object).to_owned(), u64::MAX);
        }
        self.edges = self.all_edges();
        roots.into_iter().collect()
    }

    /// Whom the objects of a kind concern.
    pub fn concerned_by_all(&self, kind: &str) -> Vec<NodeId> {
        let there = self.present();
        let mut roots = BTreeSet::new();
        for key in self.objects.keys().filter(|key| key.kind == kind) {
            concern(key, declared(key.kind).events.create, &self.edges, &there, &mut roots);
        }
        roots.into_iter().collect()
    }

    /// The graph as it must be.
    pub fn picture(&self) -> Expected {
        let edges = &self.edges;
        let mut nodes = BTreeMap::new();
        for key in self.objects.keys() {
            let is = if self.available.contains_key(key.kind) { Is::Present } else { Is::Frozen };
            nodes.insert(key.id(), is);
            for (name, _) in self.parts(key) {
                nodes.insert(key.id().section(&name), is);
            }
        }
        for end in edges.iter().flat_map(|(parent, child, ..)| [parent, child]) {
            let listed =
                self.available.iter().any(|(kind, listed)| end.kind == objects::kind_name(kind) && *listed);
            nodes.entry(end.clone()).or_insert(if listed { Is::Missing } else { Is::Unknown });
        }
        let plain = |(from, to, link, _): &Edge| (from.clone(), to.clone(), *link);
        Expected { nodes, edges: edges.iter().map(plain).collect() }
    }

    fn present(&self) -> BTreeSet<NodeId> {
        self.objects.keys().map(Key::id).collect()
    }

    fn parts(&self, key: &Key) -> Vec<(String, &Value)> {
        declared(key.kind).sections.map_or_else(Vec::new, |sections| (sections.read)(&self.objects[key]))
    }

    fn all_edges(&self) -> BTreeSet<Edge> {
        let mut edges = BTreeSet::new();
        for (key, object) in &self.objects {
            let kind = declared(key.kind);
            let holder = Holder { object, part: object, namespace: &key.namespace };
            self.add(&mut edges, &key.id(), kind.links, &holder);
            for sections in kind.sections.iter() {
                for (name, part) in self.parts(key) {
                    let at = key.id().section(&name);
                    edges.insert((key.id(), at.clone(), sections.noun, sections.family));
                    self.add(&mut edges, &at, sections.links, &Holder { part, ..holder });
                }
            }
        }
        edges
    }

    fn add(&self, edges: &mut BTreeSet<Edge>, from: &NodeId, links: &[Link], holder: &Holder<'_>) {
        for link in links {
            for reference in (link.read)(holder) {
                let target = match (&reference, link.kind) {
                    (Ref::Uid(uid), _) => self.of_uid(uid),
                    (Ref::Named { namespace, name, section }, Some(kind)) => {
                        NodeId::new(kind, namespace, name).section(section)
                    }
                    (Ref::Named { .. }, None) => continue,
                };
                let (parent, child) = match link.other {
                    Side::Parent => (target, from.clone()),
                    Side::Child => (from.clone(), target),
                };
                edges.insert((parent, child, link.name, link.family));
            }
        }
    }

    fn of_uid(&self, uid: &str) -> NodeId {
        let found = self.objects.iter().find(|(_, object)| objects::uid(object) == uid);
        found.map_or_else(|| NodeId::new(KindName::new("", "uid"), "", &as_uuid(uid)), |(key, _)| key.id())
    }
}

/// As the graph prints a uid that is none.
fn as_uuid(text: &str) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(text.as_bytes());
    uuid::Uuid::from_slice(&digest[..16]).unwrap().as_hyphenated().to_string()
}

/// Everything that an object refers to, its parts among it.
fn refers(kind: &'static str, object: &Value) -> Vec<(String, BTreeSet<(usize, Ref)>)> {
    let declared = declared(kind);
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
    let read = |links: &[Link], part| {
        let holder = Holder { object, part, namespace };
        let all = links.iter().enumerate();
        all.flat_map(|(at, link)| (link.read)(&holder).into_iter().map(move |to| (at, to))).collect()
    };
    let mut all = vec![(String::new(), read(declared.links, object))];
    for sections in declared.sections.iter() {
        let mut parts = (sections.read)(object);
        parts.sort_by(|a, b| a.0.cmp(&b.0));
        all.extend(parts.into_iter().map(|(name, part)| (name, read(sections.links, part))));
    }
    all
}

fn differs(read: ReadDepth, old: &Value, new: &Value) -> bool {
    match read {
        ReadDepth::Mark(read) => read(old) != read(new),
        ReadDepth::Word(read) => {
            let (old, new): (Cow<'_, str>, Cow<'_, str>) = (read(old), read(new));
            old != new
        }
    }
}

fn concern(
    key: &Key,
    whom: EventTriggers,
    edges: &BTreeSet<Edge>,
    there: &BTreeSet<NodeId>,
    into: &mut BTreeSet<NodeId>,
) {
    let EventTriggers::Roots(ways) = whom else { return };
    for way in ways {
        match way {
            LinkPath::Itself => {
                into.insert(key.id());
            }
            LinkPath::Up(family, kind) => {
                let step = |at: &NodeId| -> Vec<NodeId> {
                    let up = edges.iter().filter(|(_, child, _, says)| child == at && says == family);
                    up.map(|(parent, ..)| parent.clone()).collect()
                };
                nearest(key.id(), *kind, &step, there, &mut BTreeSet::new(), into);
            }
            LinkPath::Down(family, kind) => {
                let step = |at: &NodeId| -> Vec<NodeId> {
                    let down = edges.iter().filter(|(parent, _, _, says)| parent == at && says == family);
                    down.map(|(_, child, ..)| child.clone()).collect()
                };
                nearest(key.id(), *kind, &step, there, &mut BTreeSet::new(), into);
            }
        }
    }
}

fn nearest(
    from: NodeId,
    kind: KindName,
    step: &dyn Fn(&NodeId) -> Vec<NodeId>,
    there: &BTreeSet<NodeId>,
    been: &mut BTreeSet<NodeId>,
    into: &mut BTreeSet<NodeId>,
) {
    if !been.insert(from.clone()) {
        return;
    }
    for next in step(&from) {
        if next.kind == kind && next.section.is_empty() {
            // The start of a circle is not reached by it.
            if there.contains(&next) && !been.contains(&next) {
                into.insert(next);
            }
        } else {
            nearest(next, kind, step, there, been, into);
        }
    }
}
