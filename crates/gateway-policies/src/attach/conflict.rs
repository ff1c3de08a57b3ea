//! Listeners that no request distinguishes.
//!
//! Input: a Gateway and its ListenerSets. Output: the listeners that carry no route, with the reason.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::{gateway_of, unique};
use crate::node::NodeKey;
use crate::object::{Listener, ListenerSet, Object};
use crate::refusal::RefusalReason;
use crate::store::{Conflicts, ObjectKey, Store, Stored};

/// What can share a port. HTTPS and TLS do by the server name of the handshake.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group<'a> {
    Http,
    Tls,
    Tcp,
    Udp,
    /// A protocol of an implementation, which alone knows what it shares a port with.
    Own(&'a str),
}

impl Group<'_> {
    /// Whether both can be on one port. UDP has ports of its own.
    fn is_compatible(self, other: Self) -> bool {
        let knows_others = |group| matches!(group, Group::Http | Group::Tls | Group::Tcp);
        self == other || !knows_others(self) || !knows_others(other)
    }

    fn has_hostnames(self) -> bool {
        !matches!(self, Self::Tcp | Self::Udp)
    }
}

/// What a listener claims on its port.
type Claim<'a> = (Group<'a>, String);

/// Claims by port, with the number of listeners that make them.
#[derive(Default)]
struct Claims<'a>(BTreeMap<u16, BTreeMap<Claim<'a>, usize>>);

impl<'a> Claims<'a> {
    fn add(&mut self, port: u16, claim: Claim<'a>) {
        *self.0.entry(port).or_default().entry(claim).or_default() += 1;
    }

    /// Why a claim cannot stand beside these, where `own` of them are its own.
    fn refuse(&self, port: u16, claim: &Claim<'a>, own: usize) -> Option<RefusalReason> {
        let on_port = self.0.get(&port)?;
        if on_port.keys().any(|(group, _)| !group.is_compatible(claim.0)) {
            return Some(RefusalReason::ProtocolConflict);
        }
        let is_taken = on_port.get(claim).is_some_and(|count| *count > own);
        let reason = if claim.0.has_hostnames() {
            RefusalReason::HostnameConflict
        } else {
            RefusalReason::ProtocolConflict
        };
        is_taken.then_some(reason)
    }
}

/// Stores or removes an object, and finds the conflicts of its listeners anew; none where it does not differ.
pub(crate) fn store_object(store: &mut Store, key: &ObjectKey, new: Option<Object>) -> Option<Stored> {
    // A ListenerSet names its Gateway, so that both versions of it count.
    let mut gateways = store.gateways_of(key);
    let mut stored = store.replace(key, new)?;
    gateways.extend(store.gateways_of(key));
    for gateway in gateways {
        let new = conflicts(store, &gateway);
        for object in differing(store.conflicts(&gateway), &new) {
            stored.routes.extend(store.routes_of(&object).cloned());
        }
        store.set_conflicts(gateway, new);
    }
    Some(stored)
}

/// The conflicted listeners of a Gateway and of the ListenerSets that it admits.
///
/// Inside one object no indistinct listener wins (Gateway API, "Handling indistinct Listeners"). Between objects the
/// first has it: the Gateway, then the sets by age and by `namespace/name` (GEP-1713, "Listener Precedence"). What an
/// earlier object refuses claims nothing, so that it does not harm a third one.
fn conflicts(store: &Store, gateway: &NodeKey) -> Conflicts {
    let Some(gateway) = store.gateway(gateway) else { return Conflicts::new() };
    let sets = store.sets_of(&gateway.key).filter(|set| gateway_of(store, set).is_ok());
    let mut sets: Vec<&ListenerSet> = sets.collect();
    sets.sort_by_cached_key(|set| {
        let name = format!("{}/{}", set.key.namespace, set.key.name);
        // One that was never created is the youngest.
        (Reverse(set.created.is_some()), set.created, name, set.key.kind)
    });
    let objects = sets.iter().map(|set| (&set.key, &set.spec.listeners));
    let mut earlier = Claims::default();
    let mut found = Conflicts::new();
    for (object, listeners) in [(&gateway.key, &gateway.spec.listeners)].into_iter().chain(objects) {
        let mut own = Claims::default();
        let mut candidates = Vec::new();
        for listener in unique(listeners).filter(|listener| listener.port != 0) {
            let claim = claim(listener);
            match earlier.refuse(listener.port, &claim, 0) {
                Some(reason) => {
                    found.insert(object.with_section(&listener.name), reason);
                }
                None => {
                    own.add(listener.port, claim.clone());
                    candidates.push((listener, claim));
                }
            }
        }
        for (listener, claim) in candidates {
            if let Some(reason) = own.refuse(listener.port, &claim, 1) {
                found.insert(object.with_section(&listener.name), reason);
            }
            earlier.add(listener.port, claim);
        }
    }
    found
}

fn claim(listener: &Listener) -> Claim<'_> {
    let group = match listener.protocol.as_str() {
        "HTTP" => Group::Http,
        "HTTPS" | "TLS" => Group::Tls,
        "TCP" => Group::Tcp,
        "UDP" => Group::Udp,
        own => Group::Own(own),
    };
    let hostname = listener.hostname.as_deref().filter(|hostname| group.has_hostnames() && *hostname != "*");
    (group, hostname.unwrap_or_default().to_ascii_lowercase())
}

/// The objects whose listeners differ between two results.
fn differing(old: Option<&Conflicts>, new: &Conflicts) -> BTreeSet<NodeKey> {
    let differs = |key: &&NodeKey| old.and_then(|old| old.get(*key)) != new.get(*key);
    old.into_iter().flat_map(Conflicts::keys).chain(new.keys()).filter(differs).map(NodeKey::object).collect()
}
