//! What a kind is to the graph, as data: what is kept of its objects, whom they refer to, and
//! whom an event of theirs concerns.
//!
//! Every field is mandatory: a kind without its row of the event table does not compile.

use std::borrow::Cow;

use serde_json::Value;

use super::id::KindName;

/// A declared kind.
#[derive(Debug)]
pub struct Kind {
    /// Group and kind.
    pub name: KindName,
    /// Why it is here, for people.
    pub about: &'static str,
    /// What is kept beside that which the event table names: words that rules read.
    pub facts: &'static [Fact],
    /// Whom its objects refer to.
    pub links: &'static [Link],
    /// Parts of its objects that are nodes of their own.
    pub sections: Option<Sections>,
    /// Whom its events concern.
    pub events: Events,
}

/// One row of the event table.
#[derive(Debug)]
pub struct Events {
    /// An object appears.
    pub create: Concerns,
    /// An object changes. A change of whom it refers to concerns all roots that are named here.
    pub update: Update,
    /// An object goes.
    pub delete: Concerns,
}

/// Whom an event concerns.
#[derive(Clone, Copy, Debug)]
pub enum Concerns {
    /// These.
    Roots(&'static [Reach]),
    /// Nobody, for this reason.
    Nobody(&'static str),
}

/// Whom a change of an object concerns.
#[derive(Clone, Copy, Debug)]
pub enum Update {
    /// It depends on what of the object differs.
    When(&'static [When]),
    /// Nobody, for this reason.
    Nobody(&'static str),
}

/// A difference and whom it concerns.
#[derive(Clone, Copy, Debug)]
pub struct When {
    /// One of these differs.
    pub differs: &'static [Fact],
    /// Whom that concerns.
    pub concerns: &'static [Reach],
}

/// The way from an object to those who act on it: the nearest of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The object itself.
    Itself,
    /// Parents, their parents and so on, up to the nearest of a kind.
    Up(Family, KindName),
    /// Children, their children and so on, down to the nearest of a kind.
    Down(Family, KindName),
}

/// What an edge says; a way keeps to edges of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// The parent made the child.
    Owns,
    /// The child cannot do without the parent.
    Needs,
    /// Traffic goes from the parent to the child.
    Carries,
}

impl Family {
    /// What a parent is to its child, after "each Instance that".
    pub const fn of_parent(self) -> &'static str {
        match self {
            Self::Owns => "owns it",
            Self::Needs => "it needs",
            Self::Carries => "carries traffic to it",
        }
    }

    /// What a child is to its parent, after "each Instance that".
    pub const fn of_child(self) -> &'static str {
        match self {
            Self::Owns => "it owns",
            Self::Needs => "needs it",
            Self::Carries => "it carries traffic to",
        }
    }
}

/// Something of an object that is kept.
#[derive(Clone, Copy, Debug)]
pub struct Fact {
    /// Name, one of a kind.
    pub name: &'static str,
    /// How to read it.
    pub read: Read,
}

/// How much of a fact is kept.
#[derive(Clone, Copy, Debug)]
pub enum Read {
    /// The word itself; for few different ones.
    Word(fn(&Value) -> Cow<'_, str>),
    /// A hash, to tell whether it differs.
    Mark(fn(&Value) -> u64),
}

/// References that objects of a kind make.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Name, one of a kind.
    pub name: &'static str,
    /// What the edge says.
    pub family: Family,
    /// What the referred object is to the one that refers.
    pub other: Side,
    /// Kind of the referred objects; `None` where a uid says it.
    pub kind: Option<KindName>,
    /// How to read the references.
    pub read: fn(&Holder<'_>) -> Vec<Ref>,
}

/// An end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The upper one.
    Parent,
    /// The lower one.
    Child,
}

/// Who refers.
#[derive(Clone, Copy, Debug)]
pub struct Holder<'a> {
    /// The object.
    pub object: &'a Value,
    /// The part of it whose references are asked for; the object itself where there is none.
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
    /// By uid: an object that is recreated under the same name is not meant.
    Uid(String),
}

impl Ref {
    /// To an object.
    pub fn to(namespace: &str, name: &str) -> Self {
        Self::part(namespace, name, "")
    }

    /// To a part of an object.
    pub fn part(namespace: &str, name: &str, section: &str) -> Self {
        Self::Named { namespace: namespace.to_owned(), name: name.to_owned(), section: section.to_owned() }
    }
}

/// Parts of objects that are nodes of their own, children of their object.
#[derive(Clone, Copy, Debug)]
pub struct Sections {
    /// What a part is called.
    pub noun: &'static str,
    /// What the edge from the object to its part says.
    pub family: Family,
    /// The parts of an object, by names that differ.
    pub read: fn(&Value) -> Vec<(String, &Value)>,
    /// Whom a part refers to.
    pub links: &'static [Link],
}

impl Kind {
    /// The facts that are kept: those that rules read, then those that the event table names.
    pub(super) fn kept(&self) -> Vec<Fact> {
        let rows: &[When] = match self.events.update {
            Update::When(rows) => rows,
            Update::Nobody(_) => &[],
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
