//! Plan requests, one case a row.

use rstest::rstest;

use super::world::{V4, V5, World, abort, failed, forget, pause, restart, resume, retry};
use crate::api::ExecutionStatus::{Complete, FatalError, InProgress};
use crate::instance::change::next::SpecSource::Stamp as Stamped;
use crate::instance::change::next::{Next, RequestAnswer};

#[rstest]
#[case::abort_of_a_run(
    World::settled().running("backup", "r").scheduled("backup", "r").requested("abort/r/nonce-01"), abort("backup"))]
#[case::abort_of_a_run_that_nothing_names(
    World::settled().running("backup", "r").requested("abort/r/nonce-01"), abort("backup"))]
#[case::abort_before_the_start(
    World::settled().scheduled("backup", "r").requested("abort/r/nonce-01"), abort("backup"))]
#[case::abort_without_its_package(
    World::settled().without_package().scheduled("backup", "r").requested("abort/r/nonce-01"), abort("backup"))]
#[case::abort_of_a_new_instance(
    World::fresh().scheduled("deploy", "r").requested("abort/r/nonce-01"), abort("deploy"))]
#[case::an_aborted_run_is_cleared(
    failed().scheduled("backup", "r").requested("abort/r/nonce-01"), Next::Clear)]
#[case::an_aborted_run_that_an_edit_replaced(
    failed().scheduled("audit", V4).requested("abort/r/nonce-01"), forget(None))]
#[case::abort_and_go_back(
    failed().scheduled("backup", "r").requested("abort-revert/r/nonce-01"), Next::Answer(RequestAnswer::Revert))]
#[case::a_newer_edit_is_not_reverted(
    failed().scheduled("deploy", V5).requested("abort-revert/r/nonce-01"), Next::Answer(RequestAnswer::Superseded))]
#[case::a_run_that_completed_meanwhile_is_not_reverted(
    World::settled().ran("backup", "r", Complete).scheduled("backup", "r").requested("abort-revert/r/nonce-01"),
    Next::Clear)]
#[case::retry_of_a_run(failed().requested("retry/r/nonce-01"), retry("backup"))]
#[case::retry_waits_for_the_clear(failed().scheduled("backup", "r").requested("retry/r/nonce-01"), Next::Clear)]
#[case::retry_goes_on_where_it_failed(
    failed().scheduled("backup", V5).requested("retry/r/nonce-01"), Next::Retry { source: Stamped })]
#[case::retry_of_a_run_that_is_not_the_newest_begins_anew(
    failed().recorded("later").scheduled("backup", V5).requested("retry/r/nonce-01"), Next::Start { source: Stamped })]
#[case::retry_on_another_spec_begins_anew(
    failed().edited(&[("A", "2")]).stamped_as_spec().scheduled("backup", V5).requested("retry/r/nonce-01"),
    Next::Start { source: Stamped })]
#[case::retry_without_its_mark_begins_anew(failed().scheduled("backup", V5), Next::Start { source: Stamped })]
#[case::an_edit_that_came_first_is_no_retry(
    failed().scheduled("backup", V4).recorded("r").requested("retry/other/nonce-01"),
    forget(Some("run other is none of this Instance's; plan backup runs now as 9b2c2d3e-8c1f-4b5e-9d6a-0123456789ab")))]
#[case::a_retry_that_has_started_is_forgotten(
    failed().running("backup", V5).scheduled("backup", V5).requested("retry/r/nonce-01"), forget(None))]
#[case::a_retry_that_has_ended_is_forgotten(
    failed().ran("backup", V5, FatalError).requested("retry/r/nonce-01"), forget(None))]
#[case::retry_of_a_spec_that_is_lost(
    failed().edited(&[("A", "2")]).stamp_lost().requested("retry/r/nonce-01"),
    forget(Some("the spec that it would run on is lost")))]
#[case::retry_of_what_runs(
    World::settled().running("backup", "r").scheduled("backup", "r").requested("retry/r/nonce-01"),
    forget(Some("run r of plan backup has not ended: abort it first, or wait")))]
#[case::retry_of_what_is_complete(
    World::settled().ran("backup", "r", Complete).requested("retry/r/nonce-01"),
    forget(Some("run r of plan backup has ended: it is COMPLETE")))]
#[case::retry_while_another_plan_is_scheduled(
    failed().scheduled("audit", V4).requested("retry/r/nonce-01"),
    forget(Some(&format!("plan audit runs now (run {V4}): wait until it has ended"))))]
#[case::abort_of_another_instances_run(
    World::settled().requested("abort/r/nonce-01"),
    forget(Some("run r is none of this Instance's; no plan runs now")))]
#[case::restart_of_a_run(
    World::settled().running("backup", "r").scheduled("backup", "r").requested("restart/r/nonce-01"),
    restart("backup"))]
#[case::restart_before_the_start(
    World::settled().scheduled("backup", "r").requested("restart/r/nonce-01"), restart("backup"))]
#[case::restart_runs_on_the_stamp(
    World::settled().edited(&[("A", "9")]).running("backup", "r").scheduled("backup", V5)
        .requested("restart/r/nonce-01"), Next::Start { source: Stamped })]
#[case::a_restart_that_has_started_is_forgotten(
    World::settled().running("backup", V5).scheduled("backup", V5).requested("restart/r/nonce-01"), forget(None))]
#[case::a_restart_that_has_ended_is_forgotten(
    failed().ran("backup", V5, FatalError).requested("restart/r/nonce-01"), forget(None))]
#[case::restart_on_a_spec_that_is_lost(
    World::settled().running("backup", "r").scheduled("backup", "r").edited(&[("A", "2")]).stamp_lost()
        .requested("restart/r/nonce-01"), forget(Some("the spec that it would run on is lost")))]
#[case::restart_of_what_ended_meanwhile(
    failed().requested("restart/r/nonce-01"), forget(Some("run r of plan backup has ended: it is FATAL_ERROR")))]
#[case::restart_and_deletion(
    World::settled().running("backup", "r").scheduled("backup", "r").deleted(false, 0)
        .requested("restart/r/nonce-01"),
    Next::End([("backup".to_owned(), "ended: the Instance is being deleted".to_owned())].into()))]
#[case::pause_of_a_run(runs().requested("pause/r/nonce-01"), pause("backup"))]
#[case::a_run_begins_before_it_is_paused(
    World::settled().scheduled("backup", "r").requested("pause/r/nonce-01"), Next::Start { source: Stamped })]
#[case::a_pause_that_was_carried_out_is_forgotten(
    runs().paused("r", "nonce-01").requested("pause/r/nonce-01"), forget(None))]
#[case::pause_of_what_is_paused(
    runs().paused("r", "nonce-01").requested("pause/r/nonce-02"),
    forget(Some("run r of plan backup is paused already")))]
#[case::pause_of_what_ended_meanwhile(
    failed().requested("pause/r/nonce-01"), forget(Some("run r of plan backup has ended: it is FATAL_ERROR")))]
#[case::a_paused_run_waits(runs().paused("r", "nonce-01"), Next::AwaitResume)]
#[case::a_paused_run_waits_whatever_becomes_of_the_spec(
    runs().edited(&[("A", "2")]).stamp_lost().refused().paused("r", "nonce-01"), Next::AwaitResume)]
#[case::a_paused_run_waits_without_its_package(
    runs().without_package().paused("r", "nonce-01"), Next::AwaitResume)]
#[case::a_paused_run_that_nothing_names_is_put_back(
    World::settled().running("backup", "r").paused("r", "nonce-01"),
    Next::Restore { plan: "backup".to_owned(), uid: "r".to_owned() })]
#[case::the_pause_of_another_run_is_none(
    runs().paused("former", "nonce-01"), Next::Continue { source: Stamped })]
#[case::resume(runs().paused("r", "nonce-01").requested("resume/r/nonce-02"), resume("backup"))]
#[case::resume_that_was_carried_out_is_forgotten(
    runs().resumed("r", "nonce-02").requested("resume/r/nonce-02"), forget(None))]
#[case::resume_of_what_goes_on(
    runs().requested("resume/r/nonce-02"), forget(Some("run r of plan backup is not paused")))]
#[case::a_resumed_run_goes_on(runs().resumed("r", "nonce-02"), Next::Continue { source: Stamped })]
#[case::abort_of_a_paused_run(
    runs().paused("r", "nonce-01").requested("abort/r/nonce-02"), abort("backup"))]
#[case::restart_of_a_paused_run(
    runs().paused("r", "nonce-01").requested("restart/r/nonce-02"), restart("backup"))]
#[case::a_restart_ends_the_pause(
    World::settled().running("backup", "r").scheduled("backup", V5).paused("r", "nonce-01")
        .requested("restart/r/nonce-02"), Next::Start { source: Stamped })]
#[case::deletion_ends_a_paused_run(
    runs().paused("r", "nonce-01").deleted(false, 0),
    Next::End([("backup".to_owned(), "ended: the Instance is being deleted".to_owned())].into()))]
#[case::adopt(failed().held("r").requested("adopt/r/nonce-01"), retry("backup"))]
#[case::adopt_goes_on_where_it_failed(
    failed().held("r").scheduled("backup", V5).requested("adopt/r/nonce-01"), Next::Retry { source: Stamped })]
#[case::an_adoption_that_has_started_is_forgotten(
    failed().running("backup", V5).scheduled("backup", V5).requested("adopt/r/nonce-01"), forget(None))]
#[case::adopt_of_what_nothing_holds(
    failed().requested("adopt/r/nonce-01"),
    forget(Some("run r of plan backup is not the last one, or did not end at objects of this namespace that no \
        Instance made: there is nothing to adopt")))]
#[case::abort_of_cleanup(
    World::settled().entry("cleanup", "r", InProgress, 2001).scheduled("cleanup", "r").deleted(false, 0)
        .requested("abort/r/nonce-01"), abort("cleanup"))]
fn table(#[case] world: World, #[case] expected: Next) {
    assert_eq!(world.next(), expected);
}

/// A plan that runs, as run `r`.
fn runs() -> World {
    World::settled().running("backup", "r").scheduled("backup", "r")
}
