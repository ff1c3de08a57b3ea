//! What the kinds show of their objects on the page about a process: rows of sections, and what needs a person. Every
//! list is bounded and counts what it leaves out.

mod drawing;
mod related;
mod trouble;

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

pub use self::drawing::{Draw, Drawing, DrawnLine, DrawnNode, NODES};
pub use self::related::RelatedObjects;
pub use self::trouble::{Also, TroubleRow, TroubleState};
use super::inventory::Inventories;
use crate::topology::schema::DeclaredKind;
use crate::topology::{Graph, KindName, NodeId, ObjectRow};

/// Maximum number of shown rows of a section.
pub const ROWS: usize = 100;
/// Longest name that is shown; those that the API server checks are not longer.
pub const NAME_LIMIT: usize = 253;
/// Longest name of a plan, a phase or a step that is shown; these are free texts.
pub const WORD_LIMIT: usize = 80;
/// Longest message that is shown.
pub const MESSAGE_LIMIT: usize = 600;

/// What is known of the cluster at a time.
pub struct View<'a> {
    /// The declared kinds.
    pub schemas: &'a [&'static DeclaredKind],
    /// The objects as rows.
    pub graph: &'a Graph,
    /// What the domains keep beside.
    pub inventories: &'a Inventories,
    /// The object, where more than its row is kept.
    pub whole: &'a dyn Fn(&NodeId) -> Option<Arc<Value>>,
    /// Why an object is not used, if so.
    pub left_out: &'a dyn Fn(&NodeId) -> Option<String>,
    /// The time.
    pub now: Timestamp,
}

impl<'a> View<'a> {
    /// The objects of a kind.
    pub fn rows(&self, kind: KindName) -> impl Iterator<Item = ObjectRow<'a>> + use<'a> {
        let graph = self.graph;
        let kind = graph.find_kind(kind.group, kind.kind);
        kind.into_iter().flat_map(move |kind| graph.rows(kind))
    }
}

/// What one kind shows.
#[derive(Debug, Default)]
pub struct PagePart {
    /// The most pressing first.
    pub trouble: PageSection<TroubleRow>,
    /// Its rows of each section.
    pub sections: Vec<(SectionName, PageSection<Row>)>,
    /// Further members of the document.
    pub members: Vec<(&'static str, Row)>,
}

/// A section by the name of its member of the document. Kinds with a common one fill it in the order of `place`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SectionName {
    /// The member of the document.
    pub name: &'static str,
    /// Its place among the kinds of the section.
    pub place: u8,
}

/// JSON that a section or a member has.
pub type Row = Box<RawValue>;

/// A row; what is made of texts, numbers and lists always has one.
pub fn row(shown: &impl Serialize) -> Row {
    to_raw_value(shown).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The first of many.
#[derive(Debug, Serialize)]
pub struct PageSection<T> {
    /// How many there are.
    pub total: usize,
    /// The first of them.
    pub shown: Vec<T>,
}

impl<T> Default for PageSection<T> {
    fn default() -> Self {
        Self { total: 0, shown: Vec::new() }
    }
}

impl<T: Serialize> PageSection<T> {
    /// The same with its rows as JSON.
    pub fn rows(&self) -> PageSection<Row> {
        PageSection { total: self.total, shown: self.shown.iter().map(row).collect() }
    }
}

impl<T> PageSection<T> {
    /// Adds the rows of another kind, as far as there is room.
    pub fn add(&mut self, more: Self) {
        self.total += more.total;
        self.shown.extend(more.shown);
        self.shown.truncate(ROWS);
    }
}

/// A time of a row; 0 is none.
pub fn time(seconds: Option<u64>) -> Option<Timestamp> {
    let seconds = seconds.filter(|seconds| *seconds > 0)?;
    Timestamp::from_second(i64::try_from(seconds).ok()?).ok()
}
