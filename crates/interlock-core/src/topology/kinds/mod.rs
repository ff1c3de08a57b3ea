//! The declared kinds. A new one needs a file here and a line in [`DECLARED`].

mod gateway;
mod ingress;
mod instance;
mod kong;
mod made;
mod names;
mod namespace;
mod operator;
mod route;
mod service;
mod settings;

use super::declare::DeclaredKind;
use super::graph::Graph;

pub use made::{MADE, MADE_BY};
pub use names::{
    CONTROL_PLANE, DATA_PLANE, FLAVOR_SOURCE, GATEWAY, GATEWAY_CLASS, GRPC_ROUTE, GUARDED_DEPLOYMENT,
    GUARDED_SERVICE, HTTP_ROUTE, INGRESS, INSTANCE, INTERLOCK, NAMESPACE, OPERATOR, OPERATOR_VERSION, SECRET,
    SERVICE, TLS_ROUTE, fact, link, served_as,
};

/// Every declared kind.
pub static DECLARED: [&DeclaredKind; 17] = [
    &instance::INSTANCE,
    &operator::OPERATOR_VERSION,
    &operator::OPERATOR,
    &settings::INTERLOCK,
    &namespace::NAMESPACE,
    &service::SERVICE,
    &ingress::INGRESS,
    &gateway::GATEWAY_CLASS,
    &gateway::GATEWAY,
    &route::HTTP_ROUTE,
    &route::GRPC_ROUTE,
    &route::TLS_ROUTE,
    &kong::DATA_PLANE_KIND,
    &kong::CONTROL_PLANE_KIND,
    &kong::DEPLOYMENT_KIND,
    &kong::SERVICE_KIND,
    &kong::SOURCE_KIND,
];

/// An empty graph of the declared kinds.
pub fn graph() -> Graph {
    Graph::new(&DECLARED, &MADE)
}
