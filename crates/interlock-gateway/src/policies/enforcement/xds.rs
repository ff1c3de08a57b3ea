//! Names in the configuration that Envoy Gateway makes for the proxies of a Gateway.
//!
//! As Envoy Gateway 1.9 names them (`internal/gatewayapi/helpers.go`, `internal/xds/translator`): a listener of a
//! port and its plain route configuration have the name of the first Gateway listener there, a listener with TLS has
//! a route configuration of its own. With its runtime flag `XDSNameSchemeV2` the port names them.

use std::collections::{BTreeMap, BTreeSet};

use gateway_policies::{ListenerOf, NodeKey, RefusalReason};

/// A listener, and its Gateway.
pub(super) type OfGateway<'a> = (&'a NodeKey, ListenerOf<'a>);

/// Listeners and route configurations of one fleet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct XdsNames {
    /// Listeners.
    pub(super) listeners: Vec<String>,
    /// Route configurations, with the Gateway listeners whose routes they have.
    pub(super) route_configurations: BTreeMap<String, Vec<NodeKey>>,
}

/// How Envoy Gateway names listeners and plain route configurations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NameScheme {
    /// By the first Gateway listener of the port.
    #[default]
    V1,
    /// By the port of that.
    V2,
}

impl NameScheme {
    /// The names for the listeners of a fleet, in their order. `has_http3` says it of one of them.
    pub(super) fn names(
        self,
        listeners: &[OfGateway<'_>],
        has_http3: impl Fn(&OfGateway<'_>) -> bool,
    ) -> XdsNames {
        let mut names = XdsNames::default();
        let mut ports: BTreeMap<u16, (String, String, bool)> = BTreeMap::new();
        let mut plain: BTreeMap<u16, String> = BTreeMap::new();
        for of in listeners.iter().filter(|(_, own)| own.refusal.is_none()) {
            let (gateway, own) = of;
            let has_tls = match own.listener.protocol.as_str() {
                "HTTP" => false,
                "HTTPS" => true,
                _ => continue,
            };
            let name = listener_name(gateway, &own.key);
            let port = container_port(own.listener.port);
            // One listener with HTTP/3 opens the port for all of them.
            let (_, _, has_quic) = ports.entry(port).or_insert_with(|| {
                let [tcp, quic] = self.listener(&name, own.listener.port);
                (tcp, quic, false)
            });
            *has_quic |= has_tls && has_http3(of);
            let of_port = || match self {
                Self::V1 => name.clone(),
                Self::V2 => format!("http-{}", own.listener.port),
            };
            let configuration =
                if has_tls { name.clone() } else { plain.entry(port).or_insert_with(of_port).clone() };
            names.route_configurations.entry(configuration).or_default().push(own.key.clone());
        }
        for (tcp, quic, has_quic) in ports.into_values() {
            names.listeners.extend(has_quic.then_some(quic));
            names.listeners.push(tcp);
        }
        names
    }

    /// The names that listeners of a fleet may have: each can be the first of its port, and have HTTP/3.
    pub(super) fn listeners(self, listeners: &[OfGateway<'_>]) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let is_admitted =
            |(_, own): &&OfGateway<'_>| own.refusal != Some(RefusalReason::ListenerSetNotAllowed);
        for (gateway, own) in listeners.iter().filter(is_admitted) {
            let [tcp, quic] = self.listener(&listener_name(gateway, &own.key), own.listener.port);
            match own.listener.protocol.as_str() {
                "HTTP" => names.insert(tcp),
                "HTTPS" => names.insert(quic) | names.insert(tcp),
                _ => false,
            };
        }
        names
    }

    /// The names of the listeners of a port, over TCP and over UDP, that is first one with this name.
    fn listener(self, name: &str, port: u16) -> [String; 2] {
        match self {
            Self::V1 => [name.to_owned(), format!("{name}-quic")],
            Self::V2 => [format!("tcp-{port}"), format!("udp-{port}")],
        }
    }
}

/// The port that the proxy listens on: Envoy Gateway adds 10,000 to privileged ones, so that two ports can be one.
fn container_port(port: u16) -> u16 {
    if port < 1024 { port + 10_000 } else { port }
}

/// `NAMESPACE/GATEWAY/LISTENER`, and of a ListenerSet `NAMESPACE/GATEWAY/NAMESPACE/SET/LISTENER`.
fn listener_name(gateway: &NodeKey, listener: &NodeKey) -> String {
    let section = listener.section.as_deref().unwrap_or_default();
    let of_gateway = format!("{}/{}", gateway.namespace, gateway.name);
    if listener.object() == *gateway {
        format!("{of_gateway}/{section}")
    } else {
        format!("{of_gateway}/{}/{}/{section}", listener.namespace, listener.name)
    }
}

/// How the names of all routes of a rule begin; a number and the host follow.
pub(super) fn route_prefix(route: &NodeKey, rule_index: usize) -> String {
    let kind = route.kind.name().to_ascii_lowercase();
    format!("{kind}/{}/{}/rule/{rule_index}/match/", route.namespace, route.name)
}

/// How the names of the routes of a host end.
pub(super) fn host_suffix(hostname: &str) -> String {
    format!("/{}", hostname.replace('.', "_"))
}
