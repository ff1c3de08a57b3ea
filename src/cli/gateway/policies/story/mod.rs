//! What `interlock why` says of policies, routes and Gateways.

mod find;
mod gateway;
mod policy;
mod route;
mod words;

use std::collections::BTreeMap;

use gateway_policies::{NodeKey, ObjectKind, PolicyId};
use interlock_core::api::object::{Gvk, meta_str};
use interlock_core::kinds::story::Told;
use interlock_gateway::names::ENVOY_GATEWAY;
use interlock_gateway::policies::PolicyKinds;
use interlock_gateway::policies::proxied::{Proxied, is_for};
use serde_json::Value;

use super::source::{Source, foreign_classes};

pub(in crate::cli) use self::find::{find, find_policy, is_any_policy};

/// The kinds of policies that Interlock carries out.
const CARRIED_OUT: [&str; 2] = ["AuthPolicy", "RateLimitPolicy"];

/// What a story is about.
enum Subject {
    Policy(PolicyId),
    Route(NodeKey),
    Gateway(NodeKey),
}

/// Whether there may be a story about an object, for which all objects of the Gateway API have to be read.
pub(in crate::cli) fn is_about(object: &Value) -> bool {
    let has_target = ["targetRef", "targetRefs", "targetSelectors"].iter().any(|field| {
        let field = &object["spec"][*field];
        field.is_object() || field.is_array()
    });
    has_target || subject(&PolicyKinds::known(), object).is_some()
}

/// The story of an object; none of an object of another kind.
pub(in crate::cli) fn told(source: &Source, object: &Value) -> Option<Told> {
    let survey = source.linked();
    let (mut told, nodes) = match subject(survey.kinds(), object)? {
        Subject::Policy(id) => {
            let is_envoys = Gvk::of(object).is_some_and(|gvk| gvk.group == ENVOY_GATEWAY);
            let policy = survey.index().policy(&id).filter(|_| is_envoys);
            (policy::told(&survey, &id), policy.map(|own| own.targets.clone()).unwrap_or_default())
        }
        Subject::Route(route) => (route::told(&survey, &route), vec![route]),
        Subject::Gateway(gateway) => (gateway::told(&survey, &gateway, object), vec![gateway]),
    };
    let paths = nodes.iter().flat_map(|node| survey.index().paths_through(node));
    told.unknown.extend(foreign_classes(&survey, paths));
    told.unknown.extend(source.gaps.lines());
    Some(told)
}

/// The Gateways, or the GatewayClasses that they are merged in, whose proxies have something of an object, and of which rules
/// of routes; none of an object of another kind.
pub(in crate::cli) fn proxied(source: &Source, object: &Value) -> Option<Vec<(NodeKey, Proxied)>> {
    let survey = source.linked();
    let index = survey.index();
    let merged = |gateway: &NodeKey| {
        let class = NodeKey::new(ObjectKind::GatewayClass, "", index.class_of(gateway)?);
        source.objects().iter().any(|own| is_for(own, &class)).then_some(class)
    };
    let paths = match subject(survey.kinds(), object)? {
        Subject::Policy(id) if !CARRIED_OUT.contains(&&*id.kind) => return None,
        Subject::Policy(id) => policy::acting(&survey, &id),
        Subject::Route(route) => index.paths_through(&route).collect(),
        Subject::Gateway(gateway) => {
            let Some(class) = merged(&gateway) else { return Some(vec![(gateway, Proxied::All)]) };
            let rules = index.paths_through(&gateway).map(|path| (&path.route, path.rule_index));
            return Some(vec![(class, Proxied::rules(rules))]);
        }
    };
    let mut targets: BTreeMap<&NodeKey, NodeKey> = BTreeMap::new();
    let mut rules: BTreeMap<NodeKey, Vec<(&NodeKey, usize)>> = BTreeMap::new();
    for path in paths {
        let target = || merged(&path.gateway).unwrap_or_else(|| path.gateway.clone());
        let target = targets.entry(&path.gateway).or_insert_with(target);
        rules.entry(target.clone()).or_default().push((&path.route, path.rule_index));
    }
    Some(rules.into_iter().map(|(target, own)| (target, Proxied::rules(own))).collect())
}

fn subject(kinds: &PolicyKinds, object: &Value) -> Option<Subject> {
    let gvk = Gvk::of(object)?;
    let name = meta_str(object, "name")?;
    let namespace = meta_str(object, "namespace").filter(|text| !text.is_empty()).unwrap_or("default");
    if let Some(kind) = kinds.name_of(&gvk.group, &gvk.kind) {
        let (kind, namespace, name) = (kind.into(), namespace.into(), name.into());
        return Some(Subject::Policy(PolicyId { kind, namespace, name }));
    }
    let kind = ObjectKind::find(&gvk.group, &gvk.kind)?;
    let node = NodeKey::new(kind, namespace, name);
    match kind {
        ObjectKind::Gateway => Some(Subject::Gateway(node)),
        kind if kind.is_route() => Some(Subject::Route(node)),
        _ => None,
    }
}
