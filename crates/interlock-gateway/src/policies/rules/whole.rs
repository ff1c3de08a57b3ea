//! Policies of which the most specific acts whole (Envoy Gateway): whom a new one replaces, and who stays in its place.

use std::collections::BTreeMap;

use gateway_policies::{Level, NodeKey, Policy, PolicyId, limits};

use crate::policies::attachments::LinkedObjects;
use crate::policies::generic::Precedence;

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
