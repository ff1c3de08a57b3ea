//! What rules ask about OperatorVersions.

use std::sync::Arc;

use interlock_core::admission::RuleContext;
use interlock_core::api::object::NamespacedName;

use crate::package::Package;

/// Most names of OperatorVersions that a lister lists.
pub const NAMES_LISTED: usize = 200;

/// The OperatorVersions, and the Instances that refer to them.
pub trait PackageLister: Send + Sync {
    /// The OperatorVersion, if the cache has it.
    fn operator_version(&self, key: &NamespacedName) -> Option<Arc<Package>>;

    /// Why the cache leaves out an existing OperatorVersion, for people.
    fn left_out(&self, _operator_version: &NamespacedName) -> Option<String> {
        None
    }

    /// Names of the OperatorVersions of a namespace that the cache has; the first
    /// [`NAMES_LISTED`] where there are more.
    fn names_in(&self, _namespace: &str) -> Vec<String> {
        Vec::new()
    }

    /// The Instances that refer to an OperatorVersion.
    fn users_of(&self, operator_version: &NamespacedName) -> PackageUsers;
}

/// Instances that refer to an OperatorVersion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackageUsers {
    /// How many there are.
    pub total: usize,
    /// Those that are locked: Instance and the plan that holds the lock, in order of name.
    pub locked: Vec<(NamespacedName, String)>,
}

/// No OperatorVersion is cached.
struct Unlisted;

impl PackageLister for Unlisted {
    fn operator_version(&self, _: &NamespacedName) -> Option<Arc<Package>> {
        None
    }

    fn users_of(&self, _: &NamespacedName) -> PackageUsers {
        PackageUsers::default()
    }
}

/// The OperatorVersions that a decision reads.
pub fn packages<'a>(context: &RuleContext<'a>) -> &'a dyn PackageLister {
    context.lister.kinds().get::<dyn PackageLister>().unwrap_or(&Unlisted)
}
