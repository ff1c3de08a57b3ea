//! Names of the declared kinds, of their links and of their facts.

use crate::api::meta::{INTERLOCK_GROUP, KUDO_GROUP};
use crate::api::{kong, watched};
use crate::topology::KindName;

/// `Instance.kudo.dev`.
pub const INSTANCE: KindName = KindName::new(KUDO_GROUP, "Instance");
/// `OperatorVersion.kudo.dev`.
pub const OPERATOR_VERSION: KindName = KindName::new(KUDO_GROUP, "OperatorVersion");
/// `Operator.kudo.dev`.
pub const OPERATOR: KindName = KindName::new(KUDO_GROUP, "Operator");
/// `Interlock.interlock.dev`.
pub const INTERLOCK: KindName = KindName::new(INTERLOCK_GROUP, "Interlock");
/// `Override.interlock.dev`.
pub const OVERRIDE: KindName = KindName::new(INTERLOCK_GROUP, "Override");
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
/// `TLSRoute.gateway.networking.k8s.io`.
pub const TLS_ROUTE: KindName = KindName::new(GATEWAY_API, "TLSRoute");
/// `DataPlane.gateway-operator.konghq.com`.
pub const DATA_PLANE: KindName = KindName::new(kong::GROUP, "DataPlane");
/// `ControlPlane.gateway-operator.konghq.com`.
pub const CONTROL_PLANE: KindName = KindName::new(kong::GROUP, "ControlPlane");
/// Deployments with the label [`GUARD`](crate::api::meta::GUARD); others are unknown.
pub const GUARDED_DEPLOYMENT: KindName = labelled(&watched::GUARDED_DEPLOYMENTS);
/// Services with the label [`GUARD`](crate::api::meta::GUARD); others are unknown.
pub const GUARDED_SERVICE: KindName = labelled(&watched::GUARDED_SERVICES);
/// ConfigMaps with the label [`FLAVOR_SOURCE`](crate::api::meta::FLAVOR_SOURCE); others are unknown.
pub const FLAVOR_SOURCE: KindName = labelled(&watched::FLAVOR_SOURCES);
/// `Secret`, which is not watched.
pub const SECRET: KindName = KindName::new("", "Secret");

pub(super) const GATEWAY_API: &str = "gateway.networking.k8s.io";

/// The kind under which the API server serves the objects of a declared kind.
pub fn served_as(kind: KindName) -> KindName {
    let labelled = watched::LABELLED.iter().find(|objects| labelled(objects) == kind);
    labelled.map_or(kind, |objects| KindName::new(objects.group, objects.kind))
}

const fn labelled(objects: &watched::Labelled) -> KindName {
    KindName::new(objects.group, objects.name)
}

/// Links that rules and controllers follow.
pub mod link {
    /// An Instance and its OperatorVersion.
    pub const OPERATOR_VERSION: &str = "operatorVersion";
    /// An object and its Namespace.
    pub const NAMESPACE: &str = "namespace";
    /// A gateway and a ConfigMap that its flavor may come from.
    pub const FLAVOR_SOURCE: &str = "flavorSource";
    /// What belongs to a DataPlane, and the DataPlane.
    pub const DATA_PLANE: &str = "dataPlane";
    /// An object and its owner.
    pub const MADE_BY: &str = "madeBy";
}

/// Facts that rules and controllers read.
pub mod fact {
    /// The plan that holds the lock of an Instance; empty where none does.
    pub const LOCKED: &str = "locked";
    /// Whether an Instance is settled: its last plan is carried out and it is ready.
    pub const AT_REST: &str = "atRest";
    /// The state of an Instance, one of [`STATES`](crate::kinds::instance::summary::STATES).
    pub const STATE: &str = "state";
    /// Whether the spec of an Instance has drifted.
    pub const DRIFTED: &str = "drifted";
    /// What an Instance waits for, one of [`WAITING`](crate::kinds::instance::summary::WAITING).
    pub const WAITS: &str = "waits";
    /// When the running plan of an Instance was started, in Unix seconds.
    pub const STARTED: &str = "started";
    /// Since when an Instance has been in trouble, in Unix seconds; 0 where it is not.
    pub const TROUBLED: &str = "troubled";
    /// When an object was created, in Unix seconds; 0 where that is not known.
    pub const CREATED: &str = "created";
    /// Whether a Gateway is programmed: 1 for yes, 2 for no, 0 for unknown.
    pub const PROGRAMMED: &str = "programmed";
    /// The phase of a DataPlane's rollout, one of
    /// [`ReportedPhase`](crate::kinds::data_plane::rollout::report::ReportedPhase).
    pub const PHASE: &str = "phase";
    /// Since when a DataPlane is in its phase, in Unix seconds; 0 where that is not known.
    pub const PHASE_SINCE: &str = "phaseSince";
    /// The colour of a child of a DataPlane.
    pub const COLOUR: &str = "colour";
    /// Whether a child of a DataPlane is `live` or of the `preview`.
    pub const SIDE: &str = "side";
    /// How many pods of a Deployment of a DataPlane are ready.
    pub const READY_REPLICAS: &str = "readyReplicas";
    /// How many pods a Deployment of a DataPlane asks for.
    pub const REPLICAS: &str = "replicas";
    /// Whether a Namespace or an owned child is being deleted.
    pub const TERMINATING: &str = "terminating";
    /// Uid of the Instance that an Override is about.
    pub const OVERRIDDEN_OBJECT: &str = "overriddenObject";
    /// The rule that an Override is about.
    pub const OVERRIDDEN_RULE: &str = "overriddenRule";
    /// The user that an Override is about.
    pub const OVERRIDING_USER: &str = "overridingUser";
    /// When an Override ceases to hold, in Unix seconds; 0 where that is not known.
    pub const EXPIRES: &str = "expires";
    /// Whether an object is healthy.
    pub const HEALTHY: &str = "healthy";
    /// The word for yes; the empty word is no.
    pub const YES: &str = "yes";
}
