//! The kinds of policies: those that are known by name, and those of definitions with the label of GEP-713.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use gateway_policies::{ObjectKind, PolicyKind, TargetKind};
use serde_json::Value;

use super::auth::AuthPolicy;
use super::generic::{GenericKind, Precedence};
use super::rate_limit::RateLimitPolicy;
use crate::names::{ENVOY_GATEWAY, GATEWAY_API, KUADRANT};

/// The label of the definition of a policy; its value is `Direct` or `Inherited`, in either case (GEP-713).
pub const POLICY_LABEL: &str = "gateway.networking.k8s.io/policy";

const WHOLE_GATEWAYS: &[TargetKind] =
    &[TargetKind::whole(ObjectKind::Gateway), TargetKind::whole(ObjectKind::GatewayClass)];
const GATEWAYS: &[TargetKind] = &[TargetKind::with_sections(ObjectKind::Gateway)];
const LISTENERS: &[TargetKind] =
    &[TargetKind::with_sections(ObjectKind::Gateway), TargetKind::with_sections(ObjectKind::ListenerSet)];
const ROUTES: &[TargetKind] = &[
    TargetKind::with_sections(ObjectKind::Gateway),
    TargetKind::with_sections(ObjectKind::ListenerSet),
    TargetKind::with_sections(ObjectKind::HttpRoute),
    TargetKind::with_sections(ObjectKind::GrpcRoute),
    TargetKind::with_sections(ObjectKind::TlsRoute),
    TargetKind::with_sections(ObjectKind::TcpRoute),
    TargetKind::with_sections(ObjectKind::UdpRoute),
];
const SERVICES: &[TargetKind] = &[TargetKind::with_sections(ObjectKind::Service)];
const ISTIO: &[TargetKind] = &[
    TargetKind::whole(ObjectKind::Gateway),
    TargetKind::whole(ObjectKind::GatewayClass),
    TargetKind::whole(ObjectKind::Service),
];

/// Kinds whose rules are not known, a line each.
const GENERIC: [(&str, &str, Precedence, &[TargetKind]); 13] = [
    (KUADRANT, "TLSPolicy", Precedence::MostSpecific, GATEWAYS),
    (KUADRANT, "DNSPolicy", Precedence::MostSpecific, GATEWAYS),
    (GATEWAY_API, "BackendTLSPolicy", Precedence::OnePerTarget, SERVICES),
    (ENVOY_GATEWAY, "ClientTrafficPolicy", Precedence::MostSpecific, LISTENERS),
    (ENVOY_GATEWAY, "BackendTrafficPolicy", Precedence::MostSpecific, ROUTES),
    (ENVOY_GATEWAY, "SecurityPolicy", Precedence::MostSpecific, ROUTES),
    (ENVOY_GATEWAY, "EnvoyExtensionPolicy", Precedence::MostSpecific, ROUTES),
    (ENVOY_GATEWAY, "EnvoyPatchPolicy", Precedence::All, WHOLE_GATEWAYS),
    ("security.istio.io", "AuthorizationPolicy", Precedence::All, ISTIO),
    ("security.istio.io", "RequestAuthentication", Precedence::All, ISTIO),
    ("telemetry.istio.io", "Telemetry", Precedence::All, ISTIO),
    ("extensions.istio.io", "WasmPlugin", Precedence::All, ISTIO),
    ("networking.istio.io", "EnvoyFilter", Precedence::All, ISTIO),
];

/// Group and kind of all objects that decide about paths, beside policies.
pub fn path_kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    let nodes = ObjectKind::ALL.into_iter().map(|kind| (kind.group(), kind.name()));
    nodes.chain([(GATEWAY_API, "ReferenceGrant"), ("", "Namespace")])
}

/// A kind of policies, and which of its policies act.
#[derive(Clone)]
pub(super) struct SeenKind {
    pub(super) kind: Arc<dyn PolicyKind>,
    pub(super) precedence: Precedence,
    /// Whether its rules are understood, and with them all kinds that it can target.
    pub(super) is_understood: bool,
}

/// The kinds of policies by the name that an index knows them under.
#[derive(Clone)]
pub struct PolicyKinds(BTreeMap<String, SeenKind>);

/// The kinds that are known without a definition.
pub(super) static KNOWN: LazyLock<PolicyKinds> = LazyLock::new(PolicyKinds::known);

impl PolicyKinds {
    /// The kinds that are known without a definition, to be added to.
    pub fn known() -> Self {
        let mut kinds = Self(BTreeMap::new());
        kinds.understand(RateLimitPolicy("RateLimitPolicy"));
        kinds.understand(RateLimitPolicy("TokenRateLimitPolicy"));
        kinds.understand(AuthPolicy);
        for (group, kind, precedence, targets) in GENERIC {
            kinds.add(group, kind, precedence, targets.to_vec());
        }
        kinds
    }

    fn understand(&mut self, kind: impl PolicyKind + 'static) {
        let name = kind.name().to_owned();
        let kind = SeenKind { kind: Arc::new(kind), precedence: Precedence::Inherited, is_understood: true };
        self.0.insert(name, kind);
    }

    fn add(&mut self, group: &str, kind: &str, precedence: Precedence, targets: Vec<TargetKind>) {
        let name = if self.0.contains_key(kind) { format!("{kind}.{group}") } else { kind.to_owned() };
        let (group, kind) = (group.to_owned(), kind.to_owned());
        let generic = GenericKind { name: name.clone(), kind, group, precedence, targets };
        self.0.insert(name, SeenKind { kind: Arc::new(generic), precedence, is_understood: false });
    }

    /// Adds the kind of a definition by the value of its label; whether the value is one of GEP-713's.
    pub fn add_labelled(&mut self, group: &str, kind: &str, label: &str) -> bool {
        let precedence = match label.to_ascii_lowercase().as_str() {
            "inherited" => Precedence::Inherited,
            "direct" => Precedence::OnePerTarget,
            _ => return false,
        };
        if self.name_of(group, kind).is_none() {
            let targets = ObjectKind::ALL.map(TargetKind::with_sections).to_vec();
            self.add(group, kind, precedence, targets);
        }
        true
    }

    /// Adds the kinds of the CustomResourceDefinitions among objects that have the label.
    pub fn add_definitions<'a>(&mut self, objects: impl IntoIterator<Item = &'a Value>) {
        for object in objects.into_iter().filter(|object| object["kind"] == "CustomResourceDefinition") {
            let label = object["metadata"]["labels"][POLICY_LABEL].as_str();
            let (group, kind) = (object["spec"]["group"].as_str(), object["spec"]["names"]["kind"].as_str());
            if let (Some(label), Some(group), Some(kind)) = (label, group, kind) {
                self.add_labelled(group, kind, label);
            }
        }
    }

    /// Group and kind of each, by name.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.0.iter().map(|(name, own)| (name.as_str(), own.kind.group(), own.kind.kubernetes_kind()))
    }

    /// The name of a kind of Kubernetes, if it is one of policies.
    pub fn name_of(&self, group: &str, kind: &str) -> Option<&str> {
        self.names().find(|(_, own_group, own)| *own_group == group && *own == kind).map(|(name, ..)| name)
    }

    /// Which policies of a kind act on a path.
    pub fn precedence(&self, name: &str) -> Option<Precedence> {
        self.0.get(name).map(|own| own.precedence)
    }

    /// The API group of a kind.
    pub(super) fn group(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|own| own.kind.group())
    }

    /// Whether it is not known how a kind's policies are merged, but that they are.
    pub fn is_merge_assumed(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|own| own.precedence == Precedence::Inherited && !own.is_understood)
    }

    /// Whether a kind's policies are of requests, which TLSRoutes, TCPRoutes and UDPRoutes do not have.
    pub(super) fn is_of_requests(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|own| own.is_understood)
    }

    /// Whether a policy of a kind acts as one rule.
    pub(super) fn acts_whole(&self, name: &str) -> bool {
        matches!(self.precedence(name), Some(Precedence::OnePerTarget | Precedence::All))
    }

    pub(super) fn get(&self, name: &str) -> Option<&SeenKind> {
        self.0.get(name)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Arc<dyn PolicyKind>> {
        self.0.values().map(|own| own.kind.clone())
    }
}
