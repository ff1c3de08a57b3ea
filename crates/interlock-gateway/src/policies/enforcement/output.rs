//! All that carries out the RateLimitPolicies of one fleet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_policies::{EffectivePolicy, Index, NodeKey, Path, PolicyId};
use serde_json::{Map, Value};

use super::budget::{self, Shares, Sizes};
use super::carried::{CarriedRules, RuleKey};
use super::fleet::{Asked, Fleet};
use super::left_out::LeftOut;
use super::limits::{RequestLimit, RuleLimits, limits_of};
use super::{auth, envoy, limitador, xds};

/// The kind that is carried out.
pub(super) const KIND: &str = "RateLimitPolicy";

/// Bytes of what is done for the routes of one rule.
const ENTRY: usize = 256 << 10;

/// The limits of effective policies, read once each: many paths share one.
#[derive(Clone, Default)]
pub(super) struct ReadLimits(BTreeMap<usize, (Arc<EffectivePolicy>, Arc<RuleLimits>)>);

impl ReadLimits {
    fn of(&mut self, index: &Index, effective: &Arc<EffectivePolicy>) -> Arc<RuleLimits> {
        let read = || (effective.clone(), Arc::new(limits_of(index, effective)));
        self.0.entry(Arc::as_ptr(effective).addr()).or_insert_with(read).1.clone()
    }

    /// Forgets what no path has any more.
    pub(super) fn sweep(&mut self) {
        self.0.retain(|_, (effective, _)| Arc::strong_count(effective) > 1);
    }
}

/// What one fleet has.
#[derive(Debug, Default, PartialEq)]
pub(super) struct GatewayOutput {
    /// By route configuration and beginning of the routes' names: what is done for these routes.
    pub(super) routes: BTreeMap<String, Map<String, Value>>,
    /// The limits that Limitador counts.
    pub(super) limits: Vec<CountedLimit>,
    /// What is not carried out.
    pub(super) left_out: BTreeSet<LeftOut>,
    /// The policies with limits on requests that the proxy redirects, which it does without asking.
    pub(super) redirects: BTreeMap<PolicyId, Redirects>,
}

/// The requests of a policy that the proxy redirects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirects {
    /// The first rule that redirects.
    pub(super) rule: NodeKey,
    /// Whether there are no others.
    pub(super) are_all: bool,
}

/// The entries of a limit for Limitador.
#[derive(Debug, PartialEq)]
pub(super) struct CountedLimit {
    /// The namespace of the route whose own policy it is of.
    pub(super) namespace: Option<Arc<str>>,
    pub(super) entries: Vec<Value>,
}

/// The limits of a rule on each listener that carries it.
type RuleOnListeners<'a> = Vec<OnListener<'a>>;

/// The limits of a rule on one listener.
struct OnListener<'a> {
    /// The Gateway of the listener.
    gateway: &'a NodeKey,
    limits: Arc<RuleLimits>,
    hosts: &'a [&'a str],
}

/// The output of a fleet, whose limits a cluster of that name counts.
pub(super) fn output_of(
    index: &Index,
    read: &mut ReadLimits,
    fleet: &Fleet,
    carried: &CarriedRules<'_>,
    cluster: &str,
    asked: &Asked,
) -> GatewayOutput {
    let mut of_path = |path: &Arc<Path>| {
        let limits =
            index.effective(KIND, path).map(|effective| read.of(index, effective)).unwrap_or_default();
        asked_for(index, asked, path, limits)
    };
    let mut rules: BTreeMap<&RuleKey<'_>, RuleOnListeners<'_>> = BTreeMap::new();
    for (key, on_listeners) in &carried.rules {
        let own = on_listeners.iter();
        let own =
            own.map(|(path, hosts)| OnListener { gateway: &path.gateway, limits: of_path(path), hosts });
        rules.insert(key, own.collect());
    }
    let mut routes_of: BTreeMap<&Arc<str>, BTreeSet<&NodeKey>> = BTreeMap::new();
    for (_, route, _) in rules.keys() {
        routes_of.entry(&route.namespace).or_default().insert(route);
    }
    let mut output = GatewayOutput::default();
    let mut shares = Shares::of(sizes(index, &rules).share(budget::OF_GATEWAY));
    let mut counted: BTreeMap<(String, &str), (&NodeKey, &RequestLimit)> = BTreeMap::new();
    let mut limited: BTreeSet<&PolicyId> = BTreeSet::new();
    for ((configuration, route, rule), on_listeners) in &rules {
        output.left_out.extend(on_listeners.iter().flat_map(|own| own.limits.left_out.iter().cloned()));
        let policies = on_listeners.iter().flat_map(|own| &own.limits.limits).map(|own| &own.policy);
        if let Some(rule) = redirect(index, route, *rule) {
            let redirects = || Redirects { rule: rule.clone(), are_all: true };
            policies.for_each(|policy| {
                output.redirects.entry(policy.clone()).or_insert_with(redirects);
            });
            continue;
        }
        limited.extend(policies);
        let is_apart = routes_of[&route.namespace].len() <= limitador::ROUTES;
        let domain = |gateway: &NodeKey| limitador::domain(gateway, route, is_apart);
        let mut lost: BTreeSet<&str> = BTreeSet::new();
        for limit in on_listeners.iter().flat_map(|own| &own.limits.limits) {
            let namespace = limit.is_of_route.then_some(&route.namespace);
            if !shares.admits(namespace, limit.size()) {
                lost.insert(&limit.id);
            }
        }
        let mut action = action(&domain, cluster, on_listeners, |limit| lost.contains(limit.id.as_str()));
        // A share of an object that etcd takes, whatever the listeners differ in.
        if action.as_ref().is_some_and(|action| action.to_string().len() > ENTRY) {
            action = self::action(&domain, cluster, on_listeners, |limit| limit.is_of_route);
            let all = on_listeners.iter().flat_map(|own| &own.limits.limits);
            lost.extend(all.filter(|limit| limit.is_of_route).map(|limit| limit.id.as_str()));
        }
        for OnListener { gateway, limits, .. } in on_listeners {
            for limit in &limits.limits {
                if lost.contains(limit.id.as_str()) {
                    output.left_out.insert(LeftOut {
                        policy: limit.policy.clone(),
                        rule: limit.name.clone(),
                        why: format!(
                            "this namespace has more limits than its share of the proxies of {}; write fewer",
                            fleet.key
                        ),
                        gateway: None,
                    });
                } else {
                    counted.insert((domain(gateway), limit.id.as_str()), (*route, limit));
                }
            }
        }
        if let Some(action) = action {
            let of_configuration = output.routes.entry(configuration.clone()).or_default();
            of_configuration.insert(xds::route_prefix(route, *rule), action);
        }
    }
    output.redirects.iter_mut().for_each(|(policy, own)| own.are_all = !limited.contains(policy));
    output.limits.extend(counted.into_iter().map(|((domain, _), (route, limit))| CountedLimit {
        namespace: limit.is_of_route.then(|| route.namespace.clone()),
        entries: limitador::entries(&domain, limit).collect(),
    }));
    output
}

/// The limits of a path, but for those that need what is not asked there.
fn asked_for(index: &Index, asked: &Asked, path: &Arc<Path>, limits: Arc<RuleLimits>) -> Arc<RuleLimits> {
    if asked.uncounted.contains(&path.gateway) {
        return Arc::new(limits.left_out(
            &path.gateway,
            &format!(
                "{} is merged with Gateways that another Limitador counts for; name them in one entry of \
             spec.policies.limitadors of Interlock default",
                path.gateway
            ),
        ));
    }
    let has_auth = asked.auth.is_ok() && !asked.undecided.contains(&path.gateway);
    limits.with_identities(|name| has_auth && finds_out(index, path, name))
}

/// Whether authentication of a path puts what is named so into the metadata.
fn finds_out(index: &Index, path: &Arc<Path>, name: &str) -> bool {
    let rules = index.effective(auth::KIND, path).into_iter().flat_map(|own| &own.rules);
    let mut filters =
        rules.filter_map(|(key, rule)| Some((key.strip_prefix("response.success.filters.")?, rule)));
    filters.any(|(own, rule)| rule.value["key"].as_str().unwrap_or(own) == name)
}

/// The bytes of the limits of all rules that are asked about.
fn sizes(index: &Index, rules: &BTreeMap<&RuleKey<'_>, RuleOnListeners<'_>>) -> Sizes {
    let mut sizes = Sizes::default();
    let asked = rules.iter().filter(|((_, route, rule), _)| redirect(index, route, *rule).is_none());
    for ((_, route, _), on_listeners) in asked {
        for limit in on_listeners.iter().flat_map(|own| &own.limits.limits) {
            sizes.add(limit.is_of_route.then_some(&route.namespace), limit.size());
        }
    }
    sizes
}

/// What is done for the routes of a rule; none where nothing is. Where it differs between listeners that share a route
/// configuration, the host decides, with which the names end.
fn action(
    domain: &dyn Fn(&NodeKey) -> String,
    cluster: &str,
    on_listeners: &RuleOnListeners<'_>,
    is_lost: impl Fn(&RequestLimit) -> bool,
) -> Option<Value> {
    let is_own = |limit: &&RequestLimit| !is_lost(limit);
    let count = |own: &OnListener<'_>| own.limits.limits.iter().filter(is_own).count();
    let ask = |own: &OnListener<'_>| {
        envoy::ask(&domain(own.gateway), cluster, own.limits.limits.iter().filter(is_own))
    };
    let first = on_listeners.first()?;
    let is_same =
        |own: &OnListener<'_>| own.limits.limits == first.limits.limits && own.gateway == first.gateway;
    if on_listeners.iter().all(is_same) {
        return (count(first) > 0).then(|| ask(first));
    }
    let limited = on_listeners.iter().filter(|own| count(own) > 0 && !own.hosts.is_empty());
    let suffixes = |hosts: &[&str]| hosts.iter().map(|host| xds::host_suffix(host)).collect::<Vec<_>>();
    let by_host: Vec<(Vec<String>, Value)> = limited.map(|own| (suffixes(own.hosts), ask(own))).collect();
    (!by_host.is_empty()).then(|| envoy::go_on(envoy::by_suffix(envoy::ROUTE, by_host)))
}

/// The rule at a position, where it redirects.
fn redirect<'a>(index: &'a Index, route: &NodeKey, position: usize) -> Option<&'a NodeKey> {
    let links = index.links(route).filter(|links| links.redirects.contains(&position))?;
    links.rules.get(position)
}
