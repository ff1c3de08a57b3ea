//! What is known of a kind ([`Kind`]), and the kinds that belong to no domain.
//!
//! Webhook entries, policies, rights, watches and the topology are derived from a list of kinds.

pub mod age;
pub mod capabilities;
pub mod descriptor;
pub mod gauge;
pub mod interlock;
pub mod inventory;
mod list;
pub mod listed;
mod names;
pub mod namespace;
pub mod override_object;
pub mod owned_child;
pub mod page;
pub mod row;
pub mod static_lister;
pub mod story;

pub use self::descriptor::Kind;
pub use self::list::{
    KINDS, Kinds, guarded, inventories, kind_name, labelled, rules, schemas, served_as, transient_rules,
};
pub use self::owned_child::{MADE, MADE_BY};
pub use names::{INSTANCE, INTERLOCK, NAMESPACE, OVERRIDE, fact, link, watched_as};

use crate::topology::Graph;

/// An empty graph of these kinds.
pub fn graph(kinds: Kinds) -> Graph {
    Graph::new(&schemas(kinds), &MADE)
}
