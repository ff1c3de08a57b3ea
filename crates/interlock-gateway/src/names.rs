//! Names of the kinds of the Gateway API, and of those that it leads to.

use interlock_core::topology::KindName;

/// The group of the Gateway API.
pub const GATEWAY_API: &str = "gateway.networking.k8s.io";
/// The group of its experiments.
pub const EXPERIMENTS: &str = "gateway.networking.x-k8s.io";

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
/// `TLSRoute.gateway.networking.k8s.io`.
pub const TLS_ROUTE: KindName = KindName::new(GATEWAY_API, "TLSRoute");

/// The group of Kuadrant's policies.
pub const KUADRANT: &str = "kuadrant.io";
/// The group of Envoy Gateway's policies.
pub const ENVOY_GATEWAY: &str = "gateway.envoyproxy.io";
/// The group of AuthConfigs.
pub const AUTHORINO: &str = "authorino.kuadrant.io";
