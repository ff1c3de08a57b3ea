//! The capabilities that the kinds belong to. A kind with a capability of its own declares it in its folder.

use super::descriptor::Capability;

/// Plans of Instances, and the rules of admission about them. Interlock is not ready without it.
pub const INSTANCES: Capability =
    Capability { name: "instances", finalizes: Some("Instance"), answers: true, can_be_set: true };

/// The settings: the object that enables the others.
pub const SETTINGS: Capability =
    Capability { name: "settings", finalizes: None, answers: true, can_be_set: false };

/// Inventory of routes, which the rules about the flavors of gateways need.
pub const ROUTES: Capability =
    Capability { name: "routes", finalizes: None, answers: true, can_be_set: true };

/// Gateways, their ingress controllers and the sources of their flavors, for admission.
pub const FLAVORS: Capability =
    Capability { name: "flavors", finalizes: None, answers: true, can_be_set: true };
