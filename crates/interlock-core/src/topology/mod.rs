//! The topology: the objects that we care about, how they hang together, and whom an event
//! concerns.
//!
//! [`kinds`] declares, as data, what is kept of a kind's objects, whom they refer to and whom
//! their events concern. [`Graph::apply`] takes in one event, updates the graph in place and
//! answers the roots that have to act; what it costs grows with what is affected, not with the
//! graph. [`table`] prints the declarations, [`picture`] the graph.

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

pub use graph::{Change, Dirty, Graph};
pub use id::{Epoch, GroupKind, Id, KindId, KindName};
pub use walk::{Lookup, Row};
