//! The kinds, one folder each: all that is known of them. Admission, webhook entries, policies, rights,
//! watches and the topology are derived from the list [`ALL`].

mod age;
pub mod capabilities;
pub mod data_plane;
pub mod descriptor;
pub mod flavor_source;
pub mod gateway_api;
pub mod instance;
pub mod interlock;
mod list;
mod names;
pub mod namespace;
pub mod operator;
pub mod operator_version;
pub mod override_object;
mod owned_child;
pub mod static_lister;
#[cfg(test)]
mod tests;
mod time_limits;

pub use self::descriptor::Kind;
pub use self::list::{ALL, Kinds, guarded, kind_name, labelled, rules, schemas, served_as, transient_rules};
pub use self::owned_child::{MADE, MADE_BY};
pub use names::{INSTANCE, INTERLOCK, NAMESPACE, OVERRIDE, fact, link};

use crate::topology::Graph;

/// An empty graph of these kinds.
pub fn graph(kinds: Kinds) -> Graph {
    Graph::new(&schemas(kinds), &MADE)
}
