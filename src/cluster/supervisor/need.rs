//! Who needs a kind, at which versions, and how much of it.

use interlock_core::api::object::NamespacedName;
use interlock_core::api::watched::Labelled;

use crate::cluster::crds::{Absence, Usable};

/// A kind that something needs. There is one watch of it, whoever needs it and at whichever
/// versions: the API server gives the same objects at each, and what is known is of the kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Want {
    /// API group, empty for core.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// The labelled objects that alone are needed; `None` for all, or for what packages made.
    pub labelled: Option<&'static Labelled>,
}

/// Who needs a kind. Capabilities come first: they read what they need.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Needer {
    /// A capability, by name.
    Capability(&'static str),
    /// What a package makes: its OperatorVersion, while Instances refer to it.
    Package(NamespacedName),
    /// What one Instance was seen to make beyond that.
    Instance(NamespacedName),
}

/// What somebody needs of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Versions that will do, best first.
    pub versions: Vec<String>,
    /// Plural and scope that it must have, where that is known beforehand.
    pub shape: Option<Shape>,
    /// How much of it.
    pub reach: Reach,
}

/// What else a definition says of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Plural, as in the path.
    pub plural: &'static str,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

/// How much of a kind is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// All objects, not only those that packages made.
    pub all: bool,
    /// Whole objects, not only their metadata.
    pub whole: bool,
}

impl Reach {
    pub(super) fn and(self, other: Self) -> Self {
        Self { all: self.all || other.all, whole: self.whole || other.whole }
    }

    pub(super) fn covers(self, other: Self) -> bool {
        self.and(other) == self
    }
}

impl Need {
    /// Why a kind as it is served does not do; `None` where it does. Who reads whole objects can
    /// read them at its versions; the metadata are the same at each.
    pub(super) fn lack(&self, usable: &Usable) -> Option<Absence> {
        let does = |version: &String| match self.reach.whole {
            true => *version == usable.identity.version,
            false => usable.served.contains(version),
        };
        if !self.versions.iter().any(does) {
            return Some(not_served(&self.versions, &usable.served));
        }
        let fits = |shape: Shape| (shape.plural, shape.namespaced) == (&*usable.plural, usable.namespaced);
        (!self.shape.is_none_or(fits)).then_some(Absence::OtherScope)
    }
}

/// These versions are not among those that are served.
pub(super) fn not_served(wanted: &[String], served: &[String]) -> Absence {
    Absence::NotServed { wanted: wanted.to_vec(), served: served.to_vec() }
}
