//! What rules may know beyond the review: cross-object facts, from a cache.
//!
//! A decision about one object alone never asks the view (it is race-free from `object` and
//! `oldObject`); what the view tells is eventually consistent and checked again by the
//! reconciler.

use std::sync::Arc;

use crate::api::interlock::Actions;
use crate::api::object::NamespacedName;
use crate::plan::package::Package;
use crate::rollout::flavor::group::Group;
use crate::rollout::flavor::routes::Inventory;
use crate::rollout::flavor::sources::{Nothing, Sources};
use crate::rollout::flavor::subject::Subject;

/// Cross-object facts.
pub trait View {
    /// The OperatorVersion, when the cache shows it.
    fn operator_version(&self, key: &NamespacedName) -> Option<Arc<Package>>;

    /// The Instances that refer to an OperatorVersion.
    fn users_of(&self, operator_version: &NamespacedName) -> Users;

    /// Whether the namespace is being terminated.
    fn namespace_terminating(&self, namespace: &str) -> bool;

    /// What the rules do in a namespace; they deny where its labels are not known.
    fn actions(&self, namespace: &str) -> Actions;

    /// How much can be said with it now.
    fn standing(&self) -> Standing {
        Standing::Whole
    }

    /// What is known around a gateway; nothing, where no cache holds such objects.
    fn around(&self, _gateway: &Subject) -> Around<'_> {
        Around { sources: &Nothing, routes: Inventory::Unseen, group: None }
    }
}

/// How much of the cluster is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// All that rules ask for.
    #[default]
    Whole,
    /// Other objects may be out of date or missing: rules that look at them only warn, and this
    /// is said beside it.
    ObjectAlone(String),
    /// Nothing is judged, and this is said.
    Nothing(String),
}

/// What is known around a gateway.
pub struct Around<'a> {
    /// ConfigMaps and Secrets.
    pub sources: &'a dyn Sources,
    /// The routes that exist.
    pub routes: Inventory,
    /// Who shares its configuration producer.
    pub group: Option<Group>,
}

/// Instances that refer to an OperatorVersion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Users {
    /// How many there are.
    pub total: usize,
    /// Those that are locked: Instance and the plan that holds the lock, in order of name.
    pub locked: Vec<(NamespacedName, String)>,
}
