//! The capabilities, from the kinds that name them.

use std::sync::LazyLock;

use interlock_core::kinds::{self, Kinds, capabilities};

use crate::cluster::supervisor::{CapabilityKind, CapabilityKinds};

/// Plans of Instances, and the rules of admission about them.
pub const INSTANCES: &str = capabilities::INSTANCES.name;
/// Inventory of routes, which the rules about the flavors of gateways need.
pub const ROUTES: &str = capabilities::ROUTES.name;
/// Gateways, their ingress controllers and the sources of their flavors, for admission.
pub const FLAVORS: &str = capabilities::FLAVORS.name;
/// The settings: the object that enables the others. It cannot itself be switched off.
pub const SETTINGS: &str = capabilities::SETTINGS.name;

/// Interlock is not ready without these.
pub const ESSENTIAL: &[&str] = &[INSTANCES];

/// The capabilities of Interlock's own kinds.
pub static CAPABILITIES: LazyLock<Vec<CapabilityKinds>> = LazyLock::new(|| of(kinds::ALL));

/// The capabilities of these kinds, in the order in which the kinds name them.
///
/// A capability without a controller fills the topology and does nothing else.
pub fn of(kinds: Kinds) -> Vec<CapabilityKinds> {
    let mut all: Vec<CapabilityKinds> = Vec::new();
    for (resource, watch) in kinds.iter().filter_map(|kind| Some((kind.resource, kind.watch?))) {
        let known = all.iter().position(|known| known.declared.name == watch.capability.name);
        let at = known.unwrap_or_else(|| {
            all.push(CapabilityKinds {
                declared: watch.capability,
                required: Vec::new(),
                optional: Vec::new(),
            });
            all.len() - 1
        });
        let of = if watch.required { &mut all[at].required } else { &mut all[at].optional };
        of.push(CapabilityKind { resource, labelled: watch.labelled, status_fields: watch.status_fields });
    }
    all
}

/// Names of the capabilities that the settings configure.
pub fn settable(capabilities: &[CapabilityKinds]) -> Vec<&'static str> {
    capabilities.iter().map(|of| of.declared).filter(|of| of.can_be_set).map(|of| of.name).collect()
}

#[cfg(test)]
mod tests {
    use interlock_core::topology::KindName;

    use super::*;

    #[test]
    fn the_table_of_events_has_every_kind_that_is_watched() {
        for kind in CAPABILITIES.iter().flat_map(CapabilityKinds::all) {
            let name = KindName::new(kind.group, kind.labelled.map_or(kind.kind, |objects| objects.name));
            assert!(
                kinds::schemas(kinds::ALL).iter().any(|declared| declared.name == name),
                "{name} is not declared"
            );
        }
    }

    #[test]
    fn the_page_about_settings_names_every_capability_and_what_it_reads() {
        let page = include_str!("../../docs/interlock-resource.md");
        for capability in CAPABILITIES.iter().filter(|of| of.declared.can_be_set) {
            // A group of rules may have the same name.
            let start = format!("| `{}` |", capability.declared.name);
            let mut rows = page.lines().filter(|line| line.starts_with(&start));
            let whole = |row: &str| capability.all().all(|kind| row.contains(kind.kind));
            assert!(rows.any(whole), "no row of {} and all that it reads", capability.declared.name);
            let (first, rest) = capability.declared.name.split_at(1);
            let condition = format!("`{}{rest}Ready`", first.to_ascii_uppercase());
            assert!(page.contains(&condition), "no {condition}");
        }
    }
}
