//! What carries out the policies of each fleet, made once until something that it is made of changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_policies::{Index, NodeKey, ObjectKey, ObjectKind, PolicyId};
use interlock_core::api::interlock::{LimitStore, Limitador};
use serde_json::Value;

use super::auth::filters::{self, Server};
use super::auth::guards::{GuardedRoutes, guarded_routes};
use super::budget::{self, Shares, Sizes};
use super::carried::carried;
use super::counting::Counting;
use super::fleet::{Asked, Fleet};
use super::idle::Idle;
use super::listeners::UnreadyListeners;
use super::names::Patched;
use super::output::{GatewayOutput, ReadLimits, Redirects, output_of};
use super::patches::{Patches, TooLarge, of_guards, of_limits, standby};
use super::{envoy, limitador, names};

/// All that carries out the policies of one fleet.
#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) fleet: Arc<Fleet>,
    pub(super) asked: Asked,
    pub(super) output: GatewayOutput,
    /// What is guarded, where it has an AuthPolicy.
    pub(super) guarded: Option<GuardedRoutes>,
    limits: Result<Patches, TooLarge>,
    guards: Result<Patches, TooLarge>,
    /// What guards listeners that the proxies may have later.
    pub(super) standby: Option<(Vec<Value>, String)>,
}

impl Rendered {
    /// The EnvoyPatchPolicies.
    pub(super) fn patches(&self, patched: Patched) -> &Result<Patches, TooLarge> {
        match patched {
            Patched::Guards => &self.guards,
            Patched::Limits => &self.limits,
        }
    }

    /// Why there are none, if so.
    pub(super) fn idle(&self, patched: Patched) -> Option<&Idle> {
        match patched {
            Patched::Guards => self.asked.auth.as_ref().err(),
            Patched::Limits => self.asked.limitador.as_ref().err(),
        }
    }

    /// Whether what is written stays as it is, as nothing can be rendered. What is guarded is not opened by a setting that
    /// goes.
    pub(super) fn is_kept(&self, patched: Patched) -> bool {
        let is_kept = match self.idle(patched) {
            Some(Idle::Kuadrant | Idle::Awaits(_)) => true,
            Some(Idle::Lacks(_)) => patched == Patched::Guards && self.guarded.is_some(),
            None => false,
        };
        is_kept || self.patches(patched).is_err()
    }
}

/// The limits of all Gateways of one Limitador.
#[derive(Debug)]
pub(super) struct StoredLimits {
    /// As it is written: the text of a file, or a list. Made once for all Gateways.
    pub(super) content: Value,
    pub(super) is_empty: bool,
    pub(super) hash: String,
    /// Namespaces that have more limits than their share.
    pub(super) beyond: BTreeSet<Arc<str>>,
}

/// See the module.
#[derive(Clone, Default)]
pub(super) struct Rendering {
    read: ReadLimits,
    rendered: BTreeMap<NodeKey, Arc<Rendered>>,
    stored: BTreeMap<LimitStore, Arc<StoredLimits>>,
    /// What the policies of each fleet have said of redirects.
    redirects: BTreeMap<NodeKey, BTreeMap<PolicyId, Redirects>>,
    /// Policies that have something else to say since.
    restated: BTreeSet<PolicyId>,
    pub(super) unready: UnreadyListeners,
}

impl Rendering {
    /// Forgets what was rendered for a Gateway, and for those that it may be merged with.
    pub(super) fn outdate(&mut self, gateway: &NodeKey) {
        self.rendered.remove(gateway);
        // GatewayClasses come first.
        let merged = self.rendered.iter().take_while(|(key, _)| key.kind == ObjectKind::GatewayClass);
        let of_gateway = merged.filter(|(_, own)| own.fleet.gateways.contains(gateway));
        let of_gateway: Vec<NodeKey> = of_gateway.map(|(key, _)| key.clone()).collect();
        of_gateway.iter().for_each(|key| drop(self.rendered.remove(key)));
        self.stored.clear();
    }

    /// Forgets the limits of Limitadors, as Gateways are assigned anew.
    pub(super) fn forget_stored(&mut self) {
        self.stored.clear();
    }

    /// Forgets a Gateway that is gone.
    pub(super) fn drop(&mut self, gateway: &NodeKey) {
        self.redirects.remove(gateway);
    }

    /// Policies whose conditions are to say something else of redirects than before.
    pub(super) fn take_restated(&mut self) -> BTreeSet<PolicyId> {
        std::mem::take(&mut self.restated)
    }

    /// All that carries out the policies of a fleet. `is_ready` says whether the auth server decides by the AuthConfig
    /// of a host.
    pub(super) fn of_fleet(
        &mut self,
        index: &Index,
        fleet: Arc<Fleet>,
        is_ready: &dyn Fn(&NodeKey, &str) -> bool,
    ) -> Result<Arc<Rendered>, Idle> {
        let asked = fleet.asked.clone()?;
        if let Some(rendered) = self.rendered.get(&fleet.key).filter(|own| own.fleet == fleet) {
            return Ok(rendered.clone());
        }
        let carried = carried(index, &self.unready, &fleet, asked.scheme);
        let (mut output, mut limits) = (GatewayOutput::default(), Ok(Patches::new()));
        if let Ok((_, address)) = &asked.limitador {
            let name = names::cluster(address);
            output = output_of(index, &mut self.read, &fleet, &carried, &name, &asked);
            let cluster = envoy::cluster(&name, address, None);
            limits = of_limits(&output.routes, &carried.listeners, (&name, cluster));
        }
        let server = asked.auth.as_ref().map(Server::of).unwrap_or_default();
        let guarded = guarded_routes(index, &fleet, &carried, (&server, &asked.undecided), is_ready);
        let (mut guards, mut on_standby) = (Ok(Patches::new()), None);
        if let (Some(guarded), Ok(endpoint)) = (&guarded, &asked.auth) {
            let cluster = envoy::cluster(&server.cluster, &endpoint.address, Some(filters::of_cluster()));
            guards = of_guards(guarded, &carried.listeners, (&server.cluster, cluster));
            on_standby = standby(guarded, &carried.standby);
        }
        self.restate(&fleet.key, &output.redirects);
        let key = fleet.key.clone();
        let rendered = Rendered { fleet, asked, output, guarded, limits, guards, standby: on_standby };
        let rendered = Arc::new(rendered);
        self.rendered.insert(key, rendered.clone());
        self.read.sweep();
        Ok(rendered)
    }

    fn restate(&mut self, fleet: &NodeKey, redirects: &BTreeMap<PolicyId, Redirects>) {
        let before = match redirects.is_empty() {
            true => self.redirects.remove(fleet),
            false => self.redirects.insert(fleet.clone(), redirects.clone()),
        };
        let before = before.unwrap_or_default();
        let all = before.keys().chain(redirects.keys());
        self.restated.extend(all.filter(|id| before.get(*id) != redirects.get(*id)).cloned());
    }

    /// The limits of all Gateways of a Limitador.
    pub(super) fn of_limitador(
        &mut self,
        index: &Index,
        counting: &mut Counting,
        limitador: &Limitador,
        is_ready: &dyn Fn(&NodeKey, &str) -> bool,
    ) -> Arc<StoredLimits> {
        if let Some(stored) = self.stored.get(&limitador.store) {
            return stored.clone();
        }
        let mut all: BTreeMap<NodeKey, Arc<Rendered>> = BTreeMap::new();
        for object in index.objects() {
            let ObjectKey::Node(gateway) = object else { continue };
            if gateway.kind != ObjectKind::Gateway {
                continue;
            }
            let fleet = counting.fleet(index, &self.unready, gateway);
            if all.contains_key(&fleet.key) {
                continue;
            }
            let Ok(asked) = &fleet.asked else { continue };
            if asked.limitador.as_ref().is_ok_and(|(own, _)| own.store == limitador.store) {
                let key = fleet.key.clone();
                all.extend(self.of_fleet(index, fleet, is_ready).ok().map(|own| (key, own)));
            }
        }
        let stored = Arc::new(stored(all.values(), &limitador.store));
        self.stored.insert(limitador.store.clone(), stored.clone());
        stored
    }
}

/// The limits of these fleets, as their store has them.
fn stored<'a>(all: impl Iterator<Item = &'a Arc<Rendered>> + Clone, store: &LimitStore) -> StoredLimits {
    let limits = || {
        all.clone().flat_map(|rendered| &rendered.output.limits).map(|limit| {
            let bytes = limit.entries.iter().map(|entry| entry.to_string().len() + 2).sum::<usize>();
            (limit, bytes)
        })
    };
    let mut sizes = Sizes::default();
    limits().for_each(|(limit, bytes)| sizes.add(limit.namespace.as_ref(), bytes));
    let mut shares = Shares::of(sizes.share(budget::OF_LIMITADOR));
    let (mut entries, mut beyond) = (Vec::new(), BTreeSet::new());
    for (limit, bytes) in limits() {
        match shares.admits(limit.namespace.as_ref(), bytes) {
            true => entries.extend(limit.entries.iter().cloned()),
            false => beyond.extend(limit.namespace.clone()),
        }
    }
    let is_empty = entries.is_empty();
    let content = match store {
        LimitStore::ConfigMap(_) => limitador::file(&entries).into(),
        LimitStore::Limitador(_) => Value::from(entries),
    };
    let hash = names::hash(&content);
    StoredLimits { content, is_empty, hash, beyond }
}
