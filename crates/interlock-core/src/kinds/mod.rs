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
pub mod remedy;
pub mod static_lister;
#[cfg(test)]
mod tests;
mod time_limits;

pub use self::descriptor::Kind;
pub use self::list::{ALL, Kinds, guarded, kind_name, rules, schemas, transient_rules};
pub use self::owned_child::{MADE, MADE_BY};
pub use names::{
    CONTROL_PLANE, DATA_PLANE, FLAVOR_SOURCE, GATEWAY, GATEWAY_CLASS, GRPC_ROUTE, GUARDED_DEPLOYMENT,
    GUARDED_SERVICE, HTTP_ROUTE, INGRESS, INSTANCE, INTERLOCK, NAMESPACE, OPERATOR, OPERATOR_VERSION,
    OVERRIDE, SECRET, SERVICE, TLS_ROUTE, fact, link, served_as,
};

use crate::topology::Graph;

/// An empty graph of these kinds.
pub fn graph(kinds: Kinds) -> Graph {
    Graph::new(&schemas(kinds), &MADE)
}
