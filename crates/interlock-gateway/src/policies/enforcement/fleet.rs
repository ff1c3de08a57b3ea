//! The Gateways whose requests the same proxies carry.

use std::collections::BTreeSet;
use std::fmt::Display;

use gateway_policies::{Index, NodeKey, ObjectKind};
use interlock_core::api::interlock::{AuthEndpoint, Limitador};
use interlock_core::api::object::NamespacedName;

use super::idle::Idle;
use super::names::{self, Patched};
use super::xds::{NameScheme, OfGateway};

/// Where proxies reach a server: host and port.
pub(super) type Address = (String, u16);

/// One Gateway, or all of a GatewayClass that Envoy Gateway merges (`mergeGateways`). Merged ones share
/// listeners and route configurations, so what carries their policies out is made, and written, as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fleet {
    /// The Gateway, or the GatewayClass: what its EnvoyPatchPolicies target.
    pub(super) key: NodeKey,
    /// The namespace of its EnvoyPatchPolicies: for a GatewayClass that of its EnvoyProxy.
    pub(super) namespace: String,
    /// The Gateways, in Envoy Gateway's order.
    pub(super) gateways: Vec<NodeKey>,
    /// What its proxies ask, where policies are carried out.
    pub(super) asked: Result<Asked, Idle>,
}

/// What the proxies of a fleet ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// The Limitador and its address.
    pub(super) limitador: Result<(Limitador, Address), Idle>,
    /// The auth server.
    pub(super) auth: Result<AuthEndpoint, Idle>,
    /// Merged Gateways that the settings give another Limitador, or none.
    pub(super) uncounted: BTreeSet<NodeKey>,
    /// The same of the auth server.
    pub(super) undecided: BTreeSet<NodeKey>,
    /// How Envoy Gateway names what it makes for them.
    pub(super) scheme: NameScheme,
}

impl Fleet {
    /// Whether it is that of a GatewayClass.
    pub(super) fn is_merged(&self) -> bool {
        self.key.kind == ObjectKind::GatewayClass
    }

    /// The name of an EnvoyPatchPolicy, by its position, or what else tells it from the others. A Gateway may have the
    /// name of a class.
    pub(super) fn patch(&self, patched: Patched, position: impl Display) -> NamespacedName {
        let name = match self.is_merged() {
            true => names::patch(patched, &self.key.name, format_args!("{position}-{}", names::OF_CLASS)),
            false => names::patch(patched, &self.key.name, position),
        };
        NamespacedName::new(&self.namespace, name)
    }

    /// The listeners of its Gateways.
    pub(super) fn listeners<'a>(&'a self, index: &'a Index) -> impl Iterator<Item = OfGateway<'a>> {
        self.gateways
            .iter()
            .flat_map(|gateway| index.listeners(gateway).into_iter().map(move |listener| (gateway, listener)))
    }
}
