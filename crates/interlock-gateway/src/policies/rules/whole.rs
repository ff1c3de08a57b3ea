//! Policies of which the most specific acts whole (Envoy Gateway): whom a new one replaces, who stays in its place, and
//! where none is left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_policies::{
    Difference, EffectivePolicy, Finding, Level, NodeKey, OutputKey, Path, Policy, PolicyId, Scope, limits,
};

use crate::policies::generic::Precedence;
use crate::policies::linked::LinkedObjects;

/// The sentences about the targets that a policy did not have before. One that `merges` replaces nothing from a route.
pub(super) fn replaced_whole(linked: &LinkedObjects, policy: &Policy, merges: bool) -> Vec<String> {
    let PolicyId { kind, .. } = &policy.id;
    if linked.kinds.precedence(kind) != Some(Precedence::MostSpecific) || policy.block.is_none() {
        return Vec::new();
    }
    let index = &linked.index;
    let known = index.policy(&policy.id).map(|own| own.targets.as_slice()).unwrap_or_default();
    let winner = |node: &NodeKey| index.direct(kind, node)?.policies.first();
    let (mut replaced, mut replacing) = (BTreeMap::new(), BTreeMap::new());
    // An older policy on the target is a conflict, which is said already.
    for target in policy.targets.iter().filter(|own| !known.contains(own) && winner(own).is_none()) {
        let is_merged = merges && matches!(target.level(), Level::Route | Level::Rule);
        for path in index.paths_through(target).take(limits::DIFFERENCE) {
            let mut nodes: Vec<&NodeKey> = path.nodes().collect();
            nodes.reverse();
            let Some(place) = nodes.iter().position(|node| *node == target) else { continue };
            let (below, above) = nodes.split_at(place);
            let find = |nodes: &[&NodeKey]| nodes.iter().find_map(|node| winner(node));
            match (find(below), find(above)) {
                (Some(below), _) => *replacing.entry(below).or_insert(0) += 1,
                (None, Some(above)) if !is_merged => *replaced.entry(above).or_insert(0) += 1,
                (None, _) => {}
            }
        }
    }
    let on = |paths: usize| if paths == 1 { "1 path".to_owned() } else { format!("{paths} paths") };
    let whole = |one: &PolicyId, other: &PolicyId, paths: usize| {
        format!("{} replaces {other} whole on {}", one.qualified_name(), on(paths))
    };
    let replaced = replaced.into_iter().map(|(other, paths)| whole(&policy.id, other, paths));
    replaced.chain(replacing.into_iter().map(|(other, paths)| whole(other, &policy.id, paths))).collect()
}

/// The paths that stay and lose their last policy of a kind.
pub(super) fn opened(linked: &LinkedObjects, difference: &Difference) -> Vec<Finding> {
    let index = &linked.index;
    let acts = |own: Option<&EffectivePolicy>| own.is_some_and(|own| !own.rules.is_empty());
    let mut opened: BTreeMap<&Arc<str>, BTreeSet<&Arc<Path>>> = BTreeMap::new();
    for (OutputKey { kind, scope }, output) in &difference.outputs {
        let Scope::Target(target) = scope else { continue };
        let is_lost = acts(output.before.as_deref()) && !acts(output.after.as_deref());
        if !is_lost || linked.kinds.precedence(kind) != Some(Precedence::MostSpecific) {
            continue;
        }
        let acts_after = |node: &NodeKey| {
            let key = OutputKey { kind: kind.clone(), scope: Scope::Target(node.clone()) };
            let changed = difference.outputs.get(&key);
            acts(changed.map_or_else(|| index.direct(kind, node), |own| own.after.as_deref()))
        };
        let stays = |path: &&Arc<Path>| !difference.routes.contains_key(&path.route);
        let bare = index.paths_through(target).filter(stays).filter(|path| !path.nodes().any(acts_after));
        opened.entry(kind).or_default().extend(bare);
    }
    let finding = |(kind, paths): (&Arc<str>, BTreeSet<&Arc<Path>>)| {
        let example = Arc::clone(paths.first()?);
        Some(Finding::Opened { kind: kind.clone(), paths: paths.len(), example })
    };
    opened.into_iter().filter_map(finding).collect()
}
