//! Valid requests, and the states of a run that permit them.

use rstest::rstest;

use super::*;
use crate::api::kudo::ExecutionStatus::{Complete, FatalError, InProgress};

const NEVER: ExecutionStatus = ExecutionStatus::NeverRun;

#[rstest]
#[case("abort/0b0a2e0c-1111-5222-8333-444455556666/1a2b3c4d", PlanVerb::Abort { revert: false })]
#[case("abort-revert/u/12345678", PlanVerb::Abort { revert: true })]
#[case("retry/u/12345678", PlanVerb::Retry)]
fn requests(#[case] text: &str, #[case] verb: PlanVerb) {
    let request: PlanRequest = text.parse().unwrap();
    assert_eq!((request.verb, request.to_string().as_str()), (verb, text));
}

/// Other verbs of the grammar are unknown until the engine supports them.
#[rstest]
#[case("", "VERB/RUN-UID/NONCE")]
#[case("abort", "VERB/RUN-UID/NONCE")]
#[case("abort/u", "VERB/RUN-UID/NONCE")]
#[case("abort/u/12345678/x", "VERB/RUN-UID/NONCE")]
#[case("restart/u/12345678", "is no verb")]
#[case("pause/u/12345678", "is no verb")]
#[case("resume/u/12345678", "is no verb")]
#[case("adopt/u/12345678", "is no verb")]
#[case("Abort/u/12345678", "is no verb")]
#[case("abort//12345678", "is no uid")]
#[case("abort/u u/12345678", "is no uid")]
#[case("abort/u/1234567", "is no nonce")]
#[case("abort/u/1234567\n", "is no nonce")]
fn no_requests(#[case] text: &str, #[case] why: &str) {
    let error = text.parse::<PlanRequest>().unwrap_err().to_string();
    assert!(error.contains(why), "{error}");
}

#[rstest]
#[case("the quota is gone", true)]
#[case("é".repeat(REASON_LIMIT), true)]
#[case("", false)]
#[case("  ", false)]
#[case("two\nlines", false)]
#[case("x".repeat(REASON_LIMIT + 1), false)]
fn reasons(#[case] text: impl AsRef<str>, #[case] good: bool) {
    assert_eq!(check_reason(text.as_ref()).is_ok(), good);
}

/// Plan `deploy` has this status in run `u`; `planExecution` names plan and uid.
#[rstest]
#[case::running("abort/u", ("deploy", "u"), InProgress, None)]
#[case::scheduled("abort/s", ("deploy", "s"), Complete, None)]
#[case::failed("abort/u", ("", ""), FatalError, Some("has ended: it is FATAL_ERROR"))]
#[case::of_another("abort/x", ("deploy", "u"), InProgress, Some("none of this Instance's; plan deploy runs now as u"))]
#[case::never("abort/u", ("", ""), NEVER, Some("none of this Instance's"))]
#[case::back("abort-revert/u", ("deploy", "u"), InProgress, Some("nothing to go back to"))]
#[case::retry("retry/u", ("", ""), FatalError, None)]
#[case::retry_before_the_clear("retry/u", ("deploy", "u"), FatalError, None)]
#[case::retry_complete("retry/u", ("", ""), Complete, Some("it is COMPLETE"))]
#[case::retry_running("retry/u", ("deploy", "u"), InProgress, Some("has not ended"))]
#[case::retry_scheduled("retry/s", ("deploy", "s"), FatalError, Some("has not ended"))]
#[case::retry_while_busy("retry/u", ("update", "s"), FatalError, Some("plan update runs now (run s)"))]
fn what_can_be_asked(
    #[case] request: &str,
    #[case] (plan, uid): (&str, &str),
    #[case] status: ExecutionStatus,
    #[case] error: Option<&str>,
) {
    let request: PlanRequest = format!("{request}/nonce-01").parse().unwrap();
    let entries = [LockEntry { plan: "deploy", uid: "u", status: &status }];
    let runs = Runs { plan, uid, entries: &entries };
    let preconditions = RequestPreconditions { previous: false, deleting: false, used: false };
    let judged = validate(&request, runs, preconditions).map_err(|error| error.to_string());
    match error {
        None => assert_eq!(judged, Ok(())),
        Some(why) => assert!(judged.clone().is_err_and(|text| text.contains(why)), "{judged:?}"),
    }
    let previous = RequestPreconditions { previous: true, ..preconditions };
    assert!(validate(&request, runs, previous).is_ok() || error.is_some_and(|why| !why.contains("go back")));
    let used = RequestPreconditions { used: true, ..preconditions };
    assert_eq!(validate(&request, runs, used), Err(RequestObjection::Used("nonce-01".to_owned())));
}
