//! The capabilities that the kinds belong to. A kind with a capability of its own declares it in its folder.

use super::descriptor::Capability;
use crate::api::interlock::Mode;

/// Plans of Instances, and the rules of admission about them. Interlock is not ready without it.
pub const INSTANCES: Capability = Capability {
    name: "instances",
    finalizes: Some("Instance"),
    answers: true,
    can_be_set: true,
    default_mode: Mode::Auto,
};

/// The settings: the object that enables the others.
pub const SETTINGS: Capability = Capability {
    name: "settings",
    finalizes: None,
    answers: true,
    can_be_set: false,
    default_mode: Mode::Auto,
};

/// Inventory of routes, which the rules about the flavors of gateways need.
pub const ROUTES: Capability =
    Capability { name: "routes", finalizes: None, answers: true, can_be_set: true, default_mode: Mode::Auto };

/// Gateways, their ingress controllers and the sources of their flavors, for admission.
pub const FLAVORS: Capability = Capability {
    name: "flavors",
    finalizes: None,
    answers: true,
    can_be_set: true,
    default_mode: Mode::Auto,
};

/// Which policies are attached to which Gateways and routes, for admission.
pub const ATTACHMENTS: Capability = Capability {
    name: "attachments",
    finalizes: None,
    answers: true,
    can_be_set: true,
    default_mode: Mode::Auto,
};

/// RateLimitPolicies, which Interlock carries out with Envoy Gateway. Kuadrant's operator may do the same in a cluster, so
/// an administrator switches it on.
pub const POLICIES: Capability = Capability {
    name: "policies",
    finalizes: None,
    answers: false,
    can_be_set: true,
    default_mode: Mode::Off,
};

/// DataPlanes and what belongs to them, for their rollouts. Kong's own operator may do the same in a cluster, so
/// an administrator switches it on.
pub const DATA_PLANES: Capability = Capability {
    name: "dataplanes",
    finalizes: None,
    answers: false,
    can_be_set: true,
    default_mode: Mode::Off,
};
