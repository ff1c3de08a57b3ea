//! The rules about sources of router flavors.

use interlock_core::api::rule::rules;

rules! {
    /// A ConfigMap or Secret changes the flavor of gateways.
    FLAVOR_SOURCE = "RF18" in Flavors;
}
