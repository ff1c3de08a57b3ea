//! The capabilities, from the kinds that name them.

use std::sync::LazyLock;

use interlock_core::kinds::descriptor::{Capability, Watch};
use interlock_core::kinds::{Kind, Kinds, capabilities};

use crate::cluster::supervisor::{CapabilityKind, CapabilityKinds};

/// Plans of Instances, and the rules of admission about them.
pub const INSTANCES: &str = capabilities::INSTANCES.name;
/// Inventory of routes, which the rules about the flavors of gateways need.
pub const ROUTES: &str = capabilities::ROUTES.name;
/// Gateways, their ingress controllers and the sources of their flavors, for admission.
pub const FLAVORS: &str = capabilities::FLAVORS.name;
/// Which policies are attached to which Gateways and routes, for admission.
pub const ATTACHMENTS: &str = capabilities::ATTACHMENTS.name;
/// DataPlanes, which Interlock carries out.
pub const DATA_PLANES: &str = capabilities::DATA_PLANES.name;
/// RateLimitPolicies, which Interlock carries out.
pub const POLICIES: &str = capabilities::POLICIES.name;
/// The settings: the object that enables the others. It cannot itself be switched off.
pub const SETTINGS: &str = capabilities::SETTINGS.name;

/// Interlock is not ready without these.
pub const ESSENTIAL: &[&str] = &[INSTANCES];

/// The capabilities of Interlock's own kinds.
pub static CAPABILITIES: LazyLock<Vec<CapabilityKinds>> = LazyLock::new(|| of(crate::kinds::all()));

/// The capabilities of these kinds, in the order in which the kinds name them.
///
/// A capability without a controller fills the topology and does nothing else.
pub fn of(kinds: Kinds) -> Vec<CapabilityKinds> {
    let mut all: Vec<CapabilityKinds> = Vec::new();
    for kind in kinds {
        for watch in watches(kind) {
            let of = kinds_of(&mut all, watch.capability);
            let of = if watch.required { &mut of.required } else { &mut of.optional };
            let (resource, labelled, status_fields) = (kind.resource, watch.labelled, watch.status_fields);
            let managed_fields = watch.kept.is_some_and(|kept| kept.managed_fields);
            of.push(CapabilityKind { resource, labelled, status_fields, managed_fields });
        }
    }
    all
}

/// The watch of a kind, the same for the further capabilities that read it, and for that of its reconciler, which needs the
/// kind where it is none of them.
fn watches(kind: &Kind) -> impl Iterator<Item = Watch> {
    let of_reconciler = kind.watch.zip(kind.reconciler).map(|(watch, reconciler)| Watch {
        capability: reconciler.capability,
        required: true,
        ..watch
    });
    let is_declared = |capability: &Capability| {
        let declared =
            kind.watch.iter().flat_map(|watch| watch.also.iter().copied().chain([watch.capability]));
        declared.into_iter().any(|own| own.name == capability.name)
    };
    let other = of_reconciler.filter(|watch| !is_declared(watch.capability));
    let also = kind.watch.into_iter().flat_map(|watch| {
        watch.also.iter().copied().map(move |capability| Watch { capability, required: false, ..watch })
    });
    kind.watch.into_iter().chain(also).chain(other)
}

fn kinds_of<'a>(all: &'a mut Vec<CapabilityKinds>, declared: &'static Capability) -> &'a mut CapabilityKinds {
    let known = all.iter().position(|known| known.declared.name == declared.name);
    let at = known.unwrap_or_else(|| {
        all.push(CapabilityKinds { declared, required: Vec::new(), optional: Vec::new() });
        all.len() - 1
    });
    &mut all[at]
}

/// Names of the capabilities that the settings configure.
pub fn settable(capabilities: &[CapabilityKinds]) -> Vec<&'static str> {
    capabilities.iter().map(|of| of.declared).filter(|of| of.can_be_set).map(|of| of.name).collect()
}

#[cfg(test)]
mod tests {
    use interlock_core::api::resource::Resource;
    use interlock_core::kinds;
    use interlock_core::kinds::capabilities::{DATA_PLANES, FLAVORS};
    use interlock_core::reconcile::{ReconcileStep, Reconciler};
    use interlock_core::topology::KindName;
    use rstest::rstest;

    use super::*;

    /// `CAPABILITY:required` or `CAPABILITY:optional` of each watch.
    fn watched(watch: Watch, capability: &'static Capability) -> Vec<String> {
        let reconciler =
            Reconciler { name: "gadget", capability, reconcile: |_| Ok(ReconcileStep::Await(None)) };
        let resource = Resource::custom("example.com", &["v1"], "Gadget", "gadgets");
        let kind = Kind {
            watch: Some(watch),
            reconciler: Some(Box::leak(Box::new(reconciler))),
            ..Kind::new(resource)
        };
        let all = of(Vec::leak(vec![Box::leak(Box::new(kind)) as &Kind]));
        let required = |of: &CapabilityKinds| if of.required.is_empty() { "optional" } else { "required" };
        all.iter().map(|of| format!("{}:{}", of.declared.name, required(of))).collect()
    }

    #[rstest]
    #[case::same(Watch::optional(&FLAVORS), &FLAVORS, &["flavors:optional"])]
    #[case::needed_by_the_same(Watch::required(&FLAVORS), &FLAVORS, &["flavors:required"])]
    #[case::another(Watch::optional(&FLAVORS), &DATA_PLANES, &["flavors:optional", "dataplanes:required"])]
    #[case::another_that_can_do_without(
        Watch::optional(&FLAVORS).also(&[&DATA_PLANES]),
        &DATA_PLANES,
        &["flavors:optional", "dataplanes:optional"]
    )]
    fn the_capability_of_a_reconciler_needs_its_kind(
        #[case] watch: Watch,
        #[case] capability: &'static Capability,
        #[case] expected: &[&str],
    ) {
        assert_eq!(watched(watch, capability), expected);
    }

    #[test]
    fn the_table_of_events_has_every_kind_that_is_watched() {
        for kind in CAPABILITIES.iter().flat_map(CapabilityKinds::all) {
            let name = KindName::new(kind.group, kind.labelled.map_or(kind.kind, |objects| objects.name));
            assert!(
                kinds::schemas(crate::kinds::all()).iter().any(|declared| declared.name == name),
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
