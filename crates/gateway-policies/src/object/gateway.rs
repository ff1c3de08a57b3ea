//! GatewayClass, Gateway, ListenerSet and their listeners.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use super::route::ParentRef;
use crate::node::NodeKey;

/// A GatewayClass.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayClass {
    /// Its node.
    pub key: NodeKey,
    /// `spec.controllerName`.
    pub controller_name: String,
}

/// A Gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Gateway {
    /// Its node.
    pub key: NodeKey,
    /// `metadata.creationTimestamp`; of two whose listeners share a port the older is first.
    pub created: Option<Timestamp>,
    /// Its `spec`.
    pub spec: GatewaySpec,
}

/// `spec` of a Gateway.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewaySpec {
    /// The name of the GatewayClass.
    pub gateway_class_name: String,
    /// The listeners.
    #[serde(default)]
    pub listeners: Vec<Listener>,
    /// The ListenerSets that may attach; by default none (GEP-1713).
    #[serde(default)]
    pub allowed_listeners: AllowedListeners,
}

/// `allowedListeners` of a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AllowedListeners {
    /// The namespaces of the ListenerSets.
    pub namespaces: NamespaceRule,
}

/// A ListenerSet (GEP-1713), or an XListenerSet, which has the same fields.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerSet {
    /// Its node.
    pub key: NodeKey,
    /// `metadata.creationTimestamp`; of two sets with one listener the older has it.
    pub created: Option<Timestamp>,
    /// Its `spec`.
    pub spec: ListenerSetSpec,
}

/// `spec` of a ListenerSet.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListenerSetSpec {
    /// The Gateway that the listeners join.
    pub parent_ref: ParentRef,
    /// The listeners.
    #[serde(default)]
    pub listeners: Vec<Listener>,
}

/// A listener of a Gateway or of a ListenerSet.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listener {
    /// The name, unique in its object.
    pub name: String,
    /// The hostname; none or empty stands for all.
    pub hostname: Option<String>,
    /// The port; 0, the default of an XListenerSet, stands for one that the implementation picks.
    #[serde(default)]
    pub port: u16,
    /// HTTP, HTTPS, TLS, TCP, UDP, or a name with a domain.
    pub protocol: String,
    /// How TLS is handled.
    pub tls: Option<Tls>,
    /// The routes that may attach.
    #[serde(default)]
    pub allowed_routes: AllowedRoutes,
}

/// `tls` of a listener.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Tls {
    /// Terminate (the default) or Passthrough.
    pub mode: Option<String>,
}

/// `allowedRoutes` of a listener.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AllowedRoutes {
    /// The namespaces of the routes; by default that of the listener's object.
    pub namespaces: NamespaceRule,
    /// The kinds of the routes; empty stands for all that the protocol can carry.
    pub kinds: Vec<RouteGroupKind>,
}

/// A kind of routes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct RouteGroupKind {
    /// The group; by default Gateway API's.
    pub group: Option<String>,
    /// The kind.
    pub kind: String,
}

/// Namespaces, by position or by label.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NamespaceRule {
    /// Which namespaces; the default depends on the field.
    pub from: Option<NamespacesFrom>,
    /// The labels, where `from` is Selector.
    pub selector: Option<LabelSelector>,
}

/// `from` of a namespace rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum NamespacesFrom {
    /// All namespaces.
    All,
    /// The namespace of the object with the rule.
    Same,
    /// The namespaces that a selector matches.
    Selector,
    /// No namespace.
    None,
}

/// A label selector; its requirements all have to hold.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels and their values.
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    pub match_expressions: Vec<Requirement>,
}

impl LabelSelector {
    /// Whether all requirements hold of these labels. A selector without any matches everything.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let has = |(label, value): (&String, &String)| labels.get(label) == Some(value);
        let holds = |requirement: &Requirement| {
            let value = labels.get(&requirement.key);
            match requirement.operator {
                Operator::In => value.is_some_and(|value| requirement.values.contains(value)),
                Operator::NotIn => !value.is_some_and(|value| requirement.values.contains(value)),
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        };
        self.match_labels.iter().all(has) && self.match_expressions.iter().all(holds)
    }
}

/// A requirement of a label selector.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// How its value relates to `values`.
    pub operator: Operator,
    /// The values.
    #[serde(default)]
    pub values: Vec<String>,
}

/// The operator of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label has none of the values, or is absent.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
}
