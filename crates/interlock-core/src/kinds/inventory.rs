//! What a domain keeps of its objects beside the rows of the graph.

use std::any::Any;
use std::sync::Arc;

use serde_json::Value;

use crate::admission::lister::KindListers;
use crate::api::object::NamespacedName;
use crate::topology::{GroupKind, KindName};

/// The objects of a domain, as far as its rules and its page read them.
pub trait Inventory: Any + Send + Sync {
    /// Takes in an object that exists.
    fn take(&mut self, object: &Value);

    /// Removes a deleted object; `kind` is its name in the topology.
    fn drop(&mut self, kind: &str, name: &NamespacedName);

    /// Forgets the objects of a kind, which may exist.
    fn forget(&mut self, kind: &str);

    /// Names whom its changes affect from now on, where it is not the object itself.
    fn follow(&mut self, _affected: Affected) {}

    /// Adds what rules ask of it without the cache, where there is any: it follows the inventory.
    fn listers(&self, listers: KindListers) -> KindListers {
        listers
    }
}

/// Takes the objects that a change affects: kind and name. It must not ask the inventory.
pub type Affected = Arc<dyn Fn(KindName, NamespacedName) + Send + Sync>;

/// Of which kinds a cache has all objects.
pub trait ReadKinds: Send + Sync {
    /// Whether it has those of a kind in a namespace; an empty one is that of objects without any. What it lacks of
    /// others is unknown, not absent.
    fn is_read(&self, group: &str, kind: &str, namespace: &str) -> bool;

    /// Whether no namespace is left out.
    fn is_of_all_namespaces(&self) -> bool {
        true
    }

    /// Whether no definition serves a kind, so that it has no objects.
    fn is_absent(&self, _group: &str, _kind: &str) -> bool {
        false
    }
}

/// The empty inventory of a domain, and the capabilities that read the kinds that it is of; one kind of a domain has it
/// for all.
#[derive(Clone, Copy, Debug)]
pub struct DomainInventory {
    /// Makes it.
    pub empty: fn() -> Box<dyn Inventory>,
    /// By name.
    pub capabilities: &'static [&'static str],
    /// Whether controllers follow its changes; else only rules read it.
    pub is_followed: bool,
    /// Whether it takes in the settings too.
    pub reads_settings: bool,
}

struct Filled {
    inventory: Box<dyn Inventory>,
    of: Vec<KindName>,
    is_followed: bool,
}

/// The inventories of the domains.
pub struct Inventories(Vec<Filled>);

impl Inventories {
    /// Empty ones, each of these kinds of the topology.
    pub fn new(all: impl IntoIterator<Item = (DomainInventory, Vec<KindName>)>) -> Self {
        let filled = |(domain, of): (DomainInventory, Vec<KindName>)| Filled {
            inventory: (domain.empty)(),
            of,
            is_followed: domain.is_followed,
        };
        Self(all.into_iter().map(filled).collect())
    }

    /// The inventory of a domain, by its type.
    pub fn get<T: Inventory>(&self) -> Option<&T> {
        self.0.iter().find_map(|filled| (&*filled.inventory as &dyn Any).downcast_ref())
    }

    /// The same, to be changed.
    pub fn get_mut<T: Inventory>(&mut self) -> Option<&mut T> {
        self.0.iter_mut().find_map(|filled| (&mut *filled.inventory as &mut dyn Any).downcast_mut())
    }

    /// Names whom changes affect from now on.
    pub fn follow(&mut self, affected: &Affected) {
        self.0.iter_mut().for_each(|filled| filled.inventory.follow(affected.clone()));
    }

    /// Adds what rules ask of them.
    pub fn listers(&self, listers: KindListers) -> KindListers {
        self.0.iter().fold(listers, |listers, filled| filled.inventory.listers(listers))
    }

    /// Whether one that controllers follow is of a kind of the topology.
    pub fn are_followed(&self, kind: &GroupKind) -> bool {
        self.0.iter().any(|filled| filled.is_followed && filled.of.iter().any(|name| kind == name))
    }

    /// Those that are of a kind of the topology.
    pub fn of(&mut self, kind: &GroupKind) -> impl Iterator<Item = &mut (dyn Inventory + 'static)> {
        let filled = self.0.iter_mut().filter(move |filled| filled.of.iter().any(|name| kind == name));
        filled.map(|filled| &mut *filled.inventory)
    }
}
