//! The topology: the watched objects, their references, and the roots that an event affects.
//!
//! [`kinds`] declares, as data, the facts kept of a kind's objects, their references and the objects
//! that their events affect. [`Graph::apply`] applies one event in place and returns the affected
//! roots; its cost grows with the affected part, not with the graph. [`table`] prints the declarations,
//! [`picture`] the graph.

mod arena;
pub mod declare;
mod facts;
mod graph;
mod id;
mod ix;
pub mod kinds;
pub mod mark;
mod names;
pub mod picture;
mod reading;
mod schema;
pub mod table;
#[cfg(test)]
mod tests;
mod walk;

pub use graph::{AffectedNodes, Graph, GraphChange};
pub use id::{Epoch, GroupKind, KindId, KindName, NodeId};
pub use walk::{NodeLookup, ObjectRow};
