//! Deletions, one case a row.

use rstest::rstest;

use super::world::{V5, World, schedule};
use crate::api::ExecutionStatus;
use crate::api::ExecutionStatus::{Complete, FatalError, InProgress, Pending};
use crate::instance::change::next::Next;
use crate::instance::change::next::SpecSource::Stamp as Stamped;

#[rstest]
#[case::deletion_without_finalizer(World::settled().without_finalizer().deleted(false, 0), Next::Idle)]
#[case::deletion_runs_cleanup(World::settled().deleted(false, 0), schedule("cleanup", Stamped))]
#[case::deletion_starts_cleanup(
    World::settled().scheduled("cleanup", V5).deleted(false, 0), Next::Start { source: Stamped })]
#[case::without_such_a_plan(
    World::settled().packages_without("cleanup").deleted(false, 0), Next::RemoveFinalizer { warning: None })]
#[case::cleanup_goes_on(
    World::settled().entry("cleanup", V5, InProgress, 2001).scheduled("cleanup", V5).deleted(false, 0),
    Next::Continue { source: Stamped })]
#[case::cleanup_is_put_back(
    World::settled().entry("cleanup", V5, InProgress, 2001).deleted(false, 0),
    Next::Restore { plan: "cleanup".to_owned(), uid: V5.to_owned() })]
fn table(#[case] world: World, #[case] expected: Next) {
    assert_eq!(world.next(), expected);
}

/// The named execution identifies the cleanup of this deletion: the time of its entry is from our
/// clock, that of the deletion from the API server's, and either may be ahead.
#[rstest]
#[case::done(true, Complete, 0, Next::RemoveFinalizer { warning: None })]
#[case::failed(true, FatalError, 1, Next::RetryCleanup { failures: 1 })]
#[case::done_before(false, Complete, 0, schedule("cleanup", Stamped))]
#[case::failed_before(false, FatalError, 3, schedule("cleanup", Stamped))]
fn whose_clock_is_ahead_decides_nothing(
    #[case] named: bool,
    #[case] status: ExecutionStatus,
    #[case] failures: usize,
    #[case] expected: Next,
    #[values(0, 1_000_000_000, 4_000_000_000)] at: i64,
) {
    let world = World::settled().entry("cleanup", V5, status, at).deleted(false, failures);
    let world = if named { world.scheduled("cleanup", V5) } else { world };
    assert_eq!(world.next(), expected);
}

#[rstest]
#[case::namespace("namespace is being terminated", World::settled().deleted(true, 0))]
#[case::package_gone("OperatorVersion ns/v1 is gone", World::settled().without_package().deleted(false, 0))]
#[case::aborted("cleanup was aborted by alice: because", World::settled().entry("cleanup", "r", FatalError, 2001)
    .scheduled("cleanup", "r").deleted(false, 1).requested("abort/r/nonce-01"))]
#[case::what_is_left("Not done: gave up; step p.two (denied); step p.three", World::settled()
    .entry("cleanup", V5, FatalError, 2001)
    .steps("cleanup", "gave up", &[("one", Complete, None), ("two", FatalError, Some("denied")), ("three", Pending, None)])
    .scheduled("cleanup", V5).deleted(false, 3))]
#[case::give_up("cleanup failed 3 times",
    World::settled().entry("cleanup", V5, FatalError, 2001).scheduled("cleanup", V5).deleted(false, 3))]
fn the_finalizer_comes_off_with_a_warning(#[case] text: &str, #[case] world: World) {
    let Next::RemoveFinalizer { warning: Some(warning) } = world.next() else { panic!("{:?}", world.next()) };
    assert!(warning.contains(text), "{warning}");
}
