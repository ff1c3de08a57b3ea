//! Ways through the graph, and what is asked of single nodes.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use super::arena::{Ix, Key, State};
use super::declare::{Concerns, Family, Reach, Side};
use super::graph::Graph;
use super::id::{GroupKind, Id, KindId, KindName};
use super::names::Sym;

/// What the graph knows of an object.
#[derive(Clone, Copy, Debug)]
pub enum Lookup<'g> {
    /// It is there.
    Present(Row<'g>),
    /// It is not there: its kind was listed whole.
    Absent,
    /// Nobody can tell: its kind is unavailable, or not listed yet.
    Unknown,
}

/// One object that is there.
#[derive(Clone, Copy, Debug)]
pub struct Row<'g> {
    graph: &'g Graph,
    ix: Ix,
}

impl Graph {
    /// Looks an object up. What is known of an unavailable kind is still answered; what is not
    /// known of it is unknown, never absent.
    pub fn get(&self, kind: KindId, namespace: &str, name: &str) -> Lookup<'_> {
        match self.row(kind, namespace, name) {
            Some(row) => Lookup::Present(row),
            None if self.schema.get(kind).watch.knows(namespace) => Lookup::Absent,
            None => Lookup::Unknown,
        }
    }

    /// An object as last known, however old that knowledge is.
    pub fn row(&self, kind: KindId, namespace: &str, name: &str) -> Option<Row<'_>> {
        let ix = self.arena.find(kind, namespace, name, "").filter(|ix| self.arena.is_present(*ix))?;
        Some(Row { graph: self, ix })
    }

    /// Objects that refer to one of that name, whether that is there or not, as [`Row::along`].
    pub fn along(
        &self,
        kind: KindId,
        namespace: &str,
        name: &str,
        side: Side,
        link: &'static str,
    ) -> impl Iterator<Item = Row<'_>> + '_ {
        let found = self.arena.find(kind, namespace, name, "");
        found.into_iter().flat_map(move |ix| self.ends(ix, side, link))
    }

    fn ends(&self, ix: Ix, side: Side, link: &'static str) -> impl Iterator<Item = Row<'_>> + '_ {
        let named = move |number: u16| self.schema.link(number).name == link;
        let ends = self.arena.neighbours(ix, side).filter(move |(_, number)| named(*number));
        ends.filter(|(end, _)| self.arena.is_present(*end)).map(|(end, _)| Row { graph: self, ix: end })
    }

    /// All objects of a kind, in no order.
    pub fn rows(&self, kind: KindId) -> impl Iterator<Item = Row<'_>> + '_ {
        self.objects(kind).map(|ix| Row { graph: self, ix })
    }

    /// Whom the objects of a kind concern that are there, in order and each once. All of them may
    /// be many: they are named one by one.
    pub fn concerned_by(&self, kind: KindId) -> impl Iterator<Item = Id> + '_ {
        let mut found = Vec::new();
        if let Concerns::Roots(ways) = self.schema.get(kind).declared.events.create {
            self.objects(kind).for_each(|ix| found.extend(self.reached(ix, ways)));
        }
        found.sort_unstable_by(|a, b| self.order(*a).cmp(&self.order(*b)));
        found.dedup();
        found.into_iter().map(|ix| self.id(ix))
    }

    /// As ids are ordered.
    fn order(&self, ix: Ix) -> (&GroupKind, [&str; 3]) {
        let Key { kind, namespace, name, section } = self.arena.node(ix).key;
        (&self.schema.get(kind).name, [namespace, name, section].map(|sym| self.arena.names.text(sym)))
    }

    /// Whoever is reached from a node on these ways.
    pub(super) fn reached(&self, from: Ix, ways: &[Reach]) -> BTreeSet<Ix> {
        let mut found = BTreeSet::new();
        for way in ways {
            match way {
                Reach::Itself => _ = found.insert(from),
                Reach::Up(family, kind) => self.walk(from, Side::Parent, *family, *kind, &mut found),
                Reach::Down(family, kind) => self.walk(from, Side::Child, *family, *kind, &mut found),
            }
        }
        found
    }

    /// A kind that is known, by group and kind.
    pub fn find_kind(&self, group: &str, kind: &str) -> Option<KindId> {
        self.schema.find(group, kind)
    }

    /// All kinds, declared or turned up, in the order in which they came.
    pub fn kinds(&self) -> impl Iterator<Item = (KindId, &GroupKind)> {
        self.schema.kinds().map(|(id, entry)| (id, &entry.name))
    }

    /// Number of nodes, those that are only referred to among them, and of edges.
    pub fn size(&self) -> (usize, usize) {
        self.arena.size()
    }

    /// The name of a node; of what only a uid is known, the uid is the name.
    pub(super) fn id(&self, ix: Ix) -> Id {
        let node = self.arena.node(ix);
        if let (State::Anchor, Some(uid)) = (node.state, node.uid) {
            return Id::new(KindName::new("", "uid"), "", &uid.to_string());
        }
        let text = |sym: Sym| if sym.is_empty() { Arc::default() } else { self.arena.names.text(sym).into() };
        Id {
            kind: self.schema.get(node.key.kind).name.clone(),
            namespace: text(node.key.namespace),
            name: text(node.key.name),
            section: text(node.key.section),
        }
    }

    /// The nearest objects of a kind in one direction, along edges of one family.
    fn walk(&self, from: Ix, side: Side, family: Family, to: KindName, into: &mut BTreeSet<Ix>) {
        let Some(goal) = self.schema.find(to.group, to.kind) else { return };
        let mut open = vec![from];
        let mut seen = HashSet::from([from]);
        while let Some(ix) = open.pop() {
            for (next, link) in self.arena.neighbours(ix, side) {
                if self.schema.link(link).family != family || !seen.insert(next) {
                    continue;
                }
                let node = self.arena.node(next);
                if node.key.kind == goal && node.key.section.is_empty() && node.state != State::Anchor {
                    if node.state == State::Present {
                        into.insert(next);
                    }
                } else {
                    open.push(next);
                }
            }
        }
    }
}

impl<'g> Row<'g> {
    /// Its name.
    pub fn id(&self) -> Id {
        self.graph.id(self.ix)
    }

    /// A fact that is a word, as declared under that name.
    pub fn word(&self, fact: &str) -> Option<&'g str> {
        let node = self.graph.arena.node(self.ix);
        let kind = self.graph.schema.get(node.key.kind);
        let place = kind.place(fact).filter(|place| kind.is_word(*place))?;
        Some(self.graph.arena.names.text(Sym::of(*self.graph.arena.facts(self.ix).get(place)?)))
    }

    /// `metadata.uid`, as text that names the same object.
    pub fn uid(&self) -> Option<String> {
        self.graph.arena.node(self.ix).uid.map(|uid| uid.to_string())
    }

    /// `metadata.resourceVersion` as a number; 0 where it is none.
    pub fn version(&self) -> u64 {
        self.graph.arena.node(self.ix).version
    }

    /// Objects that refer to this one, or that this one refers to, by the link of that name, on
    /// one side of it.
    pub fn along(&self, side: Side, link: &'static str) -> impl Iterator<Item = Row<'g>> + 'g {
        self.graph.ends(self.ix, side, link)
    }
}
