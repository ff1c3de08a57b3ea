//! Whether a listener admits a route.

use super::{hostname, namespace};
use crate::node::{GATEWAY_GROUP, NodeKey, ObjectKind};
use crate::object::{Listener, NamespacesFrom, Route};
use crate::refusal::RefusalReason;
use crate::store::Store;

/// The hostnames of a route that a listener of `object` carries.
pub(super) fn admits(
    store: &Store,
    object: &NodeKey,
    listener: &Listener,
    route: &Route,
) -> Result<Vec<String>, RefusalReason> {
    let kind = route.key.kind;
    if !carries(listener, kind) {
        return Err(RefusalReason::ProtocolMismatch);
    }
    if !listener.allowed_routes.kinds.is_empty() && !lists(listener, kind) {
        return Err(RefusalReason::KindNotAllowed);
    }
    let rule = &listener.allowed_routes.namespaces;
    namespace::admits(store, rule, NamespacesFrom::Same, &object.namespace, &route.key.namespace)?;
    if !has_hostnames(kind) {
        return Ok(Vec::new());
    }
    let common = hostname::common(listener.hostname.as_deref(), &route.spec.hostnames);
    common.ok_or(RefusalReason::HostnameMismatch)
}

/// Whether the protocol can carry a kind of routes (Gateway API, `ProtocolType` and `TLSModeType`).
///
/// A protocol of an implementation carries the kinds that the listener lists.
fn carries(listener: &Listener, kind: ObjectKind) -> bool {
    let mode = listener.tls.as_ref().and_then(|tls| tls.mode.as_deref());
    match listener.protocol.as_str() {
        "HTTP" | "HTTPS" => matches!(kind, ObjectKind::HttpRoute | ObjectKind::GrpcRoute),
        "TLS" => kind == ObjectKind::TlsRoute || kind == ObjectKind::TcpRoute && mode != Some("Passthrough"),
        "TCP" => kind == ObjectKind::TcpRoute,
        "UDP" => kind == ObjectKind::UdpRoute,
        _ => lists(listener, kind),
    }
}

fn lists(listener: &Listener, kind: ObjectKind) -> bool {
    listener.allowed_routes.kinds.iter().any(|listed| {
        listed.kind == kind.name() && listed.group.as_deref().unwrap_or(GATEWAY_GROUP) == kind.group()
    })
}

fn has_hostnames(kind: ObjectKind) -> bool {
    matches!(kind, ObjectKind::HttpRoute | ObjectKind::GrpcRoute | ObjectKind::TlsRoute)
}
