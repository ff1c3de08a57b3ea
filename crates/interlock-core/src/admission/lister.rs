//! Facts about other objects that rules may read, from a cache.
//!
//! A decision about one object alone never uses the lister (`object` and `oldObject` make it
//! independent of stale caches).

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::api::interlock::Actions;
use crate::api::rule::Rule;

/// The cache, as admission sees it: settings, the state of the cache, and the listers of the kinds.
pub trait Lister {
    /// The actions of the rules in a namespace; they deny if its labels are unknown.
    fn actions(&self, namespace: &str) -> Actions;

    /// The Override, by name, that admits what a rule denies: of the object of that uid, and at that time.
    /// `user` is the one who writes; `None` for one that is of any user.
    fn overridden(&self, _: Overridden<'_>) -> Option<String> {
        None
    }

    /// How much of the objects of a capability the cache has.
    fn cache(&self, _capability: &str) -> CacheState {
        CacheState::Synced
    }

    /// The listers of the kinds.
    fn kinds(&self) -> &KindListers;
}

/// Runs a decision that may take long beside those of other kinds.
pub trait Aside: Send + Sync {
    /// Runs it to its end.
    fn run(&self, decision: &mut dyn FnMut());
}

/// What an Override may admit.
#[derive(Clone, Copy, Debug)]
pub struct Overridden<'a> {
    /// Uid of the object.
    pub uid: &'a str,
    /// The rule.
    pub rule: Rule,
    /// Who writes; `None` where that is not known, as the write was made before.
    pub user: Option<&'a str>,
    /// When.
    pub now: Timestamp,
}

/// The listers of the kinds, by the trait that a kind's folder declares for what its rules ask.
#[derive(Clone, Default)]
pub struct KindListers(Vec<(TypeId, Arc<dyn Any + Send + Sync>)>);

impl fmt::Debug for KindListers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KindListers({})", self.0.len())
    }
}

impl KindListers {
    /// Adds the lister that answers the questions of `T`, a trait object such as `dyn PackageLister`.
    #[must_use]
    pub fn with<T: ?Sized + Send + Sync + 'static>(mut self, lister: Arc<T>) -> Self {
        self.0.push((TypeId::of::<T>(), Arc::new(lister)));
        self
    }

    /// The lister of a kind, where the cache has one.
    pub fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Option<&T> {
        let (_, lister) = self.0.iter().find(|(id, _)| *id == TypeId::of::<T>())?;
        lister.downcast_ref::<Arc<T>>().map(AsRef::as_ref)
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

#[cfg(test)]
mod tests {
    use super::*;

    trait Colors: Send + Sync {
        fn color(&self) -> &'static str;
    }

    trait Shapes: Send + Sync {}

    struct Red;

    impl Colors for Red {
        fn color(&self) -> &'static str {
            "red"
        }
    }

    #[test]
    fn a_lister_is_found_by_its_trait() {
        let listers = KindListers::default().with::<dyn Colors>(Arc::new(Red));
        assert_eq!(listers.get::<dyn Colors>().map(Colors::color), Some("red"));
        assert!(listers.get::<dyn Shapes>().is_none());
    }
}
