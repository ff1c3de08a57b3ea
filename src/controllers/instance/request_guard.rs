//! Whether the policy was in force when a plan request was written.
//!
//! A request is an annotation: without `interlock-verbs` any user who may edit an Instance can write one.
//! So it counts only where policy and binding have been in force, unchanged, since before it was written.
//! Their uids and generations identify that state (a [`PolicyState::revision`]). At a new revision, the
//! controller drops every present request, and those that arrive while the API servers may not enforce it
//! yet ([`super::enforcement`]); then it records the revision, so that a process that starts later knows
//! that all requests were written under it.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use interlock_core::api::meta;
use interlock_core::api::object::{NamespacedName, annotation, meta_str};
use tokio::sync::watch;

use super::view::InstanceView;
use crate::cluster::tamper::{GuardState, PolicyState};

/// Why a request is dropped.
pub(super) const UNGUARDED: &str = "it was written while the policy interlock-verbs was absent, edited or not yet in force, \
     so that nobody asked whether its author has the verb; ask again";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RequestState {
    /// Not known yet: it waits.
    Unknown,
    /// Its policy is not intact, and why: it waits, to be dropped.
    Unavailable(String),
    /// Its policy may not have been in force when it was written.
    Unguarded,
    /// The API server has checked its author.
    Guarded,
}

/// One request: namespace and name of the Instance, its uid, and the annotation.
pub(super) type RequestKey = (NamespacedName, String, String);

/// How far enforcement of a revision is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum EnforcementPhase {
    /// The record was not read yet.
    #[default]
    Unread,
    /// The API servers may not enforce it yet.
    Settling,
    /// It is enforced; these requests came before.
    Enforced(BTreeSet<RequestKey>),
}

/// The present revision of the policy.
#[derive(Debug, Default)]
pub(super) struct RevisionState {
    pub(super) revision: String,
    pub(super) phase: EnforcementPhase,
    pub(super) recorded: bool,
}

impl RevisionState {
    /// The state of a request under this policy state.
    fn standing(&self, policy: &PolicyState, request: &RequestKey) -> RequestState {
        match (&policy.guard, &self.phase) {
            (GuardState::Broken(why), _) => RequestState::Unavailable(why.clone()),
            (GuardState::Unknown, _) => RequestState::Unknown,
            (GuardState::Intact, _) if policy.revision != self.revision => RequestState::Unknown,
            (GuardState::Intact, EnforcementPhase::Unread) => RequestState::Unknown,
            (GuardState::Intact, EnforcementPhase::Settling) => RequestState::Unguarded,
            (GuardState::Intact, EnforcementPhase::Enforced(before)) if before.contains(request) => {
                RequestState::Unguarded
            }
            (GuardState::Intact, EnforcementPhase::Enforced(_)) => RequestState::Guarded,
        }
    }

    /// Switches to a revision; resets the state of another one.
    pub(super) fn enter(&mut self, revision: &str) {
        if self.revision != revision {
            *self = Self { revision: revision.to_owned(), ..Self::default() };
        }
    }
}

/// Plan requests of all Instances.
pub struct Requests {
    pub(super) policy: watch::Receiver<PolicyState>,
    state: Mutex<RevisionState>,
}

impl Requests {
    /// `policy` is the state of `interlock-verbs` and its binding.
    pub fn new(policy: watch::Receiver<PolicyState>) -> Self {
        Self { policy, state: Mutex::default() }
    }

    /// The state of an Instance's request; `None` without one.
    pub(super) fn standing(&self, subject: &InstanceView) -> Option<RequestState> {
        let request = request(&subject.key, &subject.object)?;
        Some(self.state().standing(&self.policy.borrow(), &request))
    }

    /// Whether the request of an Instance may be executed.
    pub(super) fn guarded(&self, subject: &InstanceView) -> bool {
        self.standing(subject) == Some(RequestState::Guarded)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, RevisionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The request on an Instance; `None` without one.
pub(super) fn request(key: &NamespacedName, object: &serde_json::Value) -> Option<RequestKey> {
    let text = annotation(object, meta::REQUEST).filter(|text| !text.is_empty())?;
    Some((key.clone(), meta_str(object, "uid").unwrap_or_default().to_owned(), text.to_owned()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn of(text: &str) -> RequestKey {
        (NamespacedName::new("ns", "demo"), "u".to_owned(), text.to_owned())
    }

    fn enforced(before: &[&str]) -> EnforcementPhase {
        EnforcementPhase::Enforced(before.iter().map(|text| of(text)).collect())
    }

    fn policy(guard: GuardState, revision: &str) -> PolicyState {
        PolicyState { guard, revision: revision.to_owned() }
    }

    #[rstest]
    #[case::nobody_has_looked(policy(GuardState::Unknown, ""), enforced(&[]), RequestState::Unknown)]
    #[case::absent(policy(GuardState::Broken("gone".to_owned()), ""), enforced(&[]), RequestState::Unavailable("gone".to_owned()))]
    #[case::not_known_whether_it_was_there(
        policy(GuardState::Intact, "r1"),
        EnforcementPhase::Unread,
        RequestState::Unknown
    )]
    #[case::perhaps_not_in_force(
        policy(GuardState::Intact, "r1"),
        EnforcementPhase::Settling,
        RequestState::Unguarded
    )]
    #[case::was_there_before(policy(GuardState::Intact, "r1"), enforced(&["abort/r/nonce-01"]), RequestState::Unguarded)]
    #[case::came_after(policy(GuardState::Intact, "r1"), enforced(&["abort/r/nonce-02"]), RequestState::Guarded)]
    #[case::replaced(policy(GuardState::Intact, "r2"), enforced(&[]), RequestState::Unknown)]
    fn table(#[case] policy: PolicyState, #[case] phase: EnforcementPhase, #[case] expected: RequestState) {
        let state = RevisionState { revision: "r1".to_owned(), phase, recorded: false };
        assert_eq!(state.standing(&policy, &of("abort/r/nonce-01")), expected);
    }

    #[test]
    fn what_is_known_of_one_revision_says_nothing_of_another() {
        let mut state = RevisionState { revision: "r1".to_owned(), phase: enforced(&[]), recorded: true };
        state.enter("r1");
        assert_eq!(state.phase, enforced(&[]));
        state.enter("r2");
        assert_eq!((state.phase, state.recorded), (EnforcementPhase::Unread, false));
    }
}
