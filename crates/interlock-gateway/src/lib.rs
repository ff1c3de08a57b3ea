//! Gateway API, `Ingress` and `Service`: where traffic enters, and where it goes.

pub mod gateway;
pub mod ingress;
pub mod names;
mod page;
pub mod policies;
pub mod route;
pub mod service;

use interlock_core::api::resource::Resource;
use interlock_core::kinds::Kinds;
use interlock_core::kinds::capabilities::{ATTACHMENTS, ROUTES};
use interlock_core::kinds::descriptor::{Kept, Kind, Right, Role, Watch};
use interlock_core::topology::schema::DeclaredKind;

use self::names::{EXPERIMENTS, GATEWAY_API};
use self::policies::Attachments;
use self::policies::declared::{attached, guarded, read};
use self::policies::listed::ListedAttachments;

/// A kind that the inventory of routes reads.
const fn of_routes(resource: Resource, schema: &'static DeclaredKind) -> Kind {
    let kind = Kind::new(resource);
    Kind { watch: Some(Watch::optional(&ROUTES)), schema: Some(schema), ..kind }
}

/// The same, which says also where policies are attached.
const fn of_both(resource: Resource, schema: &'static DeclaredKind) -> Kind {
    let kind = of_routes(resource, schema);
    Kind { watch: Some(Watch::optional(&ROUTES).also(&[&ATTACHMENTS])), ..kind }
}

const fn custom(versions: &'static [&'static str], kind: &'static str, plural: &'static str) -> Resource {
    Resource::custom(GATEWAY_API, versions, kind, plural)
}

const HTTP_ROUTES: Resource = custom(&["v1"], "HTTPRoute", "httproutes");
const GRPC_ROUTES: Resource = custom(&["v1"], "GRPCRoute", "grpcroutes");
const TLS_ROUTES: Resource = custom(&["v1", "v1alpha3", "v1alpha2"], "TLSRoute", "tlsroutes");
const GATEWAYS: Resource = custom(&["v1"], "Gateway", "gateways");

/// Everything that is known of HTTPRoutes.
pub static HTTP_ROUTE: Kind = guarded!(of_both(HTTP_ROUTES, &route::HTTP_ROUTE), HTTP_ROUTES, "httproutes");
/// Everything that is known of GRPCRoutes.
pub static GRPC_ROUTE: Kind = guarded!(of_both(GRPC_ROUTES, &route::GRPC_ROUTE), GRPC_ROUTES, "grpcroutes");
/// Everything that is known of TLSRoutes.
pub static TLS_ROUTE: Kind = guarded!(of_both(TLS_ROUTES, &route::TLS_ROUTE), TLS_ROUTES, "tlsroutes");
/// Everything that is known of Gateways.
pub static GATEWAY: Kind = Kind {
    page: Some(page::part),
    listed: Some(ListedAttachments::empty),
    drawing: Some(policies::drawing),
    outline: Some(&policies::OUTLINE),
    inventory: Some(Attachments::OF_DOMAIN),
    rules: policies::rules::ids::RULES,
    watch: Some(Watch::optional(&ROUTES).also(&[&ATTACHMENTS]).kept(&Kept::WHOLE)),
    rights: &[Right::new(Role::Policies, GATEWAY_API, "gateways/status", &["patch"])],
    reconciler: Some(&policies::enforcement::GATEWAYS),
    ..guarded!(of_both(GATEWAYS, &gateway::GATEWAY), GATEWAYS, "gateways")
};
/// Everything that is known of GatewayClasses.
pub static GATEWAY_CLASS: Kind = Kind {
    watch: Some(Watch::optional(&ROUTES).also(&[&ATTACHMENTS]).kept(&Kept::WHOLE)),
    reconciler: Some(&policies::enforcement::GATEWAY_CLASSES),
    ..of_both(custom(&["v1"], "GatewayClass", "gatewayclasses").cluster_scoped(), &gateway::GATEWAY_CLASS)
};
/// Everything that is known of Ingresses.
pub static INGRESS: Kind =
    of_routes(Resource::built_in("networking.k8s.io", &["v1"], "Ingress", "ingresses"), &ingress::INGRESS);
/// Everything that is known of Services: others name them, and none is watched for itself.
pub static SERVICE: Kind = Kind {
    schema: Some(&service::SERVICE),
    ..Kind::new(Resource::built_in("", &["v1"], "Service", "services"))
};

attached! {
    /// Everything that is known of TCPRoutes.
    TCP_ROUTE: read = GATEWAY_API, &["v1", "v1alpha2"], "TCPRoute", "tcproutes", "TCP routes of Gateways";
    /// Everything that is known of UDPRoutes.
    UDP_ROUTE: read = GATEWAY_API, &["v1", "v1alpha2"], "UDPRoute", "udproutes", "UDP routes of Gateways";
    /// Everything that is known of ListenerSets.
    LISTENER_SET: guarded = GATEWAY_API, &["v1"], "ListenerSet", "listenersets", "further listeners of Gateways";
    /// Everything that is known of XListenerSets.
    X_LISTENER_SET: read = EXPERIMENTS, &["v1alpha1"], "XListenerSet", "xlistenersets", "further listeners of Gateways";
    /// Everything that is known of ReferenceGrants.
    REFERENCE_GRANT: guarded = GATEWAY_API, &["v1", "v1beta1"], "ReferenceGrant", "referencegrants",
        "which references may leave a namespace";
}

/// The kinds that say where policies are attached, beside those of traffic.
pub static OF_ATTACHMENTS: Kinds = ATTACHED;

/// The kinds of the Gateway API, and those that their traffic comes from and goes to.
pub static KINDS: Kinds =
    &[&HTTP_ROUTE, &GRPC_ROUTE, &TLS_ROUTE, &GATEWAY, &GATEWAY_CLASS, &INGRESS, &SERVICE];
