//! The kinds of policies that are watched, a line each.

use interlock_core::api::resource::Resource;
use interlock_core::api::watched::Labelled;
use interlock_core::kinds::capabilities::POLICIES;
use interlock_core::kinds::descriptor::{Kept, Right, Role, Watch};
use interlock_core::kinds::owned_child::made;
use interlock_core::kinds::{Kind, Kinds};
use interlock_core::topology::KindName;
use interlock_core::topology::schema::DeclaredKind;

use super::declared::{attached, authenticated, carrying, guarded, limited, read};
use super::enforcement;
use crate::names::{AUTHORINO, ENVOY_GATEWAY, GATEWAY_API, KUADRANT};

attached! {
    /// Everything that is known of RateLimitPolicies.
    RATE_LIMIT_POLICY: limited = KUADRANT, &["v1"], "RateLimitPolicy", "ratelimitpolicies", "limits of requests";
    /// Everything that is known of AuthPolicies.
    AUTH_POLICY: authenticated = KUADRANT, &["v1"], "AuthPolicy", "authpolicies", "who may send requests";
    /// Everything that is known of TLSPolicies.
    TLS_POLICY: read = KUADRANT, &["v1"], "TLSPolicy", "tlspolicies", "certificates of listeners";
    /// Everything that is known of DNSPolicies.
    DNS_POLICY: read = KUADRANT, &["v1"], "DNSPolicy", "dnspolicies", "DNS records of listeners";
    /// Everything that is known of BackendTLSPolicies.
    BACKEND_TLS_POLICY: guarded = GATEWAY_API, &["v1", "v1alpha3"], "BackendTLSPolicy", "backendtlspolicies",
        "TLS between a Gateway and a Service";
    /// Everything that is known of ClientTrafficPolicies.
    CLIENT_TRAFFIC_POLICY: guarded = ENVOY_GATEWAY, &["v1alpha1"], "ClientTrafficPolicy", "clienttrafficpolicies",
        "connections from clients";
    /// Everything that is known of BackendTrafficPolicies.
    BACKEND_TRAFFIC_POLICY: guarded = ENVOY_GATEWAY, &["v1alpha1"], "BackendTrafficPolicy", "backendtrafficpolicies",
        "requests to backends";
    /// Everything that is known of SecurityPolicies.
    SECURITY_POLICY: guarded = ENVOY_GATEWAY, &["v1alpha1"], "SecurityPolicy", "securitypolicies",
        "who may send requests";
    /// Everything that is known of EnvoyExtensionPolicies.
    ENVOY_EXTENSION_POLICY: guarded = ENVOY_GATEWAY, &["v1alpha1"], "EnvoyExtensionPolicy", "envoyextensionpolicies",
        "extensions of Envoy";
    /// Everything that is known of EnvoyPatchPolicies.
    ENVOY_PATCH_POLICY: carrying = ENVOY_GATEWAY, &["v1alpha1"], "EnvoyPatchPolicy", "envoypatchpolicies",
        "patches of Envoy's configuration";
}

/// The kinds of policies.
pub static KINDS: Kinds = ATTACHED;

/// ConfigMaps with the limits of a Limitador: those with our label.
static LIMITS: Labelled = Labelled {
    group: "",
    kind: "ConfigMap",
    label: enforcement::LIMITS,
    value: Some("true"),
    name: enforcement::LIMITS_CONFIG_MAP,
};

const LIMITADORS: &str = "limitador.kuadrant.io";

/// A kind beside those of policies.
const fn beside(resource: Resource, schema: &'static DeclaredKind, watch: Watch) -> Kind {
    Kind { watch: Some(watch), schema: Some(schema), ..Kind::new(resource) }
}

/// Everything that is known of ConfigMaps with limits.
static LIMITS_CONFIG_MAP: Kind = Kind {
    rights: &[Right::new(Role::Limitadors, "", "configmaps", &["create", "get", "patch"])],
    ..beside(
        Resource::built_in("", &["v1"], "ConfigMap", "configmaps"),
        &made(KindName::new("", enforcement::LIMITS_CONFIG_MAP), "limits that a Limitador counts"),
        Watch::optional(&POLICIES).labelled(&LIMITS).kept(&Kept::WHOLE),
    )
};

/// Everything that is known of Limitadors.
static LIMITADOR: Kind = Kind {
    rights: &[Right::new(Role::Limitadors, LIMITADORS, "limitadors", &["get", "patch"])],
    ..beside(
        Resource::custom(LIMITADORS, &["v1alpha1"], "Limitador", "limitadors"),
        &made(KindName::new(LIMITADORS, "Limitador"), "counts requests"),
        Watch::optional(&POLICIES).kept(&Kept::WHOLE),
    )
};

/// Everything that is known of AuthConfigs.
static AUTH_CONFIG: Kind = Kind {
    rights: &[Right::new(Role::Policies, AUTHORINO, "authconfigs", &["create", "patch", "delete"])],
    ..beside(
        Resource::custom(AUTHORINO, &["v1beta3"], "AuthConfig", "authconfigs"),
        &made(KindName::new(AUTHORINO, "AuthConfig"), "decides about requests"),
        Watch::optional(&POLICIES).kept(&Kept::WHOLE),
    )
};

/// Everything that is known of Kuadrants: where one is, Kuadrant's operator carries policies out.
static KUADRANT_OBJECT: Kind = beside(
    Resource::custom(KUADRANT, &["v1beta1"], "Kuadrant", "kuadrants"),
    &made(KindName::new(KUADRANT, "Kuadrant"), "carries policies out instead of Interlock"),
    Watch::optional(&POLICIES),
);

/// Everything that is known of EnvoyProxies: one may merge the Gateways of a class.
static ENVOY_PROXY: Kind = beside(
    Resource::custom(ENVOY_GATEWAY, &["v1alpha1"], "EnvoyProxy", "envoyproxies"),
    &made(KindName::new(ENVOY_GATEWAY, "EnvoyProxy"), "how Envoy Gateway runs its proxies"),
    Watch::optional(&POLICIES),
);

/// The kinds that policies are carried out with.
pub static OF_ENFORCEMENT: Kinds =
    &[&LIMITS_CONFIG_MAP, &LIMITADOR, &AUTH_CONFIG, &KUADRANT_OBJECT, &ENVOY_PROXY];
