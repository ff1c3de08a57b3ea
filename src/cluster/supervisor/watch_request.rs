//! Requests for watches: requesters, versions, and scope.

use interlock_core::api::object::NamespacedName;
use interlock_core::api::watched::Labelled;

use crate::cluster::crds::{Absence, Usable};

/// A requested kind. All requesters and versions share one watch: the API server serves the same objects at
/// each version, and the cache is by kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestedKind {
    /// API group, empty for core.
    pub group: String,
    pub kind: String,
    /// Only these labelled objects; `None` for all, or for those that packages made.
    pub labelled: Option<&'static Labelled>,
}

/// A requester of a kind. Capabilities sort first: they read the kinds they need.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KindRequester {
    /// A capability, by name.
    Capability(&'static str),
    /// The objects of a package: its OperatorVersion, while Instances refer to it.
    Package(NamespacedName),
    /// Further objects that one Instance has created.
    Instance(NamespacedName),
}

/// What a requester needs of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchRequest {
    /// Acceptable versions, best first.
    pub versions: Vec<String>,
    /// Required plural and scope, where they are known beforehand.
    pub names: Option<ResourceNames>,
    /// Which objects, and how much of them.
    pub scope: WatchScope,
}

/// Plural and scope of a kind, from its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceNames {
    /// Plural, as in the path.
    pub plural: &'static str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

/// Which objects of a kind, and how much of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchScope {
    /// All objects, not only those that packages made.
    pub all: bool,
    /// Whole objects, not only their metadata.
    pub whole: bool,
    /// Also `metadata.managedFields` of whole objects.
    pub managed_fields: bool,
}

impl WatchScope {
    pub(super) fn union(self, other: Self) -> Self {
        Self {
            all: self.all || other.all,
            whole: self.whole || other.whole,
            managed_fields: self.managed_fields || other.managed_fields,
        }
    }

    pub(super) fn covers(self, other: Self) -> bool {
        self.union(other) == self
    }
}

impl WatchRequest {
    /// Why the served kind does not satisfy the request; `None` where it does. A request for whole objects
    /// needs one of its versions; metadata is the same at each.
    pub(super) fn absence(&self, usable: &Usable) -> Option<Absence> {
        let does = |version: &String| match self.scope.whole {
            true => *version == usable.identity.version,
            false => usable.served.contains(version),
        };
        if !self.versions.iter().any(does) {
            return Some(not_served(&self.versions, &usable.served));
        }
        let fits =
            |names: ResourceNames| (names.plural, names.namespaced) == (&*usable.plural, usable.namespaced);
        (!self.names.is_none_or(fits)).then_some(Absence::OtherScope)
    }
}

/// None of these versions is served.
pub(super) fn not_served(wanted: &[String], served: &[String]) -> Absence {
    Absence::NotServed { wanted: wanted.to_vec(), served: served.to_vec() }
}
