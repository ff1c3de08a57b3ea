//! A plan request as text, with its reason: the wire format.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::verb::PlanVerb;
use crate::instance::change::uid;

/// Longest reason, in characters.
pub const REASON_LIMIT: usize = 256;
/// Shortest and longest nonce.
pub const NONCE: (usize, usize) = (8, 64);
/// Longest uid of a run.
pub const RUN_LIMIT: usize = 64;

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
    #[error("{0:?} is no verb: write {words}", words = PlanVerb::words())]
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
    pub request: PlanRequest,
    /// The user who made it, as the webhook recorded; empty where it did not.
    pub by: String,
    pub reason: String,
    /// The uid of the run that it starts: the retry, or the run that begins anew.
    pub new_run: String,
}

impl PendingRequest {
    /// Reads the annotations of an Instance.
    pub fn read(text: &str, reason: &str, by: &str, of: uid::Retry<'_>) -> Result<Self, RequestError> {
        let request: PlanRequest = text.parse()?;
        check_reason(reason)?;
        let new_run = uid::retry_uid(of, &request.run, &request.nonce).to_string();
        Ok(Self { request, by: by.to_owned(), reason: reason.to_owned(), new_run })
    }

    /// `by NAME: REASON`, for people.
    pub fn describe(&self) -> String {
        match self.by.as_str() {
            "" => format!("on request: {}", self.reason),
            by => format!("by {by}: {}", self.reason),
        }
    }
}
