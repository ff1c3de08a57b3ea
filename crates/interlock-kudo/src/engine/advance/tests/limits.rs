//! Steps with a deadline, and cleanups that keep failing.

use interlock_core::reconcile::KindServed;
use jiff::{SignedDuration, Timestamp};
use rstest::rstest;
use serde_json::json;

use super::steps;
use crate::api::ExecutionStatus::{Complete, Error, FatalError, InProgress};
use crate::engine::advance::fixture::{one, package, phase};
use crate::engine::advance::sim::{Fixture, Process, Server, failure};
use crate::engine::lookup::EngineStep;
use crate::package::time_limits::{CleanupDeadline, RunLimits};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn deadlines(text: &str, now: i64) -> RunLimits {
    RunLimits { now: at(now), steps: text.parse().unwrap(), ..RunLimits::default() }
}

/// One pass at that second.
fn pass(process: &mut Process<'_>, server: &mut Server, now: i64) -> EngineStep {
    process.limits.now = at(now);
    process.pass(server).unwrap()
}

const TOO_LONG: &str = "ns/inst fatal error: step deploy.main.s0 has a deadline of 10m and was not done: ";

#[test]
fn a_step_that_waits_past_its_deadline_ends_the_run() {
    let fixture = one("apply-j");
    let mut server = Server::default();
    let mut process = Process::new(fixture.run(), fixture.start());
    process.limits = deadlines("10m", 1000);
    for now in [1000, 1599] {
        let step = pass(&mut process, &mut server, now);
        assert_eq!((step.state.status.status, step.wake), (InProgress, Some(at(1600))));
    }
    let step = pass(&mut process, &mut server, 1600);
    let message = format!("{TOO_LONG}Job ns/j: job \"j\" still running or failed");
    assert_eq!(steps(&step.state), [(FatalError, message.clone())]);
    let fatal = step.fatal.unwrap();
    assert_eq!(fatal.reason, "StepDeadlineExceeded");
    assert_eq!(fatal.message, format!("Error during execution: {message}"));
    assert!(step.state.begun.is_empty());
}

#[test]
fn a_step_that_fails_past_its_deadline_ends_the_run() {
    let fixture = one("apply-a");
    let mut server = Server::default();
    server.faults.extend([Some(failure(403, "no luck")), Some(failure(403, "no luck"))]);
    let mut process = Process::new(fixture.run(), fixture.start());
    process.limits = deadlines("deploy.main.s0=10m", 1000);
    let step = pass(&mut process, &mut server, 1000);
    assert_eq!((steps(&step.state)[0].0.clone(), step.wake), (Error, Some(at(1600))));
    let message = steps(&pass(&mut process, &mut server, 1600).state)[0].1.clone();
    assert!(message.starts_with(TOO_LONG) && message.ends_with("Will retry. no luck"), "{message}");
}

/// A step found complete after its deadline counts as complete.
#[rstest]
#[case::late("10m")]
#[case::for_another_step("deploy.main.s1=0s")]
#[case::for_another_plan("update.main.s0=0s")]
#[case::nobody_says("1000000h")]
fn a_step_that_is_done_is_done(#[case] text: &str) {
    let fixture = one("apply-j");
    let mut server = Server::default();
    let mut process = Process::new(fixture.run(), fixture.start());
    process.limits = deadlines(text, 1000);
    let _ = pass(&mut process, &mut server, 1000);
    server.tick();
    assert_eq!(pass(&mut process, &mut server, 9000).state.status.status, Complete);
}

/// The deadline of each step counts from its own beginning.
#[test]
fn a_deadline_counts_from_the_beginning_of_its_step() {
    let fixture = Fixture::new(package(phase(json!("serial"), &[&["apply-j"], &["apply-k"]])));
    let mut server = Server::default();
    let mut process = Process::new(fixture.run(), fixture.start());
    process.limits = deadlines("10m", 1000);
    let _ = pass(&mut process, &mut server, 1000);
    server.tick();
    let step = pass(&mut process, &mut server, 1500);
    assert_eq!((step.state.status.status, step.wake), (InProgress, Some(at(2100))));
    let again = Process::new(fixture.run(), process.saved.clone());
    process = Process { limits: deadlines("10m", 2100), ..again };
    let step = process.pass(&mut server).unwrap();
    assert_eq!(steps(&step.state)[1].0, FatalError, "a restart forgets nothing");
}

fn cleanup(now: i64, failing: bool) -> RunLimits {
    let length = SignedDuration::from_mins(10);
    let patience = CleanupDeadline { length, until: at(1600), failing };
    RunLimits { now: at(now), patience: Some(patience), ..RunLimits::default() }
}

#[rstest]
#[case::soon(&["apply-a"], cleanup(1599, true), None)]
#[case::the_first_error_may_pass(&["apply-a"], cleanup(1600, false), None)]
#[case::it_came_again(&["apply-a"], cleanup(1600, true), Some("apply-a: no luck"))]
#[case::never_done(&["wait"], cleanup(1600, false), Some("task deploy.main.s0.wait is a Dummy that is never done; `interlock plan abort inst -n ns --reason WHY` ends the plan"))]
#[case::kind_not_served(&["apply-j"], cleanup(1600, false), Some("waiting for the CustomResourceDefinition of batch/v1, Kind=Job"))]
#[case::something_may_come_by_itself(&["apply-a", "apply-k"], cleanup(1600, true), None)]
fn a_cleanup_that_cannot_go_on(#[case] tasks: &[&str], #[case] limits: RunLimits, #[case] why: Option<&str>) {
    let fixture = Fixture::new(package(phase(
        json!("parallel"),
        &tasks.iter().map(std::slice::from_ref).collect::<Vec<_>>(),
    )));
    let served = if tasks == ["apply-j"] { KindServed::Undefined } else { KindServed::Namespaced };
    let mut server = Server { served: [("Job", served)].into(), ..Server::default() };
    if tasks[0] == "apply-a" {
        server.faults.push_back(Some(failure(403, "no luck")));
    }
    let mut process = Process::new(fixture.run(), fixture.start());
    process.limits = limits;
    let step = process.pass(&mut server).unwrap();
    assert_eq!(step.fatal.is_some(), why.is_some(), "{step:#?}");
    let Some(why) = why else { return };
    let message = step.state.status.message.unwrap();
    assert!(
        message.starts_with("cleanup could not go on for longer than 10m after the deletion: "),
        "{message}"
    );
    assert!(message.ends_with(why), "{message}");
    assert_eq!(step.fatal.unwrap().reason, "CleanupPatienceExceeded");
    assert_eq!(step.state.status.status, FatalError);
}

#[test]
fn a_cleanup_that_waits_for_somebody_is_looked_at_when_its_time_is_over() {
    let fixture = one("wait");
    let mut process = Process::new(fixture.run(), fixture.start());
    process.limits = cleanup(1000, false);
    assert_eq!(process.pass(&mut Server::default()).unwrap().wake, Some(at(1600)));
}

#[test]
fn what_is_ignored_is_said_where_the_step_waits() {
    let fixture = one("apply-j");
    let mut process = Process::new(fixture.run(), fixture.start());
    process.limits.ignored.push("annotation x is ignored".to_owned());
    let step = process.pass(&mut Server::default()).unwrap();
    assert_eq!(step.waiting[1], "annotation x is ignored");
}
