//! The topology: the watched objects, their references, and the roots that an event affects.
//!
//! [`crate::kinds`] declares, as data, the facts kept of a kind's objects, their references and the objects
//! that their events affect. [`Graph::apply`] applies one event in place and returns the affected
//! roots; its cost grows with the affected part, not with the graph. [`event_table`] prints the declarations,
//! [`snapshot`] the graph.

mod arena;
pub mod event_table;
mod facts;
pub mod fingerprint;
mod graph;
mod id;
mod kind_table;
mod names;
mod node_index;
mod reading;
pub mod schema;
pub mod snapshot;
mod walk;

pub use graph::{AffectedNodes, Graph, GraphChange};
pub use id::{Epoch, GroupKind, KindId, KindName, NodeId};
pub use walk::{NodeLookup, ObjectRow};
