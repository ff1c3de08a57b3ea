//! A graph that the page draws: nodes in columns, and lines between them.

use serde::Serialize;

/// Most nodes that are drawn.
pub const NODES: usize = 1_000;

/// A graph without circles.
#[derive(Debug, Default, Serialize)]
pub struct Drawing {
    /// Its nodes.
    pub nodes: Vec<DrawnNode>,
    /// From the index of a node to that of one below it.
    pub edges: Vec<(u32, u32)>,
    /// How many nodes there are, drawn or not.
    pub total: usize,
}

/// A box.
#[derive(Debug, Default, Serialize)]
pub struct DrawnNode {
    /// The kind.
    pub kind: &'static str,
    /// The name; of an object in a namespace with it.
    pub name: String,
    /// What is wrong with it; empty where nothing is.
    pub trouble: String,
    /// Further lines, such as the policies that are attached to it.
    pub lines: Vec<DrawnLine>,
    /// The lines of other nodes that concern it, as they are written there.
    pub concerned: Vec<String>,
    /// The command that says more; empty where there is none.
    pub command: String,
}

/// A line of a box.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct DrawnLine {
    /// What is written.
    pub text: String,
    /// Why it has no effect; empty where it has.
    pub trouble: String,
}

/// Draws later, without what it was asked of.
pub type Draw = Box<dyn FnOnce() -> Drawing>;
