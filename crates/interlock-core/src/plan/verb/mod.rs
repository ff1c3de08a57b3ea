//! What people ask of a run: `VERB/RUN-UID/NONCE` in an annotation, with a reason beside it.
//!
//! A request holds for the run that it names, and once. Nothing has to be remembered for that: an
//! abort is over when its run has ended, and a retry runs under a uid that is a function of the
//! request, so that whoever finds the request again finds what became of it too.

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

/// What is asked of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanVerb {
    /// The run ends.
    Abort {
        /// And the spec goes back to what last was carried out in full.
        revert: bool,
    },
    /// The run, which failed, goes on or begins anew.
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

    /// The verb on `instances.kudo.dev` that a user needs for it.
    pub fn right(self) -> &'static str {
        match self {
            Self::Abort { .. } => "abort",
            Self::Retry => "retry",
        }
    }
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRequest {
    /// What is asked.
    pub verb: PlanVerb,
    /// Uid of the run that is meant.
    pub run: String,
    /// What makes it one of its kind.
    pub nonce: String,
}

/// A text that is no request.
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

/// The beginning of a text of a user's, for a message.
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

/// Whether a text is a reason.
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

/// A request as it stands on an Instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingRequest {
    /// The request.
    pub request: PlanRequest,
    /// Who asked, as the webhook recorded it; empty where it did not.
    pub by: String,
    /// Why.
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
    pub fn told(&self) -> String {
        match self.by.as_str() {
            "" => format!("on request: {}", self.reason),
            by => format!("by {by}: {}", self.reason),
        }
    }
}

/// What is known of the runs of an Instance.
#[derive(Clone, Copy, Debug)]
pub struct Runs<'a> {
    /// `spec.planExecution.planName`, empty when absent.
    pub plan: &'a str,
    /// `spec.planExecution.uid`, empty when absent.
    pub uid: &'a str,
    /// The entries of `status.planStatus`.
    pub entries: &'a [LockEntry<'a>],
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState<'a> {
    /// It is scheduled and has not begun.
    Scheduled(&'a str),
    /// It runs.
    Running(&'a str),
    /// It has ended, so.
    Ended(&'a str, &'a ExecutionStatus),
    /// There is no such run.
    Unknown,
}

impl<'a> Runs<'a> {
    /// How a run stands.
    pub fn standing(&self, run: &str) -> RunState<'a> {
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

    /// The plan that is scheduled or runs, whichever it is.
    fn busy(&self) -> Option<(&'a str, &'a str)> {
        let running = self.entries.iter().find(|e| e.status.is_running()).map(|e| (e.plan, e.uid));
        let over = matches!(self.standing(self.uid), RunState::Ended(..));
        running.or((!self.plan.is_empty() && !over).then_some((self.plan, self.uid)))
    }
}

/// Why a request cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestObjection {
    /// No such run.
    #[error("run {run} is none of this Instance's{}", now(.busy.as_ref()))]
    UnknownRun {
        /// The run that was named.
        run: String,
        /// Plan and uid of what runs.
        busy: Option<(String, String)>,
    },
    /// It has ended.
    #[error("run {run} of plan {plan} has ended: it is {status}")]
    Over {
        /// The run that was named.
        run: String,
        /// Its plan.
        plan: String,
        /// How it ended.
        status: String,
    },
    /// It has not ended.
    #[error("run {run} of plan {plan} has not ended: abort it first, or wait")]
    NotOver {
        /// The run that was named.
        run: String,
        /// Its plan.
        plan: String,
    },
    /// Something else runs.
    #[error("plan {plan} runs now (run {run}): wait until it has ended")]
    Busy {
        /// The plan that runs.
        plan: String,
        /// Its run.
        run: String,
    },
    /// Nothing to go back to.
    #[error("there is nothing to go back to: no other spec was carried out in full; abort without --revert")]
    NoPrevious,
    /// It goes.
    #[error("the Instance is being deleted: cleanup is tried again by itself")]
    Deleting,
    /// It was carried out.
    #[error("the request with nonce {0} was carried out already: a new one needs a new nonce")]
    Used(String),
}

fn now(busy: Option<&(String, String)>) -> String {
    busy.map_or_else(
        || "; no plan runs now".to_owned(),
        |(plan, uid)| format!("; plan {plan} runs now as {uid}"),
    )
}

/// What admission knows beside the runs.
#[derive(Clone, Copy, Debug)]
pub struct RequestPreconditions {
    /// Whether the stamp holds what last was carried out in full.
    pub previous: bool,
    /// Whether the Instance is being deleted.
    pub deleting: bool,
    /// Whether the history has a request of that nonce.
    pub used: bool,
}

/// Whether a request can be carried out on an Instance as it is.
pub fn judge(
    request: &PlanRequest,
    runs: Runs<'_>,
    ground: RequestPreconditions,
) -> Result<(), RequestObjection> {
    let run = || request.run.clone();
    let standing = runs.standing(&request.run);
    if ground.used {
        return Err(RequestObjection::Used(request.nonce.clone()));
    }
    if standing == RunState::Unknown {
        let busy = runs.busy().map(|(plan, uid)| (plan.to_owned(), uid.to_owned()));
        return Err(RequestObjection::UnknownRun { run: run(), busy });
    }
    match (request.verb, standing) {
        (PlanVerb::Abort { revert: true }, RunState::Scheduled(_) | RunState::Running(_))
            if ground.deleting =>
        {
            Err(RequestObjection::Deleting)
        }
        (PlanVerb::Abort { revert: true }, RunState::Scheduled(_) | RunState::Running(_))
            if !ground.previous =>
        {
            Err(RequestObjection::NoPrevious)
        }
        (PlanVerb::Abort { .. }, RunState::Ended(plan, status)) => {
            Err(RequestObjection::Over { run: run(), plan: plan.to_owned(), status: status.to_string() })
        }
        (PlanVerb::Abort { .. }, _) => Ok(()),
        (PlanVerb::Retry, _) if ground.deleting => Err(RequestObjection::Deleting),
        (PlanVerb::Retry, RunState::Ended(CLEANUP, _)) => Err(RequestObjection::Deleting),
        (PlanVerb::Retry, RunState::Ended(_, ExecutionStatus::FatalError)) => match runs.busy() {
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

/// What a request on an Instance comes to now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Course<'a> {
    /// The run of this plan is to be ended.
    Abort(&'a str),
    /// Its run has ended and `planExecution` still names it: the clear takes the request along.
    Clear,
    /// The plan is to be scheduled anew.
    Retry(&'a str),
    /// The retry is scheduled, and the request is its mark.
    Marked,
    /// It was carried out: it is taken away.
    Done,
    /// It cannot be carried out any more: it is taken away, and that is said.
    Dropped(RequestObjection),
}

/// What a request comes to, on an Instance that is not being deleted.
pub fn course<'a>(asked: &PendingRequest, runs: Runs<'a>) -> Course<'a> {
    let run = asked.request.run.as_str();
    match (asked.request.verb, runs.standing(run)) {
        (PlanVerb::Abort { .. }, RunState::Scheduled(plan) | RunState::Running(plan)) => Course::Abort(plan),
        (PlanVerb::Abort { .. }, RunState::Ended(..)) if runs.names(run) => Course::Clear,
        (PlanVerb::Abort { .. }, RunState::Ended(..)) => Course::Done,
        (PlanVerb::Retry, _) if runs.entries.iter().any(|e| e.uid == asked.retry) => Course::Done,
        (PlanVerb::Retry, _) if runs.names(&asked.retry) => Course::Marked,
        (PlanVerb::Retry, RunState::Ended(plan, ExecutionStatus::FatalError))
            if plan != CLEANUP && runs.busy().is_none() =>
        {
            Course::Retry(plan)
        }
        _ => {
            let ground = RequestPreconditions { previous: true, deleting: false, used: false };
            match judge(&asked.request, runs, ground) {
                Err(objection) => Course::Dropped(objection),
                Ok(()) => Course::Done,
            }
        }
    }
}

#[cfg(test)]
mod tests;
