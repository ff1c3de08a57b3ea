//! The kinds of policies that are watched, a line each.

use interlock_core::kinds::Kinds;

use super::declared::{attached, guarded, read};
use crate::names::{ENVOY_GATEWAY, GATEWAY_API, KUADRANT};

attached! {
    /// Everything that is known of RateLimitPolicies.
    RATE_LIMIT_POLICY: guarded = KUADRANT, &["v1"], "RateLimitPolicy", "ratelimitpolicies", "limits of requests";
    /// Everything that is known of AuthPolicies.
    AUTH_POLICY: guarded = KUADRANT, &["v1"], "AuthPolicy", "authpolicies", "who may send requests";
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
    ENVOY_PATCH_POLICY: guarded = ENVOY_GATEWAY, &["v1alpha1"], "EnvoyPatchPolicy", "envoypatchpolicies",
        "patches of Envoy's configuration";
}

/// The kinds of policies.
pub static KINDS: Kinds = ATTACHED;
