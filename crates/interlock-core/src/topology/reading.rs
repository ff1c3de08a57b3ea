//! What the graph keeps of an object: facts, references, parts.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::kind_table::KindEntry;
use super::schema::{Fact, Holder, Link, ReadDepth, Ref};

/// One object, read by the declaration of its kind.
#[derive(Debug)]
pub(super) struct ObjectReading<'a> {
    pub facts: Vec<KeptFact<'a>>,
    /// References of the object and of its parts, sorted, each once.
    pub references: Vec<ReadReference>,
    /// Names of its parts, sorted.
    pub parts: Vec<String>,
}

/// A fact as it was read.
#[derive(Debug)]
pub(super) enum KeptFact<'a> {
    Word(Cow<'a, str>),
    Mark(u64),
}

/// A reference of an object (no part) or of one of its parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ReadReference {
    pub part: Option<usize>,
    pub link: u16,
    pub to: Ref,
}

impl<'a> ObjectReading<'a> {
    pub(super) fn of(kind: &KindEntry, namespace: &str, object: &'a Value) -> Self {
        let mut references = Vec::new();
        let holder = Holder { object, part: object, namespace };
        read_links(&mut references, None, kind.links, kind.declared.links, &holder);
        let mut parts = Vec::new();
        if let Some(sections) = &kind.declared.sections {
            let mut found = (sections.read)(object);
            found.sort_by(|a, b| a.0.cmp(&b.0));
            found.dedup_by(|a, b| a.0 == b.0);
            for (at, (name, part)) in found.into_iter().enumerate() {
                let holder = Holder { part, ..holder };
                read_links(&mut references, Some(at), kind.parts + 1, sections.links, &holder);
                parts.push(name);
            }
        }
        references.sort();
        references.dedup();
        Self { facts: kind.facts.iter().map(|fact| keep(fact, object)).collect(), references, parts }
    }

    /// Hash of the references and parts; equal if no edge changes.
    pub(super) fn edges(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.references, &self.parts).hash(&mut hasher);
        hasher.finish()
    }
}

fn read_links(
    into: &mut Vec<ReadReference>,
    part: Option<usize>,
    first: u16,
    links: &[Link],
    holder: &Holder<'_>,
) {
    for (number, link) in (first..).zip(links) {
        into.extend((link.read)(holder).into_iter().map(|to| ReadReference { part, link: number, to }));
    }
}

fn keep<'a>(fact: &Fact, object: &'a Value) -> KeptFact<'a> {
    match fact.read {
        ReadDepth::Word(read) => KeptFact::Word(read(object)),
        ReadDepth::Mark(read) => KeptFact::Mark(read(object)),
    }
}
