//! The declared kinds. A new one is a file here, and a line in [`DECLARED`].

mod gateway;
mod ingress;
mod instance;
mod made;
mod namespace;
mod operator;
mod route;
mod service;

use super::declare::Kind;
use super::graph::Graph;
use super::id::KindName;

pub use made::{MADE, MADE_BY};

/// `Instance.kudo.dev`.
pub const INSTANCE: KindName = KindName::new(crate::api::meta::KUDO_GROUP, "Instance");
/// `OperatorVersion.kudo.dev`.
pub const OPERATOR_VERSION: KindName = KindName::new(crate::api::meta::KUDO_GROUP, "OperatorVersion");
/// `Operator.kudo.dev`.
pub const OPERATOR: KindName = KindName::new(crate::api::meta::KUDO_GROUP, "Operator");
/// `Namespace`.
pub const NAMESPACE: KindName = KindName::new("", "Namespace");
/// `Service`.
pub const SERVICE: KindName = KindName::new("", "Service");
/// `Ingress.networking.k8s.io`.
pub const INGRESS: KindName = KindName::new("networking.k8s.io", "Ingress");
/// `GatewayClass.gateway.networking.k8s.io`.
pub const GATEWAY_CLASS: KindName = KindName::new(GATEWAY_API, "GatewayClass");
/// `Gateway.gateway.networking.k8s.io`.
pub const GATEWAY: KindName = KindName::new(GATEWAY_API, "Gateway");
/// `HTTPRoute.gateway.networking.k8s.io`.
pub const HTTP_ROUTE: KindName = KindName::new(GATEWAY_API, "HTTPRoute");
/// `GRPCRoute.gateway.networking.k8s.io`.
pub const GRPC_ROUTE: KindName = KindName::new(GATEWAY_API, "GRPCRoute");

const GATEWAY_API: &str = "gateway.networking.k8s.io";

/// Links that rules and controllers follow.
pub mod link {
    /// An Instance and its OperatorVersion.
    pub const OPERATOR_VERSION: &str = "operatorVersion";
    /// An object and its Namespace.
    pub const NAMESPACE: &str = "namespace";
    /// An object and what made it.
    pub const MADE_BY: &str = "madeBy";
}

/// Facts that rules and controllers read.
pub mod fact {
    /// The plan that holds the lock of an Instance; empty where none does.
    pub const LOCKED: &str = "locked";
    /// Whether an Instance is at rest: its last plan is carried out and it is ready.
    pub const AT_REST: &str = "atRest";
    /// Whether a Namespace, or an object that a package made, is being deleted.
    pub const TERMINATING: &str = "terminating";
    /// Whether an object is as it should be.
    pub const HEALTHY: &str = "healthy";
    /// The word for yes; the empty word is no.
    pub const YES: &str = "yes";
}

/// Every declared kind.
pub static DECLARED: [&Kind; 10] = [
    &instance::INSTANCE,
    &operator::OPERATOR_VERSION,
    &operator::OPERATOR,
    &namespace::NAMESPACE,
    &service::SERVICE,
    &ingress::INGRESS,
    &gateway::GATEWAY_CLASS,
    &gateway::GATEWAY,
    &route::HTTP_ROUTE,
    &route::GRPC_ROUTE,
];

/// An empty graph of the declared kinds.
pub fn graph() -> Graph {
    Graph::new(&DECLARED, &MADE)
}
