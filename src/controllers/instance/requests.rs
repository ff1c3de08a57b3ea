//! Whether what people ask of a run was asked under the policy that says who may.
//!
//! A request is an annotation: without `interlock-verbs` anybody who may edit an Instance writes one. So
//! it counts only where policy and binding have been in force, unchanged, since before it was written.
//! Their uids and generations name that state (a [`PolicyState::revision`]). When a revision is seen for
//! the first time, every request that is there, or that comes while the API servers may not enforce it
//! yet ([`MARGIN`]), is dropped; then the revision is recorded, so that a process that starts later knows
//! that what it finds was written under it.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tracing::{info, warn};

use super::context::Context;
use super::subject::Subject;
use crate::api::meta;
use crate::api::object::{NamespacedName, annotation, meta_str};
use crate::cluster::guard::{Guard, PolicyState};
use crate::cluster::supervisor::Work;
use crate::controllers::observe::Kept;
use crate::effect::ApiFailure;

/// How long a policy may be there before every API server enforces it: measured, about a second.
const MARGIN: Duration = Duration::from_secs(3);
/// Pause after a read or a write of the record that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

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
type Request = (NamespacedName, String, String);

#[derive(Debug, Default, PartialEq, Eq)]
enum Phase {
    /// The record was not read yet.
    #[default]
    Unread,
    /// The API servers may not enforce it yet.
    Settling,
    /// It is enforced; these were there before.
    Enforced(BTreeSet<Request>),
}

#[derive(Debug, Default)]
struct State {
    revision: String,
    phase: Phase,
    recorded: bool,
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
    fn enter(&mut self, revision: &str) {
        if self.revision != revision {
            *self = Self { revision: revision.to_owned(), ..Self::default() };
        }
    }
}

/// The requests of all Instances.
pub struct Requests {
    policy: watch::Receiver<PolicyState>,
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn request(key: &NamespacedName, object: &serde_json::Value) -> Option<Request> {
    let text = annotation(object, meta::REQUEST).filter(|text| !text.is_empty())?;
    Some((key.clone(), meta_str(object, "uid").unwrap_or_default().to_owned(), text.to_owned()))
}

/// Follows the policy, for ever; what it does needs the work that this process is given now.
pub(super) async fn follow(ctx: &Context, work: Work) {
    let mut policy = ctx.requests.policy.clone();
    loop {
        let now = policy.borrow_and_update().clone();
        wake(ctx);
        let settling = async {
            if now.guard.holds() && matches!(work, Work::Full | Work::Deletions) {
                ctx.requests.state().enter(&now.revision);
                settle(ctx, &now.revision, work).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = settling => {}
            changed = policy.changed() => if changed.is_err() {
                std::future::pending::<()>().await;
            },
        }
    }
}

/// Learns whether a revision has been in force, or sees to it that nothing is left from before.
async fn settle(ctx: &Context, revision: &str, work: Work) {
    if ctx.requests.state().phase == Phase::Unread && recorded(ctx).await.as_deref() == Some(revision) {
        *ctx.requests.state() =
            State { revision: revision.to_owned(), phase: Phase::Enforced(BTreeSet::new()), recorded: true };
        wake(ctx);
    }
    // Without the whole cache nobody can tell which requests there are.
    if work != Work::Full {
        return;
    }
    if !matches!(ctx.requests.state().phase, Phase::Enforced(_)) {
        ctx.requests.state().phase = Phase::Settling;
        wake(ctx);
        tokio::time::sleep(MARGIN).await;
        ctx.requests.state().phase = Phase::Enforced(all(ctx).collect());
        info!(revision, "requests count from now on: the policy interlock-verbs is in force");
        wake(ctx);
    }
    if !ctx.requests.state().recorded {
        let mut changes = ctx.store.changes();
        while !all_dropped(ctx) {
            // The store lives as long as the process.
            let _ = changes.changed().await;
        }
        record(ctx, revision).await;
        ctx.requests.state().recorded = true;
    }
}

/// Whether nothing is left of the requests that were there before.
fn all_dropped(ctx: &Context) -> bool {
    let still: BTreeSet<Request> = all(ctx).collect();
    let mut state = ctx.requests.state();
    let Phase::Enforced(before) = &mut state.phase else { return false };
    before.retain(|request| still.contains(request));
    before.is_empty()
}

/// Every request that is there.
fn all(ctx: &Context) -> impl Iterator<Item = Request> {
    ctx.store.restless().into_iter().filter_map(|key| match ctx.store.instance(&key) {
        Kept::Whole(object) => request(&key, &object),
        Kept::AtRest { .. } | Kept::Nothing => None,
    })
}

/// Has requests looked at again.
fn wake(ctx: &Context) {
    all(ctx).for_each(|(key, ..)| ctx.queue.add(key));
}

/// The revision that was recorded last; `None` also where this process may not read it.
async fn recorded(ctx: &Context) -> Option<String> {
    loop {
        match ctx.bookkeeping.enforced_revision(&ctx.own_namespace).await {
            Ok(revision) => return revision,
            Err(ApiFailure { code: 403, message, .. }) => {
                warn!(
                    message,
                    "whether requests were guarded before is not known: `interlock render rbac` has the right"
                );
                return None;
            }
            Err(failure) => {
                warn!(message = failure.message, "whether requests were guarded before could not be read");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }
}

async fn record(ctx: &Context, revision: &str) {
    while let Err(failure) = ctx.bookkeeping.record_enforced(&ctx.own_namespace, revision).await {
        warn!(message = failure.message, "that requests are guarded could not be recorded; trying again");
        tokio::time::sleep(AFTER_FAILURE).await;
    }
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
