//! An object of the API server as one of this crate's.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::gateway::{Gateway, GatewayClass, GatewaySpec, Listener, ListenerSet, ListenerSetSpec};
use super::metadata::Metadata;
use super::route::{Grant, GrantSpec, Namespace, Route, RouteRule, RouteSpec, Service, ServiceSpec};
use crate::limits;
use crate::node::{GATEWAY_GROUP, NodeKey, ObjectKind};

/// An object that decides about paths. A policy is read by its kind ([`crate::read_policy`]).
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// A GatewayClass.
    GatewayClass(GatewayClass),
    /// A Gateway.
    Gateway(Gateway),
    /// A ListenerSet, in either form.
    ListenerSet(ListenerSet),
    /// A route of any kind.
    Route(Route),
    /// A Service.
    Service(Service),
    /// A ReferenceGrant.
    Grant(Grant),
    /// A namespace.
    Namespace(Namespace),
}

/// Why an object does not decode.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The kind is not one of this crate's.
    #[error("{group}/{kind} is not a kind that decides about paths")]
    UnknownKind {
        /// The API group.
        group: String,
        /// The kind.
        kind: String,
    },
    /// The object has no name.
    #[error("metadata.name is empty")]
    NoName,
    /// A field has another type than its definition says.
    #[error("cannot decode {part}: {source}")]
    Field {
        /// The part of the object.
        part: &'static str,
        /// What the decoder found.
        source: serde_json::Error,
    },
    /// A list is longer than [`limits`] admits.
    #[error("{field} has {count} entries, more than {limit}")]
    OverLimit {
        /// The field.
        field: &'static str,
        /// Its entries.
        count: usize,
        /// The entries that are admitted.
        limit: usize,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GatewayClassSpec {
    controller_name: String,
}

/// Decodes an object by its `apiVersion` and `kind`. The version is not looked at: the fields are those of `v1`.
pub fn decode(value: &Value) -> Result<Object, DecodeError> {
    let text = |field: &str| value.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    let metadata: Metadata = part(value, "metadata")?;
    if metadata.name.is_empty() {
        return Err(DecodeError::NoName);
    }
    match (group, kind) {
        ("", "Namespace") => return Ok(Object::Namespace(namespace(metadata))),
        (GATEWAY_GROUP, "ReferenceGrant") => return grant(value, &metadata),
        _ => {}
    }
    let Some(node) = ObjectKind::find(group, kind) else {
        return Err(DecodeError::UnknownKind { group: group.to_owned(), kind: kind.to_owned() });
    };
    let key = NodeKey::new(node, metadata.namespace.as_deref().unwrap_or("default"), &metadata.name);
    Ok(match node {
        ObjectKind::GatewayClass => {
            let spec: GatewayClassSpec = part(value, "spec")?;
            Object::GatewayClass(GatewayClass { key, controller_name: spec.controller_name })
        }
        ObjectKind::Gateway => {
            let spec: GatewaySpec = part(value, "spec")?;
            bounded_listeners(&spec.listeners)?;
            Object::Gateway(Gateway { key, created: metadata.creation_timestamp, spec })
        }
        ObjectKind::ListenerSet | ObjectKind::XListenerSet => {
            let spec: ListenerSetSpec = part(value, "spec")?;
            bounded_listeners(&spec.listeners)?;
            Object::ListenerSet(ListenerSet { key, created: metadata.creation_timestamp, spec })
        }
        ObjectKind::Service => {
            let spec: ServiceSpec = part(value, "spec")?;
            Object::Service(Service { key, spec })
        }
        ObjectKind::HttpRoute
        | ObjectKind::GrpcRoute
        | ObjectKind::TlsRoute
        | ObjectKind::TcpRoute
        | ObjectKind::UdpRoute => Object::Route(route(value, key)?),
    })
}

fn route(value: &Value, key: NodeKey) -> Result<Route, DecodeError> {
    let mut spec: RouteSpec = part(value, "spec")?;
    // The API server's default of an HTTPRoute is one rule for every path.
    if key.kind == ObjectKind::HttpRoute && value.pointer("/spec/rules").is_none_or(Value::is_null) {
        spec.rules.push(RouteRule::default());
    }
    bounded("spec.parentRefs", spec.parent_refs.len(), limits::PARENT_REFS)?;
    bounded("spec.hostnames", spec.hostnames.len(), limits::HOSTNAMES)?;
    bounded("spec.rules", spec.rules.len(), limits::ROUTE_RULES)?;
    for rule in &spec.rules {
        bounded("spec.rules[].backendRefs", rule.backend_refs.len(), limits::BACKEND_REFS)?;
    }
    Ok(Route { key, spec })
}

fn grant(value: &Value, metadata: &Metadata) -> Result<Object, DecodeError> {
    let spec: GrantSpec = part(value, "spec")?;
    bounded("spec.from", spec.from.len(), limits::GRANT_ENTRIES)?;
    bounded("spec.to", spec.to.len(), limits::GRANT_ENTRIES)?;
    let namespace = metadata.namespace.as_deref().unwrap_or("default").into();
    Ok(Object::Grant(Grant { namespace, name: metadata.name.as_str().into(), spec }))
}

fn namespace(metadata: Metadata) -> Namespace {
    let mut labels = metadata.labels.unwrap_or_default();
    labels.entry("kubernetes.io/metadata.name".to_owned()).or_insert_with(|| metadata.name.clone());
    Namespace { name: metadata.name.into(), labels }
}

fn bounded_listeners(listeners: &[Listener]) -> Result<(), DecodeError> {
    bounded("spec.listeners", listeners.len(), limits::LISTENERS)?;
    for listener in listeners {
        let selector = listener.allowed_routes.namespaces.selector.iter();
        let values = selector
            .flat_map(|selector| &selector.match_expressions)
            .map(|requirement| 1 + requirement.values.len())
            .sum();
        bounded("spec.listeners[].allowedRoutes.namespaces.selector", values, limits::SELECTOR_VALUES)?;
    }
    Ok(())
}

fn bounded(field: &'static str, count: usize, limit: usize) -> Result<(), DecodeError> {
    if count > limit { Err(DecodeError::OverLimit { field, count, limit }) } else { Ok(()) }
}

/// A part of an object; an absent one is decoded as an empty object, and a field that is null as an absent one, as the
/// API server drops it.
pub(crate) fn part<T: DeserializeOwned>(value: &Value, part: &'static str) -> Result<T, DecodeError> {
    let empty = Value::Object(serde_json::Map::new());
    let found = value.get(part).filter(|found| !found.is_null()).unwrap_or(&empty);
    let decoded = if has_null(found) { T::deserialize(without_nulls(found)) } else { T::deserialize(found) };
    decoded.map_err(|source| DecodeError::Field { part, source })
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().any(|field| field.is_null() || has_null(field)),
        Value::Array(items) => items.iter().any(has_null),
        _ => false,
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, field)| !field.is_null());
            Value::Object(fields.map(|(name, field)| (name.clone(), without_nulls(field))).collect())
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
