//! The runs of an Instance, as requests name them.

use crate::api::{ExecutionStatus, RunRequests};
use crate::instance::change::lock::LockEntry;

/// The runs of an Instance.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// `spec.planExecution.planName`, empty when absent.
    pub plan: &'a str,
    /// `spec.planExecution.uid`, empty when absent.
    pub uid: &'a str,
    /// The entries of `status.planStatus`.
    pub entries: &'a [LockEntry<'a>],
    /// `status.requests`.
    pub requests: Option<&'a RunRequests>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState<'a> {
    /// Scheduled, not begun; its plan.
    Scheduled(&'a str),
    /// Running; its plan.
    Running(&'a str),
    /// Ended; its plan and status.
    Ended(&'a str, &'a ExecutionStatus),
    /// The Instance has no such run.
    Unknown,
}

impl<'a> Runs<'a> {
    pub fn state_of(&self, run: &str) -> RunState<'a> {
        let entry = self.entries.iter().find(|e| e.uid == run && !run.is_empty());
        match entry {
            Some(e) if e.status.is_running() => RunState::Running(e.plan),
            Some(e) if e.status.is_terminal() => RunState::Ended(e.plan, e.status),
            _ if self.uid == run && !self.plan.is_empty() => RunState::Scheduled(self.plan),
            _ => RunState::Unknown,
        }
    }

    /// Whether the status records a run.
    pub(super) fn has_begun(&self, run: &str) -> bool {
        self.entries.iter().any(|entry| entry.uid == run)
    }

    /// What requests have changed about a run.
    fn requests_of(&self, run: &str) -> Option<&'a RunRequests> {
        self.requests.filter(|requests| requests.run == run && !run.is_empty())
    }

    /// Whether objects that no Instance made ended a run.
    pub(super) fn is_held(&self, run: &str) -> bool {
        self.requests_of(run).is_some_and(|requests| !requests.held_by.is_empty())
    }

    pub fn is_paused(&self, run: &str) -> bool {
        self.requests_of(run).is_some_and(|requests| requests.paused.is_some())
    }

    /// Whether the request of that nonce is the last one that was executed on a run while it goes on.
    pub(super) fn has_answered(&self, run: &str, nonce: &str) -> bool {
        self.requests_of(run).is_some_and(|requests| requests.answered.as_deref() == Some(nonce))
    }

    /// Whether a run is the one that `planExecution` names.
    pub(super) fn names(&self, run: &str) -> bool {
        self.uid == run && !self.plan.is_empty()
    }

    /// Plan and uid of the scheduled or running execution.
    pub(super) fn active(&self) -> Option<(&'a str, &'a str)> {
        let running = self.entries.iter().find(|e| e.status.is_running()).map(|e| (e.plan, e.uid));
        let over = matches!(self.state_of(self.uid), RunState::Ended(..));
        running.or((!self.plan.is_empty() && !over).then_some((self.plan, self.uid)))
    }
}
