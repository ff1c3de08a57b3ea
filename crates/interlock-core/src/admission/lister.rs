//! Facts about other objects that rules may read, from a cache.
//!
//! A decision about one object alone never uses the lister (`object` and `oldObject` make it
//! race-free); the lister is eventually consistent, and the reconciler checks its facts again.

use std::sync::Arc;

use crate::api::interlock::Actions;
use crate::api::object::NamespacedName;
use crate::api::stamp::SpecHash;
use crate::kinds::data_plane::flavor::gateway_ref::GatewayRef;
use crate::kinds::data_plane::flavor::inventory::{FlavorDependent, GatewayContext};
use crate::kinds::data_plane::flavor::sources::FlavorSource;
use crate::package::Package;

/// Facts about other objects.
pub trait Lister {
    /// The OperatorVersion, if the cache has it.
    fn operator_version(&self, key: &NamespacedName) -> Option<Arc<Package>>;

    /// Why an existing OperatorVersion is not used, for people.
    fn left_out(&self, _operator_version: &NamespacedName) -> Option<String> {
        None
    }

    /// The Instances that refer to an OperatorVersion.
    fn users_of(&self, operator_version: &NamespacedName) -> PackageUsers;

    /// Whether the namespace is being terminated.
    fn namespace_terminating(&self, namespace: &str) -> bool;

    /// The actions of the rules in a namespace; they deny if its labels are unknown.
    fn actions(&self, namespace: &str) -> Actions;

    /// Whether the policy that checks overrides of flavor rules is in force; why not.
    fn overrides_guarded(&self) -> Result<(), String> {
        Ok(())
    }

    /// The state of the cache.
    fn cache(&self) -> CacheState {
        CacheState::Synced
    }

    /// The gateway context; empty if no cache has such objects.
    fn around(&self, _gateway: &GatewayRef) -> GatewayContext {
        GatewayContext::default()
    }

    /// The spec of that hash that a DataPlane's last-applied annotation refers to, as canonical JSON,
    /// if its ControllerRevision is known.
    fn live_spec(&self, _data_plane: &NamespacedName, _uid: &str, _hash: &SpecHash) -> Option<String> {
        None
    }

    /// The gateways whose flavor may come from a ConfigMap or Secret, as far as known.
    fn fed_by(&self, _source: &FlavorSource) -> Vec<FlavorDependent> {
        Vec::new()
    }
}

/// How much of the cluster the cache has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CacheState {
    /// Everything that rules read.
    #[default]
    Synced,
    /// Other objects may be out of date or missing: rules that read them only warn, with this reason
    /// beside it. The object is completed as usual.
    Partial(String),
    /// No rule is enforced, with this reason as a warning. Nothing is scheduled, as nothing would carry
    /// it out; the fields that Interlock owns are restored.
    Unavailable(String),
}

/// Instances that refer to an OperatorVersion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageUsers {
    /// How many there are.
    pub total: usize,
    /// Those that are locked: Instance and the plan that holds the lock, in order of name.
    pub locked: Vec<(NamespacedName, String)>,
}
