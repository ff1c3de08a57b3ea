//! Why a listener does not carry a route.

use std::fmt;

/// A parent or a listener that a route asks for and that does not carry it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// The listener, or the parent where no listener was found, as `KIND/NAMESPACE/NAME#SECTION`.
    pub parent: String,
    /// Why.
    pub reason: RefusalReason,
}

/// Why a pair is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalReason {
    /// The parent, or the Gateway of a ListenerSet, is absent.
    ParentNotFound,
    /// The parent is neither a Gateway nor a ListenerSet of one.
    ParentKindUnsupported,
    /// The GatewayClass is absent.
    ClassNotFound,
    /// The GatewayClass belongs to another controller.
    ForeignController,
    /// The Gateway's `allowedListeners` do not admit the ListenerSet.
    ListenerSetNotAllowed,
    /// The parent has no listener of the `sectionName`, or none at all.
    SectionNotFound,
    /// No listener that the reference names has the `port`.
    PortNotFound,
    /// Another listener of the Gateway or of its ListenerSets has the port with a protocol that it is not shared
    /// with.
    ProtocolConflict,
    /// Another listener of the Gateway or of its ListenerSets has the port and the hostname.
    HostnameConflict,
    /// The protocol cannot carry the route's kind.
    ProtocolMismatch,
    /// `allowedRoutes.kinds` does not list the route's kind.
    KindNotAllowed,
    /// `allowedRoutes.namespaces` does not admit the route's namespace.
    NamespaceNotAllowed,
    /// The labels that a selector asks for are unknown, because the namespace is.
    NamespaceUnknown,
    /// The route and the listener have no hostname in common.
    HostnameMismatch,
    /// The route has more paths than [`crate::limits::PATHS_PER_ROUTE`].
    OverBudget,
}

impl RefusalReason {
    /// The name of the reason.
    pub fn name(self) -> &'static str {
        match self {
            Self::ParentNotFound => "ParentNotFound",
            Self::ParentKindUnsupported => "ParentKindUnsupported",
            Self::ClassNotFound => "ClassNotFound",
            Self::ForeignController => "ForeignController",
            Self::ListenerSetNotAllowed => "ListenerSetNotAllowed",
            Self::SectionNotFound => "SectionNotFound",
            Self::PortNotFound => "PortNotFound",
            Self::ProtocolConflict => "ProtocolConflict",
            Self::HostnameConflict => "HostnameConflict",
            Self::ProtocolMismatch => "ProtocolMismatch",
            Self::KindNotAllowed => "KindNotAllowed",
            Self::NamespaceNotAllowed => "NamespaceNotAllowed",
            Self::NamespaceUnknown => "NamespaceUnknown",
            Self::HostnameMismatch => "HostnameMismatch",
            Self::OverBudget => "OverBudget",
        }
    }

    /// What the reason means, of a listener or a parent and a route.
    pub fn explanation(self) -> &'static str {
        match self {
            Self::ParentNotFound => "the parent, or the Gateway of the ListenerSet, does not exist",
            Self::ParentKindUnsupported => "the parent is neither a Gateway nor a ListenerSet of one",
            Self::ClassNotFound => "the GatewayClass does not exist",
            Self::ForeignController => "the GatewayClass belongs to another controller",
            Self::ListenerSetNotAllowed => "allowedListeners of the Gateway does not admit the ListenerSet",
            Self::SectionNotFound => "the parent has no listener with this sectionName",
            Self::PortNotFound => "the parent has no listener with this port",
            Self::ProtocolConflict => "another listener has the port with another protocol",
            Self::HostnameConflict => "another listener has the port and the hostname",
            Self::ProtocolMismatch => "the protocol of the listener cannot carry the kind of the route",
            Self::KindNotAllowed => "allowedRoutes of the listener does not have the kind of the route",
            Self::NamespaceNotAllowed => {
                "allowedRoutes of the listener does not admit the namespace of the route"
            }
            Self::NamespaceUnknown => {
                "the labels of the namespace are not known, and a selector asks for them"
            }
            Self::HostnameMismatch => "the route and the listener have no hostname in common",
            Self::OverBudget => "the route has too many paths",
        }
    }

    /// The reason of a route's condition `Accepted`; none where Gateway API has none (`RouteConditionReason`).
    pub fn route_condition_reason(self) -> Option<&'static str> {
        match self {
            Self::SectionNotFound | Self::PortNotFound => Some("NoMatchingParent"),
            Self::ProtocolMismatch | Self::KindNotAllowed | Self::NamespaceNotAllowed => {
                Some("NotAllowedByListeners")
            }
            Self::HostnameMismatch => Some("NoMatchingListenerHostname"),
            Self::ParentNotFound
            | Self::ParentKindUnsupported
            | Self::ClassNotFound
            | Self::ForeignController
            | Self::ListenerSetNotAllowed
            | Self::ProtocolConflict
            | Self::HostnameConflict
            | Self::NamespaceUnknown
            | Self::OverBudget => None,
        }
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
