//! Facts about other objects that rules may read, from a cache.
//!
//! A decision about one object alone never uses the lister (`object` and `oldObject` make it
//! independent of stale caches).

use jiff::Timestamp;

use crate::api::interlock::Actions;
pub use crate::api::listers::KindListers;
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
