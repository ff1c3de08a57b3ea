//! What is done for the rules of a fleet before their requests go on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_policies::{EffectivePolicy, Index, NodeKey, Path, Policy};
use serde_json::{Map, Value, json};

use super::config::{AuthConfig, auth_config, host};
use super::filters::Server;
use super::{KIND, filters};
use crate::policies::enforcement::budget::{self, Shares, Sizes};
use crate::policies::enforcement::carried::{CarriedRules, RuleKey};
use crate::policies::enforcement::fleet::Fleet;
use crate::policies::enforcement::left_out::LeftOut;
use crate::policies::enforcement::xds::OfGateway;
use crate::policies::enforcement::{envoy, xds};

/// Namespaces in the maps of a fleet that are refused apart. Where there are more, all routes are that a map does not
/// have.
const NAMESPACES: usize = 1_000;
/// Namespaces that the listeners of a fleet name, for route configurations without a map; where there are more, those
/// refuse all.
const NAMED: usize = 512;

/// What becomes of a request, the strictest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Guard {
    /// It is refused, as nothing can decide.
    Refuse,
    /// The AuthConfig of a host decides.
    Ask(String),
    /// It goes on.
    Open,
}

/// The guards of a rule on its listeners, and the hosts there.
type OfRule<'a> = Vec<(Guard, &'a [&'a str])>;

/// See the module.
#[derive(Debug, Default, PartialEq)]
pub(in crate::policies::enforcement) struct GuardedRoutes {
    /// The AuthConfigs by host.
    pub(in crate::policies::enforcement) configs: BTreeMap<String, AuthConfig>,
    /// By route configuration and beginning of the routes' names: what is done for these routes.
    pub(in crate::policies::enforcement) routes: BTreeMap<String, Map<String, Value>>,
    /// What is done for routes that it does not have, by beginning, and for all others; none where these are open.
    pub(in crate::policies::enforcement) rest: Map<String, Value>,
    pub(in crate::policies::enforcement) others: Option<Value>,
    /// What is done where a route configuration has no map.
    pub(in crate::policies::enforcement) without_map: Value,
    /// What is not carried out; its requests are refused.
    pub(in crate::policies::enforcement) left_out: BTreeSet<LeftOut>,
}

/// Reads the guards of paths, each effective policy once.
struct Reader<'a> {
    index: &'a Index,
    /// Gateways without the auth server.
    undecided: &'a BTreeSet<NodeKey>,
    is_ready: &'a dyn Fn(&NodeKey, &str) -> bool,
    /// By Gateway, too: an AuthConfig is of one.
    read: BTreeMap<(usize, NodeKey), Guard>,
    found: GuardedRoutes,
}

impl Reader<'_> {
    fn guard(&mut self, path: &Arc<Path>) -> Guard {
        let Some(effective) = self.index.effective(KIND, path) else { return Guard::Open };
        let key = (Arc::as_ptr(effective).addr(), path.gateway.clone());
        if let Some(read) = self.read.get(&key) {
            return read.clone();
        }
        let guard = match self.undecided.contains(&path.gateway) {
            true => self.leave_out(&path.gateway, effective),
            false => self.guard_of(&path.gateway, effective),
        };
        self.read.insert(key, guard.clone());
        guard
    }

    fn leave_out(&mut self, gateway: &NodeKey, effective: &EffectivePolicy) -> Guard {
        let left_out = effective.policies.iter().map(|own| LeftOut {
            policy: own.clone(),
            rule: "rules".into(),
            why: format!(
                "{gateway} is merged with Gateways that another auth server decides for; name them in one entry of \
                 spec.policies.authServers of Interlock default"
            ),
            gateway: Some(gateway.clone()),
        });
        self.found.left_out.extend(left_out);
        Guard::Refuse
    }

    fn guard_of(&mut self, gateway: &NodeKey, effective: &EffectivePolicy) -> Guard {
        if !effective.unreadable.is_empty() {
            return Guard::Refuse;
        }
        let host = host(gateway, effective);
        match auth_config(self.index, gateway, &host, effective) {
            Ok(config) => {
                self.found.configs.insert(host.clone(), config);
                // Authorino would decide by the AuthConfig of a wider host, if there is one.
                if (self.is_ready)(gateway, &host) { Guard::Ask(host) } else { Guard::Refuse }
            }
            Err(left_out) => {
                self.found.left_out.extend(left_out);
                Guard::Refuse
            }
        }
    }
}

/// The guards of the rules that the proxies of a fleet carry; none where it has no AuthPolicy. `is_ready` says whether
/// the auth server decides by the AuthConfig of a host.
pub(in crate::policies::enforcement) fn guarded_routes(
    index: &Index,
    fleet: &Fleet,
    carried: &CarriedRules<'_>,
    (server, undecided): (&Server, &BTreeSet<NodeKey>),
    is_ready: &dyn Fn(&NodeKey, &str) -> bool,
) -> Option<GuardedRoutes> {
    let found = GuardedRoutes::default();
    let mut reader = Reader { index, undecided, is_ready, read: BTreeMap::new(), found };
    let mut guards: BTreeMap<&RuleKey<'_>, OfRule<'_>> = BTreeMap::new();
    // A policy guards a route from its first request on, wherever that comes to be attached.
    let guarding = index.policies().filter(|own| &*own.id.kind == KIND && guards_routes(own));
    let mut namespaces: BTreeSet<&str> = guarding.map(|own| &*own.id.namespace).collect();
    let listeners: Vec<OfGateway<'_>> = fleet.listeners(index).collect();
    namespaces.retain(|own| listeners.iter().any(|(_, listener)| index.takes(listener, own)));
    for (key, on_listeners) in &carried.rules {
        let of_rule: OfRule<'_> =
            on_listeners.iter().map(|(path, hosts)| (reader.guard(path), hosts.as_slice())).collect();
        if of_rule.iter().any(|(guard, _)| *guard != Guard::Open) {
            namespaces.insert(&key.1.namespace);
        }
        guards.insert(key, of_rule);
    }
    let configurations = carried.rules.keys().map(|(configuration, ..)| configuration);
    let configurations = configurations.collect::<BTreeSet<_>>().len().max(1);
    let is_closed = is_guarded(index, fleet) || namespaces.len() * configurations > NAMESPACES;
    if !is_closed && namespaces.is_empty() {
        return None;
    }
    let mut found = reader.found;
    found.others = is_closed.then(filters::refuse);
    found.rest = if is_closed { Map::new() } else { of_namespaces(&namespaces) };
    found.rest.insert(filters::WITHOUT_ROUTE.to_owned(), filters::open());
    let listeners = carried.listeners.len() + carried.standby.len();
    found.without_map = match namespaces.len() * listeners <= NAMED {
        true => filters::matcher(found.rest.clone(), found.others.clone()),
        false => {
            let without_route = Map::from_iter([(filters::WITHOUT_ROUTE.to_owned(), filters::open())]);
            filters::matcher(without_route, Some(filters::refuse()))
        }
    };
    guards.retain(|(_, route, _), _| is_closed || namespaces.contains(&*route.namespace));
    add_routes(index, fleet, server, guards, carried, &mut found);
    Some(found)
}

/// Adds what is done for the routes of the rules. What is beyond the share of a namespace is left out, so it is refused.
fn add_routes(
    index: &Index,
    fleet: &Fleet,
    server: &Server,
    guards: BTreeMap<&RuleKey<'_>, OfRule<'_>>,
    carried: &CarriedRules<'_>,
    found: &mut GuardedRoutes,
) {
    let entry = |(key, of_rule): (_, OfRule<'_>)| {
        let (_, route, rule): &RuleKey<'_> = key;
        let (prefix, action) = (xds::route_prefix(route, *rule), action(server, of_rule));
        let bytes = prefix.len() + action.to_string().len();
        (key, prefix, action, bytes)
    };
    let entries: Vec<_> = guards.into_iter().map(entry).collect();
    let mut sizes = Sizes::default();
    entries.iter().for_each(|(key, _, _, bytes)| sizes.add(Some(&key.1.namespace), *bytes));
    let mut shares = Shares::of(sizes.share(budget::OF_GATEWAY));
    for (key, prefix, action, bytes) in entries {
        let (configuration, route, _) = key;
        let routes = found.routes.entry(configuration.clone()).or_default();
        if shares.admits(Some(&route.namespace), bytes) {
            routes.insert(prefix, action);
            continue;
        }
        let paths = carried.rules.get(key).into_iter().flatten().map(|(path, _)| path);
        let policies =
            paths.filter_map(|path| index.effective(KIND, path)).flat_map(|own| own.policies.iter());
        let left_out = policies.filter(|own| own.namespace == route.namespace).map(|own| LeftOut {
            policy: own.clone(),
            rule: "rules".into(),
            why: format!(
                "this namespace has more guarded rules than its share of the proxies of {}; write fewer",
                fleet.key
            ),
            gateway: None,
        });
        found.left_out.extend(left_out);
    }
}

/// Whether a policy targets a route, also one that is not there.
pub(in crate::policies) fn guards_routes(policy: &Policy) -> bool {
    !policy.is_deleting && policy.targets.iter().any(|target| target.kind.is_route())
}

/// Whether a Gateway of a fleet, or a listener of one, is the target of an AuthPolicy. Of a route that the map does not have
/// it is not known on which of them it is.
fn is_guarded(index: &Index, fleet: &Fleet) -> bool {
    let holders: BTreeSet<NodeKey> = fleet.listeners(index).map(|(_, own)| own.key.object()).collect();
    let is_one =
        |target: &NodeKey| fleet.gateways.contains(&target.object()) || holders.contains(&target.object());
    let mut policies = index.policies().filter(|own| &*own.id.kind == KIND && !own.is_deleting);
    policies.any(|own| own.targets.iter().any(is_one))
}

/// Refuses the routes of namespaces which have guarded ones: who has just one policy is not opened by a new route.
fn of_namespaces(namespaces: &BTreeSet<&str>) -> Map<String, Value> {
    let prefixes = |namespace: &&str| ["httproute", "grpcroute"].map(|kind| format!("{kind}/{namespace}/"));
    namespaces.iter().flat_map(prefixes).map(|prefix| (prefix, filters::refuse())).collect()
}

/// What is done for the routes of a rule. Where it differs between listeners that share a route configuration, the host
/// decides, with which the names end.
fn action(server: &Server, mut of_rule: OfRule<'_>) -> Value {
    let act = |guard: &Guard| match guard {
        Guard::Open => filters::open(),
        Guard::Ask(host) => server.ask(host),
        Guard::Refuse => filters::refuse(),
    };
    let Some((first, _)) = of_rule.first() else { return filters::refuse() };
    if of_rule.iter().all(|(guard, _)| guard == first) {
        return act(first);
    }
    of_rule.retain(|(_, hosts)| !hosts.is_empty());
    // Envoy refuses a list without matchers, and the route configuration of all with it.
    if of_rule.is_empty() {
        return filters::refuse();
    }
    of_rule.sort();
    let suffixes = |hosts: &[&str]| hosts.iter().map(|host| xds::host_suffix(host)).collect::<Vec<_>>();
    let by_host = of_rule.iter().map(|(guard, hosts)| (suffixes(hosts), act(guard)));
    let mut matcher = envoy::by_suffix(filters::ROUTE, by_host);
    matcher["on_no_match"] = filters::refuse();
    json!({"matcher": matcher})
}
