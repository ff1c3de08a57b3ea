//! Whether what people ask of a run was asked under the policy that says who may.
//!
//! A request is an annotation: without `interlock-verbs` anybody who may edit an Instance writes one. So
//! it counts only where policy and binding have been in force, unchanged, since before it was written.
//! Their uids and generations name that state (a [`PolicyState::revision`]). When a revision is seen for
//! the first time, every request that is there, or that comes while the API servers may not enforce it
//! yet ([`super::enforcement`]), is dropped; then the revision is recorded, so that a process that starts later knows
//! that what it finds was written under it.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use interlock_core::api::meta;
use interlock_core::api::object::{NamespacedName, annotation, meta_str};
use tokio::sync::watch;

use super::subject::Subject;
use crate::cluster::guard::{Guard, PolicyState};

/// Why a request is dropped.
pub(super) const UNGUARDED: &str = "it was written while the policy interlock-verbs was absent, edited or not yet in force, \
     so that nobody asked whether its author has the verb; ask again";

/// What is known of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing yet: it waits.
    Unknown,
    /// Its policy does not guard now, and why: it waits, to be dropped.
    Unavailable(String),
    /// Its policy may not have guarded when it was written.
    Unguarded,
    /// Its author was asked about.
    Guarded,
}

/// One request: namespace and name of the Instance, its uid, and the annotation.
pub(super) type Request = (NamespacedName, String, String);

/// How far a revision is known to be enforced.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// The record was not read yet.
    #[default]
    Unread,
    /// The API servers may not enforce it yet.
    Settling,
    /// It is enforced; these were there before.
    Enforced(BTreeSet<Request>),
}

/// What is known of the policy's present revision.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) revision: String,
    pub(super) phase: Phase,
    pub(super) recorded: bool,
}

impl State {
    /// What is known of a request while the policy stands so.
    fn standing(&self, policy: &PolicyState, request: &Request) -> Standing {
        match (&policy.guard, &self.phase) {
            (Guard::Broken(why), _) => Standing::Unavailable(why.clone()),
            (Guard::Unknown, _) => Standing::Unknown,
            (Guard::Intact, _) if policy.revision != self.revision => Standing::Unknown,
            (Guard::Intact, Phase::Unread) => Standing::Unknown,
            (Guard::Intact, Phase::Settling) => Standing::Unguarded,
            (Guard::Intact, Phase::Enforced(before)) if before.contains(request) => Standing::Unguarded,
            (Guard::Intact, Phase::Enforced(_)) => Standing::Guarded,
        }
    }

    /// Goes on with a revision; what is known of another one does not count.
    pub(super) fn enter(&mut self, revision: &str) {
        if self.revision != revision {
            *self = Self { revision: revision.to_owned(), ..Self::default() };
        }
    }
}

/// The requests of all Instances.
pub struct Requests {
    pub(super) policy: watch::Receiver<PolicyState>,
    state: Mutex<State>,
}

impl Requests {
    /// `policy` tells how `interlock-verbs` and its binding stand.
    pub fn new(policy: watch::Receiver<PolicyState>) -> Self {
        Self { policy, state: Mutex::default() }
    }

    /// What is known of the request of an Instance; `None` without one.
    pub(super) fn standing(&self, subject: &Subject) -> Option<Standing> {
        let request = request(&subject.key, &subject.object)?;
        Some(self.state().standing(&self.policy.borrow(), &request))
    }

    /// Whether the request of an Instance may be carried out.
    pub(super) fn guarded(&self, subject: &Subject) -> bool {
        self.standing(subject) == Some(Standing::Guarded)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The request on an Instance; `None` without one.
pub(super) fn request(key: &NamespacedName, object: &serde_json::Value) -> Option<Request> {
    let text = annotation(object, meta::REQUEST).filter(|text| !text.is_empty())?;
    Some((key.clone(), meta_str(object, "uid").unwrap_or_default().to_owned(), text.to_owned()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn of(text: &str) -> Request {
        (NamespacedName::new("ns", "demo"), "u".to_owned(), text.to_owned())
    }

    fn enforced(before: &[&str]) -> Phase {
        Phase::Enforced(before.iter().map(|text| of(text)).collect())
    }

    fn policy(guard: Guard, revision: &str) -> PolicyState {
        PolicyState { guard, revision: revision.to_owned() }
    }

    #[rstest]
    #[case::nobody_has_looked(policy(Guard::Unknown, ""), enforced(&[]), Standing::Unknown)]
    #[case::absent(policy(Guard::Broken("gone".to_owned()), ""), enforced(&[]), Standing::Unavailable("gone".to_owned()))]
    #[case::not_known_whether_it_was_there(policy(Guard::Intact, "r1"), Phase::Unread, Standing::Unknown)]
    #[case::perhaps_not_in_force(policy(Guard::Intact, "r1"), Phase::Settling, Standing::Unguarded)]
    #[case::was_there_before(policy(Guard::Intact, "r1"), enforced(&["abort/r/nonce-01"]), Standing::Unguarded)]
    #[case::came_after(policy(Guard::Intact, "r1"), enforced(&["abort/r/nonce-02"]), Standing::Guarded)]
    #[case::replaced(policy(Guard::Intact, "r2"), enforced(&[]), Standing::Unknown)]
    fn table(#[case] policy: PolicyState, #[case] phase: Phase, #[case] expected: Standing) {
        let state = State { revision: "r1".to_owned(), phase, recorded: false };
        assert_eq!(state.standing(&policy, &of("abort/r/nonce-01")), expected);
    }

    #[test]
    fn what_is_known_of_one_revision_says_nothing_of_another() {
        let mut state = State { revision: "r1".to_owned(), phase: enforced(&[]), recorded: true };
        state.enter("r1");
        assert_eq!(state.phase, enforced(&[]));
        state.enter("r2");
        assert_eq!((state.phase, state.recorded), (Phase::Unread, false));
    }
}
