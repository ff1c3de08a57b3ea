//! Valid requests, and the states of a run that permit them.

use rstest::rstest;

use super::*;
use crate::api::ExecutionStatus::{Complete, FatalError, InProgress};
use crate::api::{ExecutionStatus, HeldObject, Pause, RunRequests};
use crate::instance::change::lock::LockEntry;

const NEVER: ExecutionStatus = ExecutionStatus::NeverRun;

#[rstest]
#[case("abort/0b0a2e0c-1111-5222-8333-444455556666/1a2b3c4d", PlanVerb::Abort { revert: false })]
#[case("abort-revert/u/12345678", PlanVerb::Abort { revert: true })]
#[case("retry/u/12345678", PlanVerb::Retry)]
#[case("restart/u/12345678", PlanVerb::Restart)]
#[case("pause/u/12345678", PlanVerb::Pause)]
#[case("resume/u/12345678", PlanVerb::Resume)]
#[case("adopt/u/12345678", PlanVerb::Adopt)]
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
#[case("promote/u/12345678", "is no verb")]
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
#[case::restart("restart/u", ("deploy", "u"), InProgress, None)]
#[case::restart_before_the_start("restart/s", ("deploy", "s"), Complete, None)]
#[case::restart_of_what_has_ended("restart/u", ("", ""), FatalError, Some("has ended: it is FATAL_ERROR"))]
#[case::restart_of_cleanup("restart/s", ("cleanup", "s"), FatalError, Some("is being deleted"))]
#[case::pause("pause/u", ("deploy", "u"), InProgress, None)]
#[case::pause_before_the_start("pause/s", ("deploy", "s"), Complete, None)]
#[case::pause_of_what_has_ended("pause/u", ("", ""), FatalError, Some("has ended: it is FATAL_ERROR"))]
#[case::pause_of_cleanup("pause/s", ("cleanup", "s"), FatalError, Some("is being deleted"))]
#[case::resume_of_what_goes_on("resume/u", ("deploy", "u"), InProgress, Some("run u of plan deploy is not paused"))]
#[case::resume_of_what_has_ended("resume/u", ("", ""), Complete, Some("has ended: it is COMPLETE"))]
#[case::adopt_of_what_nothing_holds("adopt/u", ("", ""), FatalError, Some("there is nothing to adopt"))]
#[case::adopt_of_what_runs("adopt/u", ("deploy", "u"), InProgress, Some("has not ended"))]
#[case::adopt_of_what_is_complete("adopt/u", ("", ""), Complete, Some("it is COMPLETE"))]
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
    let runs = Runs { plan, uid, entries: &entries, requests: None };
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

/// What can be asked of a run that is paused.
#[rstest]
#[case::twice("pause/u", Some("run u of plan deploy is paused already"))]
#[case::resume("resume/u", None)]
#[case::of_another("resume/x", Some("none of this Instance's"))]
#[case::abort("abort/u", None)]
#[case::restart("restart/u", None)]
fn what_can_be_asked_of_a_paused_run(#[case] request: &str, #[case] error: Option<&str>) {
    let request: PlanRequest = format!("{request}/nonce-01").parse().unwrap();
    let entries = [LockEntry { plan: "deploy", uid: "u", status: &InProgress }];
    let pause = Pause { since: jiff::Timestamp::UNIX_EPOCH, by: String::new(), reason: "r".to_owned() };
    let requests = RunRequests { run: "u".to_owned(), paused: Some(pause), ..RunRequests::default() };
    let runs = Runs { plan: "deploy", uid: "u", entries: &entries, requests: Some(&requests) };
    let preconditions = RequestPreconditions { previous: false, deleting: false, used: false };
    let judged = validate(&request, runs, preconditions).map_err(|error| error.to_string());
    assert_eq!(
        judged.as_ref().err().map(|text| error.is_some_and(|why| text.contains(why))),
        error.map(|_| true),
        "{judged:?}"
    );
}

/// Adoption is of the objects that ended the run that is named.
#[rstest]
#[case::of_that_run("u", true)]
#[case::of_another("former", false)]
fn what_holds_a_run_can_be_adopted(#[case] held: &str, #[case] possible: bool) {
    let request: PlanRequest = "adopt/u/nonce-01".parse().unwrap();
    let entries = [LockEntry { plan: "deploy", uid: "u", status: &FatalError }];
    let object = HeldObject { kind: "ConfigMap".to_owned(), name: "a".to_owned(), ..HeldObject::default() };
    let requests = RunRequests { run: held.to_owned(), held_by: [object].into(), ..RunRequests::default() };
    let runs = Runs { plan: "", uid: "", entries: &entries, requests: Some(&requests) };
    let preconditions = RequestPreconditions { previous: false, deleting: false, used: false };
    assert_eq!(validate(&request, runs, preconditions).is_ok(), possible);
}
