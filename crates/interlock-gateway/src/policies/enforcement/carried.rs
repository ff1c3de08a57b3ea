//! The rules of routes that the proxies of a fleet carry, by the names that Envoy Gateway gives them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_policies::{Index, ListenerOf, NodeKey, Path};

use super::fleet::Fleet;
use super::listeners::UnreadyListeners;
use super::xds::{NameScheme, OfGateway};

/// A rule in a route configuration: the route, and the position of the rule.
pub(super) type RuleKey<'a> = (String, &'a NodeKey, usize);

/// The path through each listener that carries a rule, and the hosts there.
pub(super) type OnListeners<'a> = Vec<(&'a Arc<Path>, Vec<&'a str>)>;

/// See the module.
pub(super) struct CarriedRules<'a> {
    /// The listeners of the proxies.
    pub(super) listeners: Vec<String>,
    /// Those that they have under other circumstances.
    pub(super) standby: Vec<String>,
    /// By route configuration, route and position.
    pub(super) rules: BTreeMap<RuleKey<'a>, OnListeners<'a>>,
}

/// What the proxies of a fleet carry.
pub(super) fn carried<'a>(
    index: &'a Index,
    unready: &UnreadyListeners,
    fleet: &'a Fleet,
    scheme: NameScheme,
) -> CarriedRules<'a> {
    let mut listeners: Vec<OfGateway<'_>> = fleet.listeners(index).collect();
    let all = scheme.listeners(&listeners);
    listeners.retain(|(gateway, own)| {
        let is_left_out = fleet.is_merged() && unready.is_refused(gateway);
        !is_left_out && !unready.has(&own.key)
    });
    let names = scheme.names(&listeners, |(gateway, own)| has_http3(index, gateway, &own.key));
    let configurations = names.route_configurations.iter();
    let configuration_of: BTreeMap<&NodeKey, &String> =
        configurations.flat_map(|(name, listeners)| listeners.iter().map(move |own| (own, name))).collect();
    let mut of_gateways: BTreeMap<&NodeKey, Vec<&ListenerOf<'_>>> = BTreeMap::new();
    listeners.iter().for_each(|(gateway, own)| of_gateways.entry(gateway).or_default().push(own));
    let of_others = |path: &Path| -> BTreeSet<&str> {
        let of_gateway = || of_gateways.get(&path.gateway).into_iter().flatten();
        let own = of_gateway().find(|own| own.key == path.listener).map(|own| own.listener.port);
        let others = of_gateway().filter(|other| other.key != path.listener);
        let others = others.filter(|other| Some(other.listener.port) == own);
        others.filter_map(|other| other.listener.hostname.as_deref()).collect()
    };
    let mut taken: BTreeMap<&NodeKey, BTreeSet<&str>> = BTreeMap::new();
    let mut rules: BTreeMap<RuleKey<'a>, OnListeners<'a>> = BTreeMap::new();
    for path in fleet.gateways.iter().flat_map(|gateway| index.paths_through(gateway)) {
        let Some(configuration) = configuration_of.get(&path.listener) else { continue };
        let key = ((*configuration).clone(), &path.route, path.rule_index);
        let taken = taken.entry(&path.listener).or_insert_with(|| of_others(path));
        // Envoy Gateway leaves to another listener of the port what is its hostname (`computeHosts`).
        let hosts = hostnames(index, path).iter().map(String::as_str).filter(|own| !taken.contains(own));
        rules.entry(key).or_default().push((path, hosts.collect()));
    }
    let standby = all.into_iter().filter(|own| !names.listeners.contains(own)).collect();
    CarriedRules { listeners: names.listeners, standby, rules }
}

fn hostnames<'a>(index: &'a Index, path: &Path) -> &'a [String] {
    let attached = index.links(&path.route).into_iter().flat_map(|links| &links.attached);
    let mut attached = attached.filter(|own| own.listener == path.listener);
    attached.next().map(|own| own.hostnames.as_slice()).unwrap_or_default()
}

/// Whether a ClientTrafficPolicy gives a listener HTTP/3, which is a listener of its own in the proxy.
fn has_http3(index: &Index, gateway: &NodeKey, listener: &NodeKey) -> bool {
    let of = |target: &NodeKey| index.direct("ClientTrafficPolicy", target);
    let acting = of(listener).or_else(|| of(&listener.object())).or_else(|| of(gateway));
    acting.is_some_and(|effective| effective.rules.contains_key("http3"))
}
