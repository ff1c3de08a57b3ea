//! The last runs of an Instance, in one annotation, written with the clear of `planExecution`.

use interlock_core::api::stamp::SpecHash;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::plan_request;
use crate::api::ExecutionStatus;

/// Maximum of runs kept.
const KEPT: usize = 10;

/// Maximum of requests kept for a run: the last ones.
const ASKED: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedRun {
    pub plan: String,
    /// Id of the execution.
    pub uid: String,
    /// Hash of the spec that it was carried out on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<SpecHash>,
    /// `COMPLETE` or `FATAL_ERROR`.
    pub result: ExecutionStatus,
    /// When it started, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<Timestamp>,
    /// Requests executed on it: a retry or adoption that began it, what paused it, an abort or a restart that ended it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<CarriedOutRequest>,
}

/// An executed request on a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedOutRequest {
    /// The word of its verb, such as `abort-revert`.
    pub verb: String,
    /// The user who made it, as the webhook recorded; empty where it did not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub who: String,
    pub reason: String,
    pub nonce: String,
    /// The part that was not executed, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<String>,
}

impl From<&plan_request::PendingRequest> for CarriedOutRequest {
    fn from(asked: &plan_request::PendingRequest) -> Self {
        Self {
            verb: asked.request.verb.word().to_owned(),
            who: asked.by.clone(),
            reason: asked.reason.clone(),
            nonce: asked.request.nonce.clone(),
            dropped: None,
        }
    }
}

/// Whether a request of that nonce was carried out.
pub fn knows(runs: &[EndedRun], nonce: &str) -> bool {
    runs.iter().flat_map(|run| &run.asked).any(|asked| asked.nonce == nonce)
}

/// Reads the annotation; an invalid one reads as empty, as it only informs people.
pub fn read(annotation: Option<&str>) -> Vec<EndedRun> {
    annotation.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// The annotation with one more run, newest first. A run that is in it already is updated and keeps
/// its requests.
pub fn with(mut runs: Vec<EndedRun>, run: EndedRun) -> String {
    match runs.iter_mut().find(|known| known.uid == run.uid) {
        Some(known) => {
            let mut asked = std::mem::take(&mut known.asked);
            asked.extend(run.asked.iter().filter(|new| !asked.contains(new)).cloned().collect::<Vec<_>>());
            asked.drain(..asked.len().saturating_sub(ASKED));
            *known = EndedRun { asked, ..run };
        }
        None => {
            runs.insert(0, run);
            runs.truncate(KEPT);
        }
    }
    // A list of structs of strings always serialises.
    serde_json::to_string(&runs).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(uid: &str, result: ExecutionStatus, asked: &[&str]) -> EndedRun {
        let asked = asked
            .iter()
            .map(|verb| CarriedOutRequest {
                verb: (*verb).to_owned(),
                who: "alice".to_owned(),
                reason: "why".to_owned(),
                nonce: format!("{verb}-{uid}"),
                dropped: None,
            })
            .collect();
        EndedRun {
            plan: "deploy".to_owned(),
            uid: uid.to_owned(),
            hash: None,
            result,
            start: None,
            end: None,
            asked,
        }
    }

    #[test]
    fn a_run_is_in_it_once_with_all_that_was_asked_of_it() {
        let begun = with(Vec::new(), run("u", ExecutionStatus::Pending, &["retry"]));
        let ended = with(read(Some(&begun)), run("u", ExecutionStatus::FatalError, &["abort"]));
        let again = with(read(Some(&ended)), run("u", ExecutionStatus::FatalError, &["abort"]));
        assert_eq!(again, ended);
        assert_eq!(read(Some(&ended)), vec![run("u", ExecutionStatus::FatalError, &["retry", "abort"])]);
        assert!(knows(&read(Some(&ended)), "retry-u") && !knows(&read(Some(&ended)), "retry-v"));
    }

    #[test]
    fn the_last_requests_of_a_run_are_kept() {
        let text = (0..30).fold(String::new(), |text, i| {
            with(read(Some(&text)), run("u", ExecutionStatus::InProgress, &[&format!("pause{i}")]))
        });
        let runs = read(Some(&text));
        assert_eq!((runs.len(), runs[0].asked.len()), (1, ASKED));
        assert!(knows(&runs, "pause29-u") && !knows(&runs, "pause9-u"));
    }

    #[test]
    fn the_newest_ten_are_kept() {
        let text = (0..12).fold(String::new(), |text, i| {
            with(read(Some(&text)), run(&i.to_string(), ExecutionStatus::Complete, &[]))
        });
        let uids: Vec<String> = read(Some(&text)).into_iter().map(|run| run.uid).collect();
        assert_eq!(uids, (2..12).rev().map(|i| i.to_string()).collect::<Vec<_>>());
    }
}
