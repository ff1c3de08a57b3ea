//! The objects that paths are made of, with the fields that decide, and nothing else.
//!
//! The types are tolerant: they ignore fields that they do not know, and know no defaults of the API server
//! but those that decide. Two objects that are equal here lead to the same paths.

mod decode;
mod gateway;
mod metadata;
mod route;

pub(crate) use decode::part;
pub use decode::{DecodeError, Object, decode};
pub use gateway::{
    AllowedListeners, AllowedRoutes, Gateway, GatewayClass, GatewaySpec, LabelSelector, Listener,
    ListenerSet, ListenerSetSpec, NamespaceRule, NamespacesFrom, Operator, Requirement, RouteGroupKind, Tls,
};
pub use metadata::Metadata;
pub use route::{
    BackendRef, Grant, GrantFrom, GrantSpec, GrantTo, Namespace, ParentRef, Route, RouteRule, RouteSpec,
    Service, ServicePort, ServiceSpec,
};
