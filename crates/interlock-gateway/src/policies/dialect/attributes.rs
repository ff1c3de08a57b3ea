//! The attributes of a request, by who has them.
//!
//! Envoy takes each name when it loads a configuration, also a misspelt one. An expression with a name that has no
//! value fails on each request, and its limit silently never counts.

use super::types::Type::{self, *};

/// Attributes that Envoy has when a limit is asked about. `connection.*_certificate*` and `connection.tls_version`
/// have a value where the connection has TLS, `request.referer` where the header is there.
pub const ENVOY: &[(&str, Type)] = &[
    ("request.path", String),
    ("request.url_path", String),
    ("request.host", String),
    ("request.scheme", String),
    ("request.method", String),
    ("request.headers", StringMap),
    ("request.headers_bytes", Int),
    ("request.referer", String),
    ("request.useragent", String),
    ("request.time", Timestamp),
    ("request.id", String),
    ("request.protocol", String),
    ("request.query", String),
    ("request.size", Int),
    ("request.total_size", Int),
    ("source.address", String),
    ("source.port", Int),
    ("destination.address", String),
    ("destination.port", Int),
    ("connection.id", Uint),
    ("connection.mtls", Bool),
    ("connection.requested_server_name", String),
    ("connection.tls_version", String),
    ("connection.subject_local_certificate", String),
    ("connection.subject_peer_certificate", String),
    ("connection.dns_san_local_certificate", String),
    ("connection.dns_san_peer_certificate", String),
    ("connection.uri_san_local_certificate", String),
    ("connection.uri_san_peer_certificate", String),
    ("connection.sha256_peer_certificate_digest", String),
    ("connection.peer_certificate", String),
    ("metadata.filter_metadata", Map),
    ("metadata.typed_filter_metadata", Map),
    ("filter_state", Map),
    ("xds.node", Any),
    ("xds.cluster_name", String),
    ("xds.cluster_metadata", Any),
    ("xds.listener_direction", Int),
    ("xds.listener_metadata", Any),
    ("xds.route_name", String),
    ("xds.route_metadata", Any),
    ("xds.virtual_host_name", String),
    ("xds.virtual_host_metadata", Any),
    ("xds.filter_chain_name", String),
];

/// Attributes that Envoy has only once the request was sent on, was answered, or failed.
pub const LATER: &[(&str, Type)] = &[
    ("request.duration", Duration),
    ("response.code", Int),
    ("response.code_details", String),
    ("response.flags", Int),
    ("response.grpc_status", Int),
    ("response.headers", StringMap),
    ("response.headers_bytes", Int),
    ("response.trailers", StringMap),
    ("response.size", Int),
    ("response.total_size", Int),
    ("response.backend_latency", Duration),
    ("connection.termination_details", String),
    ("connection.transport_failure_reason", String),
    ("upstream.address", String),
    ("upstream.port", Int),
    ("upstream.num_endpoints", Uint),
    ("upstream.tls_version", String),
    ("upstream.subject_local_certificate", String),
    ("upstream.subject_peer_certificate", String),
    ("upstream.dns_san_local_certificate", String),
    ("upstream.dns_san_peer_certificate", String),
    ("upstream.uri_san_local_certificate", String),
    ("upstream.uri_san_peer_certificate", String),
    ("upstream.sha256_peer_certificate_digest", String),
    ("upstream.peer_certificate", String),
    ("upstream.local_address", String),
    ("upstream.transport_failure_reason", String),
    ("upstream.request_attempt_count", Uint),
    ("upstream.cx_pool_ready_duration", Duration),
    ("upstream.locality", Any),
    ("upstream_filter_state", Map),
    ("xds.upstream_host_metadata", Any),
    ("xds.upstream_host_locality_metadata", Any),
];

/// Attributes of Kuadrant that Envoy does not have, and what to write in their place. Members of `auth` are in the
/// metadata ([`super::located`]).
pub const KUADRANT: &[(&str, Type, &str)] = &[
    ("auth", Any, NO_IDENTITY),
    ("context", Any, "use request, source or destination"),
    ("request.user_agent", String, "use request.useragent"),
    ("request.body", String, NO_BODY),
    ("request.raw_body", Bytes, NO_BODY),
    ("request.context_extensions", StringMap, "use request.headers"),
    ("request.grpc.service", String, "use request.url_path, which is /SERVICE/METHOD"),
    ("request.grpc.method", String, "use request.url_path, which is /SERVICE/METHOD"),
    ("request.http", Any, "use request.headers, request.path or request.method"),
    ("source.id", String, "use connection.uri_san_peer_certificate"),
    ("source.remote_address", String, NO_PORT),
    ("source.service", String, NO_PEER),
    ("source.labels", StringMap, NO_PEER),
    ("source.principal", String, "use connection.uri_san_peer_certificate"),
    ("source.certificate", String, "use connection.peer_certificate"),
    ("destination.service", String, NO_PEER),
    ("destination.labels", StringMap, NO_PEER),
    ("destination.principal", String, "use connection.uri_san_local_certificate"),
    ("destination.certificate", String, NO_PEER),
    ("connection.tls_session.sni", String, "use connection.requested_server_name"),
    ("ratelimit.domain", String, "use xds.route_name"),
    ("ratelimit.hits_addend", Int, "leave it out: a request counts once"),
];

const NO_IDENTITY: &str =
    "use a member of it, as in auth.identity.userid, or a header that the client cannot set";
const NO_BODY: &str = "use request.headers, request.query or request.size";
const NO_PEER: &str = "use an attribute of the connection, such as connection.uri_san_peer_certificate";
/// By an address with its port each connection would be counted for itself.
const NO_PORT: &str = "use request.headers['x-envoy-external-address']";

/// Attributes that the auth server has, which takes them from JSON. By the sources of Authorino.
pub const AUTH_SERVER: &[&str] = &[
    "auth",
    "metadata.filter_metadata",
    "metadata.typed_filter_metadata",
    "request.id",
    "request.time",
    "request.protocol",
    "request.scheme",
    "request.host",
    "request.method",
    "request.path",
    "request.url_path",
    "request.query",
    "request.headers",
    "request.referer",
    "request.user_agent",
    "request.size",
    "request.body",
    "request.grpc.service",
    "request.grpc.method",
    "request.raw_body",
    "request.context_extensions",
    "source.address",
    "source.port",
    "source.service",
    "source.labels",
    "source.principal",
    "source.certificate",
    "destination.address",
    "destination.port",
    "destination.service",
    "destination.labels",
    "destination.principal",
    "destination.certificate",
];

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribute {
    Envoy(Type),
    Later(Type),
    Kuadrant(Type, &'static str),
    /// The beginning of other names.
    Part,
}

/// What a name stands for; `None` where neither Envoy nor Kuadrant has it.
pub(super) fn attribute(name: &str) -> Option<Attribute> {
    let of = |table: &[(&str, Type)]| table.iter().find(|(own, _)| *own == name).map(|(_, kind)| *kind);
    let of_kuadrant = || {
        let found = KUADRANT.iter().find(|(own, ..)| *own == name)?;
        Some(Attribute::Kuadrant(found.1, found.2))
    };
    let is_part = |own: &&str| own.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    of(ENVOY)
        .map(Attribute::Envoy)
        .or_else(|| of(LATER).map(Attribute::Later))
        .or_else(of_kuadrant)
        .or_else(|| names().find(is_part).map(|_| Attribute::Part))
}

/// The names of all attributes.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let of_envoy = ENVOY.iter().chain(LATER).map(|(name, _)| *name);
    of_envoy.chain(KUADRANT.iter().map(|(name, ..)| *name))
}
