//! Nodes of the topology and their keys: kind, namespace, name and section.

use std::fmt;
use std::sync::Arc;

/// The API group of Gateway API.
pub const GATEWAY_GROUP: &str = "gateway.networking.k8s.io";

/// The API group of Gateway API's experiments.
pub const EXPERIMENTAL_GROUP: &str = "gateway.networking.x-k8s.io";

/// Kinds of objects that are nodes.
///
/// The kind is part of every key: an HTTPRoute and a GRPCRoute of one name are two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// `gateway.networking.k8s.io/GatewayClass`, cluster-scoped.
    GatewayClass,
    /// `gateway.networking.k8s.io/Gateway`; its sections are listeners.
    Gateway,
    /// `gateway.networking.k8s.io/ListenerSet` (GEP-1713); its sections are listeners.
    ListenerSet,
    /// `gateway.networking.x-k8s.io/XListenerSet`, its form before Gateway API 1.5; another object than a
    /// ListenerSet of its name.
    XListenerSet,
    /// `gateway.networking.k8s.io/HTTPRoute`; its sections are rules.
    HttpRoute,
    /// `gateway.networking.k8s.io/GRPCRoute`; its sections are rules.
    GrpcRoute,
    /// `gateway.networking.k8s.io/TLSRoute`; its sections are rules.
    TlsRoute,
    /// `gateway.networking.k8s.io/TCPRoute`; its sections are rules.
    TcpRoute,
    /// `gateway.networking.k8s.io/UDPRoute`; its sections are rules.
    UdpRoute,
    /// The core group's Service; its sections are ports.
    Service,
}

impl ObjectKind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::GatewayClass,
        Self::Gateway,
        Self::ListenerSet,
        Self::XListenerSet,
        Self::HttpRoute,
        Self::GrpcRoute,
        Self::TlsRoute,
        Self::TcpRoute,
        Self::UdpRoute,
        Self::Service,
    ];

    /// The kind's name in Kubernetes.
    pub fn name(self) -> &'static str {
        match self {
            Self::GatewayClass => "GatewayClass",
            Self::Gateway => "Gateway",
            Self::ListenerSet => "ListenerSet",
            Self::XListenerSet => "XListenerSet",
            Self::HttpRoute => "HTTPRoute",
            Self::GrpcRoute => "GRPCRoute",
            Self::TlsRoute => "TLSRoute",
            Self::TcpRoute => "TCPRoute",
            Self::UdpRoute => "UDPRoute",
            Self::Service => "Service",
        }
    }

    /// The kind's API group; empty for the core group.
    pub fn group(self) -> &'static str {
        match self {
            Self::Service => "",
            Self::XListenerSet => EXPERIMENTAL_GROUP,
            _ => GATEWAY_GROUP,
        }
    }

    /// The kind of a group and a name, if it is a node.
    pub fn find(group: &str, name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name && kind.group() == group)
    }

    /// Whether its objects are routes.
    pub fn is_route(self) -> bool {
        match self {
            Self::HttpRoute | Self::GrpcRoute | Self::TlsRoute | Self::TcpRoute | Self::UdpRoute => true,
            Self::GatewayClass | Self::Gateway | Self::ListenerSet | Self::XListenerSet | Self::Service => {
                false
            }
        }
    }

    /// Whether its objects add listeners to a Gateway.
    pub fn is_listener_set(self) -> bool {
        matches!(self, Self::ListenerSet | Self::XListenerSet)
    }
}

/// What a node is, from the root of a path to its leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// A GatewayClass.
    GatewayClass,
    /// A Gateway.
    Gateway,
    /// A ListenerSet.
    ListenerSet,
    /// A listener of a Gateway or of a ListenerSet.
    Listener,
    /// A route of any kind.
    Route,
    /// A rule of a route.
    Rule,
    /// A Service.
    Service,
    /// A port of a Service.
    ServicePort,
}

/// The identity of a node, and of what a policy targets.
///
/// `Display` writes `KIND/NAMESPACE/NAME#SECTION`, without the parts that a node lacks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeKey {
    /// The kind of the object.
    pub kind: ObjectKind,
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: Arc<str>,
    /// The name of the object.
    pub name: Arc<str>,
    /// The name of a listener, a rule or a port inside the object.
    pub section: Option<Arc<str>>,
}

impl NodeKey {
    /// The node of a whole object. A GatewayClass drops the namespace.
    pub fn new(kind: ObjectKind, namespace: &str, name: &str) -> Self {
        let namespace = if kind == ObjectKind::GatewayClass { "" } else { namespace };
        Self { kind, namespace: namespace.into(), name: name.into(), section: None }
    }

    /// A section of the same object.
    #[must_use]
    pub fn with_section(&self, section: &str) -> Self {
        Self { section: Some(section.into()), ..self.clone() }
    }

    /// The whole object of a section.
    #[must_use]
    pub fn object(&self) -> Self {
        Self { section: None, ..self.clone() }
    }

    /// The place of the node on a path.
    pub fn level(&self) -> Level {
        match (self.kind, self.section.is_some()) {
            (ObjectKind::GatewayClass, _) => Level::GatewayClass,
            (ObjectKind::Gateway, false) => Level::Gateway,
            (ObjectKind::ListenerSet | ObjectKind::XListenerSet, false) => Level::ListenerSet,
            (ObjectKind::Gateway | ObjectKind::ListenerSet | ObjectKind::XListenerSet, true) => {
                Level::Listener
            }
            (ObjectKind::Service, false) => Level::Service,
            (ObjectKind::Service, true) => Level::ServicePort,
            (
                ObjectKind::HttpRoute
                | ObjectKind::GrpcRoute
                | ObjectKind::TlsRoute
                | ObjectKind::TcpRoute
                | ObjectKind::UdpRoute,
                has_section,
            ) => {
                if has_section {
                    Level::Rule
                } else {
                    Level::Route
                }
            }
        }
    }

    /// Whether the key names a rule by its position (`rule-2`), which moves when a rule is inserted.
    pub fn is_position(&self) -> bool {
        let position = self.section.as_deref().and_then(|section| section.strip_prefix("rule-"));
        self.kind.is_route() && position.is_some_and(|number| number.parse::<usize>().is_ok())
    }
}

impl fmt::Display for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if !self.namespace.is_empty() {
            write!(f, "/{}", self.namespace)?;
        }
        write!(f, "/{}", self.name)?;
        match &self.section {
            Some(section) => write!(f, "#{section}"),
            None => Ok(()),
        }
    }
}
