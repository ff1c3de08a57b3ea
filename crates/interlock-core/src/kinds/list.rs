//! The list of the kinds, one line each, and what is derived from it.

use std::sync::Arc;

use super::descriptor::{Kind, Watch};
use super::inventory::{DomainInventory, Inventories};
use super::names::{INTERLOCK, watched_as};
use super::{interlock, namespace, override_object};
use crate::admission::ids;
use crate::admission::kind::GuardedKind;
use crate::api::rule::Rule;
use crate::api::watched::Labelled;
use crate::topology::KindName;
use crate::topology::schema::DeclaredKind;

/// The kinds that a process knows.
pub type Kinds = &'static [&'static Kind];

/// The kinds that belong to no domain.
pub static KINDS: Kinds = &[&namespace::KIND, &interlock::KIND, &override_object::KIND];

/// The kinds whose requests the rules decide on.
pub fn guarded(kinds: Kinds) -> Arc<[&'static GuardedKind]> {
    kinds.iter().filter_map(|kind| kind.admission).collect()
}

/// The schemas of the topology.
pub fn schemas(kinds: Kinds) -> Vec<&'static DeclaredKind> {
    kinds.iter().filter_map(|kind| kind.schema).collect()
}

/// The rules: those about every kind, then those of each kind.
pub fn rules(kinds: Kinds) -> impl Iterator<Item = Rule> {
    ids::RULES.iter().chain(kinds.iter().flat_map(|kind| kind.rules)).copied()
}

/// The labelled objects that are watched apart from the others of their kind.
pub fn labelled(kinds: Kinds) -> impl Iterator<Item = &'static Labelled> {
    kinds.iter().filter_map(|kind| kind.watch.and_then(|watch| watch.labelled))
}

/// The kind under which the API server serves the objects of a declared kind.
pub fn served_as(kinds: Kinds, kind: KindName) -> KindName {
    let labelled = labelled(kinds).find(|objects| watched_as(objects) == kind);
    labelled.map_or(kind, |objects| KindName::new(objects.group, objects.kind))
}

/// The empty inventories of the domains.
pub fn inventories(kinds: Kinds) -> Inventories {
    let read_by = |domain: DomainInventory| {
        let read = kinds.iter().filter_map(|kind| Some((kind.watch.as_ref()?, kind.schema?)));
        let reads = |watch: &Watch| watch.readers().any(|of| domain.capabilities.contains(&of.name));
        let read = read.filter(|(watch, _)| reads(watch));
        let settings = domain.reads_settings.then_some(INTERLOCK);
        (domain, read.map(|(_, schema)| schema.name).chain(settings).collect())
    };
    Inventories::new(kinds.iter().filter_map(|kind| kind.inventory).map(read_by))
}

/// The name of a guarded kind, as a constant.
pub fn kind_name(kinds: Kinds, kind: &str) -> Option<&'static str> {
    let guarded = kinds.iter().filter_map(|kind| kind.admission);
    guarded.map(|guarded| guarded.resource.kind).find(|name| *name == kind)
}

/// The rules whose denial a later try may find lifted, as they wait for a plan, a deletion or an object.
pub fn transient_rules(kinds: Kinds) -> Vec<Rule> {
    rules(kinds).filter(|rule| rule.is_transient()).collect()
}
