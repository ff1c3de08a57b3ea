//! What rules may know beyond the review: cross-object facts, from a cache.
//!
//! A decision about one object alone never asks the view (it is race-free from `object` and
//! `oldObject`); what the view tells is eventually consistent and checked again by the
//! reconciler.

use std::sync::Arc;

use crate::api::interlock::Actions;
use crate::api::object::NamespacedName;
use crate::api::stamp::SpecHash;
use crate::plan::package::Package;
use crate::rollout::flavor::known::{Around, Fed};
use crate::rollout::flavor::sources::FlavorSource;
use crate::rollout::flavor::subject::GatewayRef;

/// Cross-object facts.
pub trait Lister {
    /// The OperatorVersion, when the cache shows it.
    fn operator_version(&self, key: &NamespacedName) -> Option<Arc<Package>>;

    /// Why an OperatorVersion that is there is not used, for people.
    fn left_out(&self, _operator_version: &NamespacedName) -> Option<String> {
        None
    }

    /// The Instances that refer to an OperatorVersion.
    fn users_of(&self, operator_version: &NamespacedName) -> PackageUsers;

    /// Whether the namespace is being terminated.
    fn namespace_terminating(&self, namespace: &str) -> bool;

    /// What the rules do in a namespace; they deny where its labels are not known.
    fn actions(&self, namespace: &str) -> Actions;

    /// Whether the policy is in force that says who may override a rule about flavors; why not.
    fn overrides_guarded(&self) -> Result<(), String> {
        Ok(())
    }

    /// How much of the cluster it holds now.
    fn cache(&self) -> CacheState {
        CacheState::Synced
    }

    /// What is known around a gateway; nothing, where no cache holds such objects.
    fn around(&self, _gateway: &GatewayRef) -> Around {
        Around::default()
    }

    /// The spec of that hash that a DataPlane's stamp refers to, as canonical JSON, where the
    /// ControllerRevisions that keep it are known.
    fn live_spec(&self, _data_plane: &NamespacedName, _uid: &str, _hash: &SpecHash) -> Option<String> {
        None
    }

    /// The gateways whose flavor may come from a ConfigMap or Secret, as far as they are read.
    fn fed_by(&self, _source: &FlavorSource) -> Vec<Fed> {
        Vec::new()
    }
}

/// How much of the cluster is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CacheState {
    /// All that rules ask for.
    #[default]
    Synced,
    /// Other objects may be out of date or missing: rules that look at them only warn, with this
    /// reason beside it. The object is completed as ever.
    Partial(String),
    /// No rule is enforced, with this reason as a warning. Nothing is scheduled, as nothing would
    /// carry it out; what is Interlock's own is restored.
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
