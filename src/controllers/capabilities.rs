//! The declared capabilities: adding one takes an entry here and its controller.

use interlock_core::api::kong;
use interlock_core::api::meta;
use interlock_core::api::watched::{FLAVOR_SOURCES, GUARDED_DEPLOYMENTS, GUARDED_SERVICES, Labelled};

use crate::cluster::supervisor::{Capability, CapabilityKind};

/// Plans of Instances, and the rules of admission about them.
pub const INSTANCES: &str = "instances";
/// Inventory of routes, which the rules about the flavors of gateways need.
pub const ROUTES: &str = "routes";

/// Gateways, their ingress controllers and the sources of their flavors, for admission.
pub const FLAVORS: &str = "flavors";

/// The settings: the object that enables the others. It cannot itself be switched off.
pub const SETTINGS: &str = "settings";

/// Interlock is not ready without these.
pub const ESSENTIAL: &[&str] = &[INSTANCES];

/// Names of the capabilities that the settings configure.
pub fn settable() -> Vec<&'static str> {
    CAPABILITIES.iter().map(|capability| capability.name).filter(|name| *name != SETTINGS).collect()
}

/// Every capability.
///
/// A capability without a controller fills the topology and does nothing else.
pub const CAPABILITIES: &[Capability] = &[
    Capability {
        name: INSTANCES,
        required: &[
            custom("kudo.dev", "Instance", "instances", &["v1beta1"]),
            custom("kudo.dev", "OperatorVersion", "operatorversions", &["v1beta1"]),
            CapabilityKind {
                group: "",
                kind: "Namespace",
                plural: "namespaces",
                versions: &["v1"],
                namespaced: false,
                built_in: true,
                labelled: None,
            },
        ],
        optional: &[],
        finalizes: Some("Instance"),
        answers: true,
    },
    Capability {
        name: SETTINGS,
        required: &[CapabilityKind {
            namespaced: false,
            ..custom(meta::INTERLOCK_GROUP, "Interlock", "interlocks", &["v1alpha1"])
        }],
        optional: &[],
        finalizes: None,
        answers: true,
    },
    Capability {
        name: ROUTES,
        required: &[],
        optional: &[
            custom("gateway.networking.k8s.io", "HTTPRoute", "httproutes", &["v1"]),
            custom("gateway.networking.k8s.io", "GRPCRoute", "grpcroutes", &["v1"]),
            custom("gateway.networking.k8s.io", "TLSRoute", "tlsroutes", &["v1", "v1alpha3", "v1alpha2"]),
            custom("gateway.networking.k8s.io", "Gateway", "gateways", &["v1"]),
            CapabilityKind {
                namespaced: false,
                ..custom("gateway.networking.k8s.io", "GatewayClass", "gatewayclasses", &["v1"])
            },
            CapabilityKind { built_in: true, ..custom("networking.k8s.io", "Ingress", "ingresses", &["v1"]) },
        ],
        finalizes: None,
        answers: true,
    },
    Capability {
        name: FLAVORS,
        required: &[],
        optional: &[
            custom(kong::GROUP, "DataPlane", "dataplanes", &[kong::VERSION]),
            custom(kong::GROUP, "ControlPlane", "controlplanes", &["v2beta1", "v1beta1"]),
            labelled(&GUARDED_DEPLOYMENTS, "deployments"),
            labelled(&GUARDED_SERVICES, "services"),
            labelled(&FLAVOR_SOURCES, "configmaps"),
        ],
        finalizes: None,
        answers: true,
    },
];

const fn labelled(objects: &'static Labelled, plural: &'static str) -> CapabilityKind {
    CapabilityKind {
        built_in: true,
        labelled: Some(objects),
        ..custom(objects.group, objects.kind, plural, &["v1"])
    }
}

const fn custom(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    versions: &'static [&'static str],
) -> CapabilityKind {
    CapabilityKind { group, kind, plural, versions, namespaced: true, built_in: false, labelled: None }
}

#[cfg(test)]
mod tests {
    use interlock_core::kinds::DECLARED;
    use interlock_core::topology::KindName;

    use super::*;

    fn kinds(of: &Capability) -> impl Iterator<Item = &CapabilityKind> {
        of.required.iter().chain(of.optional)
    }

    #[test]
    fn the_table_of_events_has_every_kind_that_is_watched() {
        for kind in CAPABILITIES.iter().flat_map(kinds) {
            let name = KindName::new(kind.group, kind.labelled.map_or(kind.kind, |objects| objects.name));
            assert!(DECLARED.iter().any(|declared| declared.name == name), "{name} is not declared");
        }
    }

    #[test]
    fn the_page_about_settings_names_every_capability_and_what_it_reads() {
        let page = include_str!("../../docs/interlock-resource.md");
        for capability in CAPABILITIES.iter().filter(|capability| capability.name != SETTINGS) {
            // A group of rules may have the same name.
            let start = format!("| `{}` |", capability.name);
            let mut rows = page.lines().filter(|line| line.starts_with(&start));
            let whole = |row: &str| kinds(capability).all(|kind| row.contains(kind.kind));
            assert!(rows.any(whole), "no row of {} and all that it reads", capability.name);
            let (first, rest) = capability.name.split_at(1);
            let condition = format!("`{}{rest}Ready`", first.to_ascii_uppercase());
            assert!(page.contains(&condition), "no {condition}");
        }
    }
}
