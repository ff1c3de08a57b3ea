//! The declared kinds. A new one needs a file here and a line in [`DECLARED`].

pub mod data_plane;
pub(crate) mod dispatch;
pub mod flavor_source;
pub mod gateway_api;
pub mod instance;
mod interlock;
mod names;
mod namespace;
pub mod operator_version;
mod owned_child;
#[cfg(test)]
mod tests;
mod time_limits;

use crate::topology::Graph;
use crate::topology::schema::DeclaredKind;

pub use self::owned_child::{MADE, MADE_BY};
pub use names::{
    CONTROL_PLANE, DATA_PLANE, FLAVOR_SOURCE, GATEWAY, GATEWAY_CLASS, GRPC_ROUTE, GUARDED_DEPLOYMENT,
    GUARDED_SERVICE, HTTP_ROUTE, INGRESS, INSTANCE, INTERLOCK, NAMESPACE, OPERATOR, OPERATOR_VERSION, SECRET,
    SERVICE, TLS_ROUTE, fact, link, served_as,
};

/// Every declared kind.
pub static DECLARED: [&DeclaredKind; 17] = [
    &self::instance::links::INSTANCE,
    &self::operator_version::links::OPERATOR_VERSION,
    &self::operator_version::links::OPERATOR,
    &interlock::INTERLOCK,
    &namespace::NAMESPACE,
    &self::gateway_api::service::SERVICE,
    &self::gateway_api::ingress::INGRESS,
    &self::gateway_api::gateway::GATEWAY_CLASS,
    &self::gateway_api::gateway::GATEWAY,
    &self::gateway_api::route::HTTP_ROUTE,
    &self::gateway_api::route::GRPC_ROUTE,
    &self::gateway_api::route::TLS_ROUTE,
    &self::data_plane::links::DATA_PLANE_KIND,
    &self::data_plane::links::CONTROL_PLANE_KIND,
    &self::data_plane::links::DEPLOYMENT_KIND,
    &self::data_plane::links::SERVICE_KIND,
    &self::data_plane::links::SOURCE_KIND,
];

/// An empty graph of the declared kinds.
pub fn graph() -> Graph {
    Graph::new(&DECLARED, &MADE)
}
