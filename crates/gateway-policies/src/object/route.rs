//! Routes, and the objects that decide about their backends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;

use crate::node::{GATEWAY_GROUP, NodeKey, ObjectKind};

/// A route of any kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Its node; the kind is a kind of routes.
    pub key: NodeKey,
    /// Its `spec`.
    pub spec: RouteSpec,
}

impl Route {
    /// The nodes of the rules, by position.
    ///
    /// A rule's section is its name, and else `rule-POSITION` (Kuadrant counts from 1). A position that another
    /// rule has as its name is written `#POSITION`, which no policy can target. So no two rules share a node.
    pub fn rule_keys(&self) -> Vec<NodeKey> {
        let names = self.spec.rules.iter().map(|rule| rule.name.as_deref().filter(|name| !name.is_empty()));
        let named: BTreeSet<&str> = names.clone().flatten().collect();
        let mut taken: BTreeSet<&str> = BTreeSet::new();
        let sections = names.enumerate().map(|(index, name)| {
            let position = format!("rule-{}", index + 1);
            let section: Arc<str> = match name {
                Some(name) if taken.insert(name) => name.into(),
                None if !named.contains(position.as_str()) => position.into(),
                _ => format!("#{}", index + 1).into(),
            };
            section
        });
        sections.map(|section| NodeKey { section: Some(section), ..self.key.clone() }).collect()
    }

    /// Whether a rule has a name.
    pub fn is_named(&self, name: &str) -> bool {
        self.spec.rules.iter().any(|rule| rule.name.as_deref() == Some(name))
    }

    /// Whether a rule without a name has a position, such as `rule-2`.
    pub fn has_position(&self, section: &str) -> bool {
        let number = section.strip_prefix("rule-").and_then(|number| number.parse::<usize>().ok());
        let rule = number.and_then(|number| self.spec.rules.get(number.checked_sub(1)?));
        let is_bare = rule.is_some_and(|rule| rule.name.as_deref().unwrap_or_default().is_empty());
        is_bare && number.is_some_and(|number| format!("rule-{number}") == section)
    }
}

/// `spec` of a route.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteSpec {
    /// The Gateways and ListenerSets that the route asks for.
    pub parent_refs: Vec<ParentRef>,
    /// The hostnames; empty stands for those of the listener.
    pub hostnames: Vec<String>,
    /// The rules.
    pub rules: Vec<RouteRule>,
}

/// A rule of a route.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteRule {
    /// The name, unique in its route.
    pub name: Option<String>,
    /// The backends.
    pub backend_refs: Vec<BackendRef>,
    /// What is done with requests before they go to a backend, or in place of it.
    pub filters: Vec<RouteFilter>,
}

impl RouteRule {
    /// Whether the proxy redirects the requests, and so answers them by itself.
    pub fn is_redirect(&self) -> bool {
        self.filters.iter().any(|filter| filter.kind.as_deref() == Some("RequestRedirect"))
    }
}

/// A filter of a rule.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct RouteFilter {
    /// `type`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
}

/// A reference to a parent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentRef {
    /// The group; by default Gateway API's.
    pub group: Option<String>,
    /// The kind; by default Gateway.
    pub kind: Option<String>,
    /// The namespace; by default that of the object.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The listener; none or empty stands for all.
    pub section_name: Option<String>,
    /// The port of the listener; none stands for all.
    pub port: Option<u16>,
}

/// A reference to a backend.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BackendRef {
    /// The group; by default the core group.
    pub group: Option<String>,
    /// The kind; by default Service.
    pub kind: Option<String>,
    /// The namespace; by default that of the route.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The port.
    pub port: Option<u16>,
}

impl ParentRef {
    /// The parent as a node, with its section; none where the kind is not a node.
    pub fn node(&self, namespace: &str) -> Option<NodeKey> {
        let group = self.group.as_deref().unwrap_or(GATEWAY_GROUP);
        let kind = ObjectKind::find(group, self.kind.as_deref().unwrap_or("Gateway"))?;
        let node = NodeKey::new(kind, self.namespace.as_deref().unwrap_or(namespace), &self.name);
        match self.section_name.as_deref() {
            None | Some("") => Some(node),
            Some(section) => Some(node.with_section(section)),
        }
    }
}

impl BackendRef {
    /// The Service that is referred to; none where the kind is another one.
    pub fn service(&self, namespace: &str) -> Option<NodeKey> {
        let kind = self.kind.as_deref().unwrap_or("Service");
        let is_service = self.group.as_deref().unwrap_or_default().is_empty() && kind == "Service";
        let namespace = self.namespace.as_deref().unwrap_or(namespace);
        is_service.then(|| NodeKey::new(ObjectKind::Service, namespace, &self.name))
    }
}

/// A ReferenceGrant.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// The namespace that it opens.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
    /// Its `spec`.
    pub spec: GrantSpec,
}

/// `spec` of a ReferenceGrant.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct GrantSpec {
    /// Who may refer.
    pub from: Vec<GrantFrom>,
    /// What they may refer to.
    pub to: Vec<GrantTo>,
}

/// Who may refer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct GrantFrom {
    /// The group of the referent.
    #[serde(default)]
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace.
    pub namespace: String,
}

/// What may be referred to.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct GrantTo {
    /// The group of the target.
    #[serde(default)]
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The name; none or empty stands for all.
    pub name: Option<String>,
}

/// A Service.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Its node.
    pub key: NodeKey,
    /// Its `spec`.
    pub spec: ServiceSpec,
}

/// `spec` of a Service.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct ServiceSpec {
    /// The ports.
    pub ports: Vec<ServicePort>,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ServicePort {
    /// The name, by which a policy targets it.
    pub name: Option<String>,
    /// The number.
    pub port: u16,
}

impl ServicePort {
    /// The section of the port: its name, and else its number.
    pub fn section(&self) -> Arc<str> {
        match self.name.as_deref() {
            None | Some("") => self.port.to_string().into(),
            Some(name) => name.into(),
        }
    }
}

/// A namespace and its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Namespace {
    /// The name.
    pub name: Arc<str>,
    /// The labels. The API server sets `kubernetes.io/metadata.name`; it is added where it is absent.
    pub labels: BTreeMap<String, String>,
}
