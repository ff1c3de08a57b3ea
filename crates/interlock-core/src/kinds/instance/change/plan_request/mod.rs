//! Plan requests: `VERB/RUN-UID/NONCE` in an annotation, with a reason in another one.
//!
//! A request applies once, to the run that it names. No stored state is needed for that: an abort
//! is over when its run has ended, and a retry runs under a uid that is a function of the request,
//! so that any replica that finds the request finds its result, too.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::lock::LockEntry;
use super::uid;
use crate::api::kudo::ExecutionStatus;
use crate::api::meta::plan::CLEANUP;

/// Longest reason, in characters.
pub const REASON_LIMIT: usize = 256;
/// Shortest and longest nonce.
pub const NONCE: (usize, usize) = (8, 64);
/// Longest uid of a run.
pub const RUN_LIMIT: usize = 64;

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanVerb {
    /// Ends the run.
    Abort {
        /// Whether the spec also reverts to the one last carried out in full.
        revert: bool,
    },
    /// Resumes or restarts a failed run.
    Retry,
}

impl PlanVerb {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Abort { revert: false }, Self::Abort { revert: true }, Self::Retry];

    /// The word in a request.
    pub fn word(self) -> &'static str {
        match self {
            Self::Abort { revert: false } => "abort",
            Self::Abort { revert: true } => "abort-revert",
            Self::Retry => "retry",
        }
    }

    /// The RBAC verb on `instances.kudo.dev` that a user needs for it.
    pub fn right(self) -> &'static str {
        match self {
            Self::Abort { .. } => "abort",
            Self::Retry => "retry",
        }
    }
}

/// A plan request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRequest {
    /// The operation.
    pub verb: PlanVerb,
    /// Uid of the run.
    pub run: String,
    /// Makes the request unique.
    pub nonce: String,
}

/// Why a text is not a request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// Not three parts.
    #[error("{0:?} is no request: write it as VERB/RUN-UID/NONCE")]
    Shape(String),
    /// No such verb.
    #[error("{0:?} is no verb: write abort, abort-revert or retry")]
    Verb(String),
    /// Not a uid.
    #[error("{0:?} is no uid of a run: write the uid in spec.planExecution or status.planStatus")]
    Run(String),
    /// Not a nonce.
    #[error("{0:?} is no nonce: write 8 to 64 letters, digits or dashes, new for each request")]
    Nonce(String),
    /// No reason.
    #[error("a reason is required: say why in one line of at most {REASON_LIMIT} characters")]
    NoReason,
    /// A reason that is too long, or more than a line.
    #[error("the reason has {0} characters or a line break: write one line of at most {REASON_LIMIT}")]
    Reason(usize),
}

fn plain(text: &str, shortest: usize, longest: usize) -> bool {
    (shortest..=longest).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// The beginning of a user's text, for a message.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

impl FromStr for PlanRequest {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, RequestError> {
        let mut parts = text.split('/');
        let (Some(word), Some(run), Some(nonce), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(RequestError::Shape(shown(text)));
        };
        let verb = PlanVerb::ALL.into_iter().find(|verb| verb.word() == word);
        let verb = verb.ok_or_else(|| RequestError::Verb(shown(word)))?;
        if !plain(run, 1, RUN_LIMIT) {
            return Err(RequestError::Run(shown(run)));
        }
        if !plain(nonce, NONCE.0, NONCE.1) {
            return Err(RequestError::Nonce(shown(nonce)));
        }
        Ok(Self { verb, run: run.to_owned(), nonce: nonce.to_owned() })
    }
}

impl fmt::Display for PlanRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.verb.word(), self.run, self.nonce)
    }
}

/// Checks a reason.
pub fn check_reason(reason: &str) -> Result<(), RequestError> {
    let length = reason.chars().count();
    if reason.trim().is_empty() {
        return Err(RequestError::NoReason);
    }
    if length > REASON_LIMIT || reason.chars().any(char::is_control) {
        return Err(RequestError::Reason(length));
    }
    Ok(())
}

/// A request found on an Instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRequest {
    /// The request.
    pub request: PlanRequest,
    /// The user who made it, as the webhook recorded; empty where it did not.
    pub by: String,
    /// The reason.
    pub reason: String,
    /// The uid that its retry runs under.
    pub retry: String,
}

impl PendingRequest {
    /// Reads the annotations of an Instance.
    pub fn read(text: &str, reason: &str, by: &str, of: uid::Retry<'_>) -> Result<Self, RequestError> {
        let request: PlanRequest = text.parse()?;
        check_reason(reason)?;
        let retry = uid::retry_uid(of, &request.run, &request.nonce).to_string();
        Ok(Self { request, by: by.to_owned(), reason: reason.to_owned(), retry })
    }

    /// `by NAME: REASON`, for people.
    pub fn describe(&self) -> String {
        match self.by.as_str() {
            "" => format!("on request: {}", self.reason),
            by => format!("by {by}: {}", self.reason),
        }
    }
}

/// The runs of an Instance.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// `spec.planExecution.planName`, empty when absent.
    pub plan: &'a str,
    /// `spec.planExecution.uid`, empty when absent.
    pub uid: &'a str,
    /// The entries of `status.planStatus`.
    pub entries: &'a [LockEntry<'a>],
}

/// State of a run.
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
    /// The state of a run.
    pub fn state_of(&self, run: &str) -> RunState<'a> {
        let entry = self.entries.iter().find(|e| e.uid == run && !run.is_empty());
        match entry {
            Some(e) if e.status.is_running() => RunState::Running(e.plan),
            Some(e) if e.status.is_terminal() => RunState::Ended(e.plan, e.status),
            _ if self.uid == run && !self.plan.is_empty() => RunState::Scheduled(self.plan),
            _ => RunState::Unknown,
        }
    }

    /// Whether a run is the one that `planExecution` names.
    fn names(&self, run: &str) -> bool {
        self.uid == run && !self.plan.is_empty()
    }

    /// Plan and uid of the scheduled or running execution.
    fn active(&self) -> Option<(&'a str, &'a str)> {
        let running = self.entries.iter().find(|e| e.status.is_running()).map(|e| (e.plan, e.uid));
        let over = matches!(self.state_of(self.uid), RunState::Ended(..));
        running.or((!self.plan.is_empty() && !over).then_some((self.plan, self.uid)))
    }
}

/// Why a request cannot be executed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestObjection {
    /// No such run.
    #[error("run {run} is none of this Instance's{}", now(.busy.as_ref()))]
    UnknownRun {
        /// The run that was named.
        run: String,
        /// Plan and uid of the current run.
        busy: Option<(String, String)>,
    },
    /// The run has ended.
    #[error("run {run} of plan {plan} has ended: it is {status}")]
    Over {
        /// The run that was named.
        run: String,
        /// Its plan.
        plan: String,
        /// How it ended.
        status: String,
    },
    /// The run has not ended.
    #[error("run {run} of plan {plan} has not ended: abort it first, or wait")]
    NotOver {
        /// The run that was named.
        run: String,
        /// Its plan.
        plan: String,
    },
    /// Another plan runs.
    #[error("plan {plan} runs now (run {run}): wait until it has ended")]
    Busy {
        /// The plan that runs.
        plan: String,
        /// Its run.
        run: String,
    },
    /// There is no spec to revert to.
    #[error("there is nothing to go back to: no other spec was carried out in full; abort without --revert")]
    NoPrevious,
    /// The Instance is being deleted.
    #[error("the Instance is being deleted: cleanup is tried again by itself")]
    Deleting,
    /// The request has been executed.
    #[error("the request with nonce {0} was carried out already: a new one needs a new nonce")]
    Used(String),
}

fn now(busy: Option<&(String, String)>) -> String {
    busy.map_or_else(
        || "; no plan runs now".to_owned(),
        |(plan, uid)| format!("; plan {plan} runs now as {uid}"),
    )
}

/// Preconditions of a request, apart from the runs.
#[derive(Clone, Copy, Debug)]
pub struct RequestPreconditions {
    /// Whether the last-applied spec holds the one last carried out in full.
    pub previous: bool,
    /// Whether the Instance is being deleted.
    pub deleting: bool,
    /// Whether the history has a request with that nonce.
    pub used: bool,
}

/// Checks whether a request can be executed on an Instance in its present state.
pub fn validate(
    request: &PlanRequest,
    runs: Runs<'_>,
    preconditions: RequestPreconditions,
) -> Result<(), RequestObjection> {
    let run = || request.run.clone();
    let state = runs.state_of(&request.run);
    if preconditions.used {
        return Err(RequestObjection::Used(request.nonce.clone()));
    }
    if state == RunState::Unknown {
        let busy = runs.active().map(|(plan, uid)| (plan.to_owned(), uid.to_owned()));
        return Err(RequestObjection::UnknownRun { run: run(), busy });
    }
    match (request.verb, state) {
        (PlanVerb::Abort { revert: true }, RunState::Scheduled(_) | RunState::Running(_))
            if preconditions.deleting =>
        {
            Err(RequestObjection::Deleting)
        }
        (PlanVerb::Abort { revert: true }, RunState::Scheduled(_) | RunState::Running(_))
            if !preconditions.previous =>
        {
            Err(RequestObjection::NoPrevious)
        }
        (PlanVerb::Abort { .. }, RunState::Ended(plan, status)) => {
            Err(RequestObjection::Over { run: run(), plan: plan.to_owned(), status: status.to_string() })
        }
        (PlanVerb::Abort { .. }, _) => Ok(()),
        (PlanVerb::Retry, _) if preconditions.deleting => Err(RequestObjection::Deleting),
        (PlanVerb::Retry, RunState::Ended(CLEANUP, _)) => Err(RequestObjection::Deleting),
        (PlanVerb::Retry, RunState::Ended(_, ExecutionStatus::FatalError)) => match runs.active() {
            Some((plan, run)) => Err(RequestObjection::Busy { plan: plan.to_owned(), run: run.to_owned() }),
            None => Ok(()),
        },
        (PlanVerb::Retry, RunState::Ended(plan, status)) => {
            Err(RequestObjection::Over { run: run(), plan: plan.to_owned(), status: status.to_string() })
        }
        (PlanVerb::Retry, RunState::Scheduled(plan) | RunState::Running(plan)) => {
            Err(RequestObjection::NotOver { run: run(), plan: plan.to_owned() })
        }
        (PlanVerb::Retry, RunState::Unknown) => Ok(()),
    }
}

/// Resolution of a request on an Instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestResolution<'a> {
    /// End the run of this plan.
    Abort(&'a str),
    /// Its run has ended, but `planExecution` names it: the write that clears it drops the request.
    Clear,
    /// Schedule the plan again.
    Retry(&'a str),
    /// The retry is scheduled, and the request marks it.
    Scheduled,
    /// The request has been executed: remove it.
    Done,
    /// The request cannot be executed any more: remove and report it.
    Dropped(RequestObjection),
}

/// Resolves a request on an Instance that is not being deleted.
pub fn resolve<'a>(pending: &PendingRequest, runs: Runs<'a>) -> RequestResolution<'a> {
    let run = pending.request.run.as_str();
    match (pending.request.verb, runs.state_of(run)) {
        (PlanVerb::Abort { .. }, RunState::Scheduled(plan) | RunState::Running(plan)) => {
            RequestResolution::Abort(plan)
        }
        (PlanVerb::Abort { .. }, RunState::Ended(..)) if runs.names(run) => RequestResolution::Clear,
        (PlanVerb::Abort { .. }, RunState::Ended(..)) => RequestResolution::Done,
        (PlanVerb::Retry, _) if runs.entries.iter().any(|e| e.uid == pending.retry) => {
            RequestResolution::Done
        }
        (PlanVerb::Retry, _) if runs.names(&pending.retry) => RequestResolution::Scheduled,
        (PlanVerb::Retry, RunState::Ended(plan, ExecutionStatus::FatalError))
            if plan != CLEANUP && runs.active().is_none() =>
        {
            RequestResolution::Retry(plan)
        }
        _ => {
            let preconditions = RequestPreconditions { previous: true, deleting: false, used: false };
            match validate(&pending.request, runs, preconditions) {
                Err(error) => RequestResolution::Dropped(error),
                Ok(()) => RequestResolution::Done,
            }
        }
    }
}

#[cfg(test)]
mod tests;
