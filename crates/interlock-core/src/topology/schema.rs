//! Schema of a kind, as data: the facts kept of its objects, their references, and the objects that
//! their events affect.
//!
//! Every field is mandatory: a kind without its row of the event table does not compile.

use std::borrow::Cow;

use serde_json::Value;

use super::id::KindName;

/// A declared kind.
#[derive(Debug)]
pub struct DeclaredKind {
    /// Group and kind.
    pub name: KindName,
    /// Role of the kind, for people.
    pub about: &'static str,
    /// Words that rules read, kept in addition to the facts that the event table names.
    pub facts: &'static [Fact],
    /// References of its objects.
    pub links: &'static [Link],
    /// Parts of its objects that are nodes of their own.
    pub sections: Option<Sections>,
    /// Objects that its events affect.
    pub events: EventRow,
}

/// One row of the event table.
#[derive(Debug)]
pub struct EventRow {
    /// An object appears.
    pub create: EventTriggers,
    /// An object changes. A change of its references affects all roots named here.
    pub update: EventScope,
    /// An object is deleted.
    pub delete: EventTriggers,
}

/// The objects that an event affects.
#[derive(Clone, Copy, Debug)]
pub enum EventTriggers {
    /// The roots at the ends of these paths.
    Roots(&'static [LinkPath]),
    /// None, for this reason.
    Nobody(&'static str),
}

/// The objects that a change of an object affects.
#[derive(Clone, Copy, Debug)]
pub enum EventScope {
    /// Depends on which facts differ.
    When(&'static [When]),
    /// None, for this reason.
    Nobody(&'static str),
}

/// A difference and the objects that it affects.
#[derive(Clone, Copy, Debug)]
pub struct When {
    /// One of these differs.
    pub differs: &'static [Fact],
    /// Paths to the affected roots.
    pub concerns: &'static [LinkPath],
}

/// Path from an object to the roots that react to it: the nearest of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkPath {
    /// The object itself.
    Itself,
    /// Parents, their parents and so on, up to the nearest of a kind.
    Up(Family, KindName),
    /// Children, their children and so on, down to the nearest of a kind.
    Down(Family, KindName),
}

/// Meaning of an edge; a path follows edges of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// The parent created the child.
    Owns,
    /// The child depends on the parent.
    Needs,
    /// Traffic flows from the parent to the child.
    Carries,
}

impl Family {
    /// Verb phrase for a parent, after "each Instance that".
    pub const fn of_parent(self) -> &'static str {
        match self {
            Self::Owns => "owns it",
            Self::Needs => "it needs",
            Self::Carries => "carries traffic to it",
        }
    }

    /// Verb phrase for a child, after "each Instance that".
    pub const fn of_child(self) -> &'static str {
        match self {
            Self::Owns => "it owns",
            Self::Needs => "needs it",
            Self::Carries => "it carries traffic to",
        }
    }
}

/// A stored property of an object.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// Name, unique within the kind.
    pub name: &'static str,
    /// How to read it.
    pub read: ReadDepth,
}

/// How much of a fact is kept.
#[derive(Clone, Copy, Debug)]
pub enum ReadDepth {
    /// The word itself; for facts with few distinct values.
    Word(fn(&Value) -> Cow<'_, str>),
    /// A fingerprint, to detect changes.
    Mark(fn(&Value) -> u64),
}

/// References that objects of a kind make.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Name, unique within the kind.
    pub name: &'static str,
    /// Meaning of the edge.
    pub family: Family,
    /// Side of the referenced object.
    pub other: Side,
    /// Kind of the referenced objects; `None` for references by uid.
    pub kind: Option<KindName>,
    /// Whether the holder is affected where a referenced object appears or is deleted, whatever the row of
    /// its kind says: so a kind hears of the objects it refers to without a line in their rows.
    pub follows: bool,
    /// How to read the references.
    pub read: fn(&Holder<'_>) -> Vec<Ref>,
}

impl Link {
    /// The path from a referenced object to its holders of that kind.
    pub(super) const fn path_to_holder(&self, holder: KindName) -> LinkPath {
        match self.other {
            Side::Parent => LinkPath::Down(self.family, holder),
            Side::Child => LinkPath::Up(self.family, holder),
        }
    }
}

/// An end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The upper one.
    Parent,
    /// The lower one.
    Child,
}

/// The holder of references.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
    /// The object.
    pub object: &'a Value,
    /// The part whose references are read, or the object itself.
    pub part: &'a Value,
    /// `metadata.namespace`, empty for cluster-scoped objects.
    pub namespace: &'a str,
}

/// A reference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ref {
    /// By name, to an object of the link's kind or to a part of it.
    Named {
        /// Namespace, empty for cluster-scoped objects.
        namespace: String,
        /// Name.
        name: String,
        /// Part of the object, empty for all of it.
        section: String,
    },
    /// By uid: an object recreated under the same name does not match.
    Uid(String),
}

impl Ref {
    /// A reference to an object.
    pub fn to(namespace: &str, name: &str) -> Self {
        Self::part(namespace, name, "")
    }

    /// A reference to a part of an object.
    pub fn part(namespace: &str, name: &str, section: &str) -> Self {
        Self::Named { namespace: namespace.to_owned(), name: name.to_owned(), section: section.to_owned() }
    }
}

/// Parts of objects that are nodes of their own, children of their object.
#[derive(Clone, Copy, Debug)]
pub struct Sections {
    /// Noun for a part.
    pub noun: &'static str,
    /// Family of the edge from the object to its part.
    pub family: Family,
    /// The parts of an object, under unique names.
    pub read: fn(&Value) -> Vec<(String, &Value)>,
    /// References of a part.
    pub links: &'static [Link],
}

impl DeclaredKind {
    /// The stored facts: those that rules read, then those that the event table names.
    pub(super) fn kept(&self) -> Vec<Fact> {
        let rows: &[When] = match self.events.update {
            EventScope::When(rows) => rows,
            EventScope::Nobody(_) => &[],
        };
        let mut kept: Vec<Fact> = Vec::new();
        for fact in self.facts.iter().chain(rows.iter().flat_map(|row| row.differs)) {
            if kept.iter().all(|known| known.name != fact.name) {
                kept.push(*fact);
            }
        }
        kept
    }
}
