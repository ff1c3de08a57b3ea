//! What carries out the policies of each Gateway, made once until something that it is made of changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_policies::{Index, NodeKey, ObjectKey, ObjectKind, PolicyId};
use interlock_core::api::interlock::{LimitStore, Limitador};
use serde_json::Value;

use super::budget::{self, Shares, Sizes};
use super::counting::{Address, Counting};
use super::listeners::UnreadyListeners;
use super::output::{GatewayOutput, ReadLimits, Redirects, output_of};
use super::patches::{TooLarge, operations};
use super::{envoy, limitador, names};

/// All that carries out the policies of one Gateway.
#[derive(Debug)]
pub(super) struct Rendered {
    address: Address,
    pub(super) output: GatewayOutput,
    /// The operations of each EnvoyPatchPolicy, and their hash.
    pub(super) patches: Result<Vec<(Vec<Value>, String)>, TooLarge>,
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
    /// What the policies of each Gateway have said of redirects.
    redirects: BTreeMap<NodeKey, BTreeMap<PolicyId, Redirects>>,
    /// Policies that have something else to say since.
    restated: BTreeSet<PolicyId>,
    pub(super) unready: UnreadyListeners,
}

impl Rendering {
    /// Forgets what was rendered for a Gateway.
    pub(super) fn outdate(&mut self, gateway: &NodeKey) {
        self.rendered.remove(gateway);
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

    /// All that carries out the policies of a Gateway.
    pub(super) fn of_gateway(
        &mut self,
        index: &Index,
        gateway: &NodeKey,
        address: &Address,
    ) -> Arc<Rendered> {
        if let Some(rendered) = self.rendered.get(gateway).filter(|own| own.address == *address) {
            return rendered.clone();
        }
        let (host, port) = address;
        let cluster = names::cluster(address);
        let output = output_of(index, &mut self.read, &self.unready, gateway, &cluster);
        let patches = operations(&output, (&cluster, envoy::cluster(&cluster, host, *port)));
        let hashed = |operations: Vec<Value>| {
            let hash = names::hash(&Value::from(operations.clone()));
            (operations, hash)
        };
        let patches = patches.map(|patches| patches.into_iter().map(hashed).collect());
        self.restate(gateway, &output.redirects);
        let rendered = Arc::new(Rendered { address: address.clone(), output, patches });
        self.rendered.insert(gateway.clone(), rendered.clone());
        self.read.sweep();
        rendered
    }

    fn restate(&mut self, gateway: &NodeKey, redirects: &BTreeMap<PolicyId, Redirects>) {
        let before = match redirects.is_empty() {
            true => self.redirects.remove(gateway),
            false => self.redirects.insert(gateway.clone(), redirects.clone()),
        };
        let before = before.unwrap_or_default();
        let all = before.keys().chain(redirects.keys());
        self.restated.extend(all.filter(|id| before.get(*id) != redirects.get(*id)).cloned());
    }

    /// The limits of all Gateways of a Limitador.
    pub(super) fn of_limitador(
        &mut self,
        index: &Index,
        counting: &Counting,
        limitador: &Limitador,
    ) -> Arc<StoredLimits> {
        if let Some(stored) = self.stored.get(&limitador.store) {
            return stored.clone();
        }
        let mut all = Vec::new();
        for object in index.objects() {
            let ObjectKey::Node(gateway) = object else { continue };
            if gateway.kind != ObjectKind::Gateway {
                continue;
            }
            let Ok((own, address)) = counting.limitador(index, gateway) else { continue };
            if own.store == limitador.store {
                all.push(self.of_gateway(index, gateway, &address));
            }
        }
        let stored = Arc::new(stored(&all, &limitador.store));
        self.stored.insert(limitador.store.clone(), stored.clone());
        stored
    }
}

/// The limits of these Gateways, as their store has them.
fn stored(all: &[Arc<Rendered>], store: &LimitStore) -> StoredLimits {
    let limits = || {
        all.iter().flat_map(|rendered| &rendered.output.limits).map(|limit| {
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
