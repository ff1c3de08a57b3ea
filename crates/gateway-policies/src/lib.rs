//! Policy attachment of the Gateway API, as a decision: which policies act on which path, from where each rule
//! comes, what it replaced, and which conditions follow. For authors of policy controllers in Rust.
//!
//! [`Index`] takes objects as the API server returns them ([`Index::observe`]), in any order. It keeps:
//! - the [`Path`]s GatewayClass > Gateway (> ListenerSet) > Listener > Route > Rule, where the listener admits
//!   the route, and each refused pair with its [`RefusalReason`];
//! - the [`EffectivePolicy`] of each path and each inherited kind, and of each target of a direct kind;
//! - the [`PolicyState`] of each policy, from which [`conditions`] and [`ancestor_statuses`] follow.
//!
//! An event recomputes what it touches, and [`Changes`] names what differs. The order of events does not matter.
//!
//! A kind of one's own implements [`PolicyKind`]; `examples/timeouts.rs` is a whole one. `tests/conformance` is a
//! kit of data files, with which other implementations of inherited policies can be checked.
//!
//! # What a change would do
//!
//! [`Index::difference`] says before an event what it would change, for admission webhooks: [`Finding`]s are the
//! sentences. The index is as before afterwards.
//!
//! # Backends
//!
//! A path ends at the rule. GEP-713 lets a hierarchy go on to backends; of the kinds that are merged today none does:
//! those of Kuadrant and Envoy Gateway act where the proxy has picked a route, before it picks a backend. A backend as
//! a level would multiply the paths, and with them the outputs, by the backends of a rule. A direct kind can target a
//! Service and its ports; [`RouteLinks::backends`] says which rules lead to them.
//!
//! # What is not known
//!
//! An object that does not decode is listed in [`Index::faults`], and its last decoded version stays in force. So
//! does the last valid version of an invalid policy. A policy that was never valid is listed in
//! [`EffectivePolicy::unreadable`] of each path that it targets. A caller that cannot read a kind sends no events of it,
//! and so changes nothing.
//!
//! # Hostile input
//!
//! [`limits`] bound each object, each path and each message; each bound has a stated outcome.
//!
//! The crate has no clock, no files, no randomness and no Kubernetes client.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod attach;
mod condition;
mod effective;
mod fields;
mod index;
mod kind;
pub mod limits;
mod node;
mod object;
mod path;
mod policy;
mod read;
mod refusal;
mod state;
mod store;

pub use attach::{Attachment, BackendLink, BackendState, ListenerOf, RouteLinks, intersection};
pub use condition::{AncestorStatus, Condition, Delivery, ancestor_statuses, conditions};
pub use effective::{EffectivePolicy, EffectiveRule, Replaced, fold};
pub use fields::{assemble, fields_under};
pub use index::{
    Changes, Cost, Difference, Event, Finding, Index, OutputKey, OverBudget, Replacement, Subject,
};
pub use kind::{PolicyClass, PolicyKind, Scope, TargetKind, rules_under};
pub use node::{EXPERIMENTAL_GROUP, GATEWAY_GROUP, Level, NodeKey, ObjectKind};
pub use object::{
    AllowedListeners, AllowedRoutes, BackendRef, DecodeError, Gateway, GatewayClass, GatewaySpec, Grant,
    GrantFrom, GrantSpec, GrantTo, LabelSelector, Listener, ListenerSet, ListenerSetSpec, Metadata,
    Namespace, NamespaceRule, NamespacesFrom, Object, Operator, ParentRef, Requirement, Route,
    RouteGroupKind, RouteRule, RouteSpec, Service, ServicePort, ServiceSpec, Tls, decode,
};
pub use path::Path;
pub use policy::{Block, Policy, PolicyId, Precedence, Role, Rules, Strategy, Violation};
pub use read::{NO_RULE, SEVERAL_BLOCKS, read_policy};
pub use refusal::{Refusal, RefusalReason};
pub use state::{AncestorState, PolicyState, TargetState};
pub use store::ObjectKey;

#[cfg(test)]
mod tests;
