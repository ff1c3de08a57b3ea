//! The kinds of one graph: declared ones, and those of owned children, added when they first occur.

use std::collections::{BTreeMap, BTreeSet};

use super::id::{Epoch, GroupKind, KindId};
use super::schema::{DeclaredKind, Fact, Family, Link, LinkPath, ReadDepth, Side};

/// All kinds of a graph.
#[derive(Debug)]
pub(super) struct Schema {
    kinds: Vec<KindEntry>,
    links: Vec<LinkRow>,
    /// Schema of the undeclared kinds.
    made: &'static DeclaredKind,
}

/// One kind.
#[derive(Debug)]
pub(super) struct KindEntry {
    pub name: GroupKind,
    pub declared: &'static DeclaredKind,
    /// Stored facts of its objects, after the hash of their references.
    pub facts: Vec<Fact>,
    /// Number of its first link.
    pub links: u16,
    /// Number of the link to its parts; those of its parts follow.
    pub parts: u16,
    pub watch: WatchProgress,
    /// Paths to the objects that follow those of this kind.
    pub followers: Vec<LinkPath>,
}

/// A link of a kind.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkRow {
    pub name: &'static str,
    pub family: Family,
    pub other: Side,
    pub kind: Option<KindId>,
}

/// Watch state of a kind.
#[derive(Debug, Default)]
pub(super) struct WatchProgress {
    /// The epoch; `None` while the kind is unavailable.
    pub epoch: Option<Epoch>,
    /// Counts lists; a node records the last one that contained it.
    pub round: u32,
    /// The last list before this epoch: objects read until then may have been read at another version
    /// of the kind, or by metadata only.
    pub until: u32,
    /// Lists that have begun: namespace (empty for all) and the round.
    pub listing: BTreeMap<String, u32>,
    /// Namespaces (empty for all) that were listed completely in this epoch.
    pub synced: BTreeSet<String>,
}

impl WatchProgress {
    /// The round of the list that covers objects of that namespace.
    pub(super) fn begun(&self, namespace: &str) -> u32 {
        let round = self.listing.get("").or_else(|| self.listing.get(namespace));
        round.copied().unwrap_or(self.round)
    }

    /// Whether an object absent from the graph is absent from the cluster, too.
    pub(super) fn knows(&self, namespace: &str) -> bool {
        self.epoch.is_some() && (self.synced.contains("") || self.synced.contains(namespace))
    }
}

impl Schema {
    pub(super) fn new(declared: &[&'static DeclaredKind], made: &'static DeclaredKind) -> Self {
        let mut schema = Self { kinds: Vec::new(), links: Vec::new(), made };
        for kind in declared {
            schema.add(kind.name.into(), kind);
        }
        // Links refer to kinds by number, so they are added after all kinds.
        for kind in declared {
            if let Some(id) = schema.find(kind.name.group, kind.name.kind) {
                schema.connect(id);
            }
        }
        schema
    }

    fn add(&mut self, name: GroupKind, declared: &'static DeclaredKind) -> KindId {
        if let Some(id) = self.find(&name.group, &name.kind) {
            return id;
        }
        let id = KindId(u16::try_from(self.kinds.len()).unwrap_or(u16::MAX));
        let (facts, watch) = (declared.kept(), WatchProgress::default());
        self.kinds.push(KindEntry {
            name,
            declared,
            facts,
            links: 0,
            parts: 0,
            watch,
            followers: Vec::new(),
        });
        id
    }

    /// Numbers the links of a kind: its own, that to its parts, those of its parts.
    fn connect(&mut self, id: KindId) {
        let declared = self.get(id).declared;
        let own = self.rows(declared.links);
        let mut parts = Vec::new();
        if let Some(sections) = &declared.sections {
            let (name, family) = (sections.noun, sections.family);
            parts.push(LinkRow { name, family, other: Side::Child, kind: Some(id) });
            parts.extend(self.rows(sections.links));
        }
        let first = self.number();
        self.links.extend(own);
        let middle = self.number();
        self.links.extend(parts);
        let entry = self.get_mut(id);
        (entry.links, entry.parts) = (first, middle);
        for link in declared.links.iter().filter(|link| link.follows) {
            if let Some(target) = link.kind {
                let target = self.id(target.group, target.kind);
                self.get_mut(target).followers.push(link.path_to_holder(declared.name));
            }
        }
    }

    fn rows(&mut self, links: &[Link]) -> Vec<LinkRow> {
        let row = |link: &Link| LinkRow {
            name: link.name,
            family: link.family,
            other: link.other,
            kind: link.kind.map(|name| self.id(name.group, name.kind)),
        };
        links.iter().map(row).collect()
    }

    fn number(&self) -> u16 {
        u16::try_from(self.links.len()).unwrap_or(u16::MAX)
    }

    /// The number of a kind; adds an undeclared one with the schema of owned children.
    pub(super) fn id(&mut self, group: &str, kind: &str) -> KindId {
        if let Some(id) = self.find(group, kind) {
            return id;
        }
        let id = self.add(GroupKind::new(group, kind), self.made);
        self.connect(id);
        id
    }

    /// The number of a known kind.
    pub(super) fn find(&self, group: &str, kind: &str) -> Option<KindId> {
        let at = self.kinds.iter().position(|k| &*k.name.kind == kind && &*k.name.group == group)?;
        u16::try_from(at).ok().map(KindId)
    }

    pub(super) fn get(&self, id: KindId) -> &KindEntry {
        &self.kinds[usize::from(id.0)]
    }

    pub(super) fn get_mut(&mut self, id: KindId) -> &mut KindEntry {
        &mut self.kinds[usize::from(id.0)]
    }

    pub(super) fn link(&self, number: u16) -> &LinkRow {
        &self.links[usize::from(number)]
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = (KindId, &KindEntry)> {
        (0..).map(KindId).zip(&self.kinds)
    }
}

impl KindEntry {
    /// Index of a fact in the stored row of a node.
    pub(super) fn place(&self, fact: &str) -> Option<usize> {
        self.facts.iter().position(|known| known.name == fact).map(|at| at + 1)
    }

    /// Whether the fact at an index is a word.
    pub(super) fn is_word(&self, place: usize) -> bool {
        let fact = place.checked_sub(1).and_then(|at| self.facts.get(at));
        fact.is_some_and(|fact| matches!(fact.read, ReadDepth::Word(_)))
    }
}
