//! Trusted specs: the status vouches for them, or the rules of admission accept them.

use interlock_core::api::object::NamespacedName;
use rstest::rstest;

use super::world::{V4, V5, World, failed, forget, report, schedule};
use crate::api::ExecutionStatus::{Complete, FatalError};
use crate::instance::change::next::Next;
use crate::instance::change::next::SpecSource::{Spec, Stamp as Stamped};

/// A last-applied spec that was written by hand, and that admission would deny.
fn forged(world: World) -> World {
    world.stamped_with(&[("A", "forged")]).stamp_refused()
}

#[rstest]
// Created past admission, with a last-applied spec and a plan.
#[case::created_unseen_with_a_uid(forged(World::fresh()).scheduled("deploy", V4), report())]
#[case::created_unseen_with_a_uid_like_ours(forged(World::fresh()).scheduled("deploy", V5), report())]
#[case::created_unseen_without_plan(forged(World::fresh()), Next::Create)]
#[case::created_unseen_and_stamped_as_the_spec(
    World::fresh().edited(&[("A", "forged")]).stamped_as_spec().refused().scheduled("deploy", V5), report())]
#[case::created_and_accepted(
    World::fresh().stamped_with(&[("A", "2")]).scheduled("deploy", V5), Next::Start { source: Stamped })]
// A trigger on an Instance with a baseline.
#[case::a_trigger(forged(World::settled()).scheduled("backup", V4), report())]
#[case::a_trigger_without_uid(forged(World::settled()).scheduled("backup", ""), report())]
#[case::a_trigger_on_an_unstamped_spec(
    World::settled().edited(&[("A", "2")]).without_room().refused().scheduled("backup", V4), report())]
#[case::a_trigger_on_what_was_carried_out(
    World::settled().stamp_refused().refused().scheduled("backup", V4), Next::Start { source: Stamped })]
#[case::on_an_instance_of_an_older_kudo(
    forged(World::settled().no_baseline()).scheduled("backup", V4), report())]
#[case::back_to_what_was_carried_out_before(
    World::settled().carried_out_before(&[("A", "0")]).stamped_with(&[("A", "0")]).stamp_refused()
        .scheduled("backup", V5), Next::Start { source: Stamped })]
#[case::back_to_something_else(
    World::settled().carried_out_before(&[("A", "0")]).stamped_with(&[("A", "forged")]).stamp_refused()
        .scheduled("backup", V5), report())]
// A running entry.
#[case::resumes(
    forged(World::settled()).running("backup", V4).scheduled("backup", V4), Next::Continue { source: Spec })]
#[case::scheduled_anew_on_the_spec_that_it_started_with(
    forged(World::settled()).running("backup", V4).scheduled("backup", V5), schedule("backup", Spec))]
#[case::put_back_with_another_stamp(
    forged(World::settled()).running("backup", V4), schedule("backup", Spec))]
// Requests.
#[case::a_retry(forged(failed()).requested("retry/r/nonce-01"),
    forget(Some("the spec that it would run on is refused: no (rule some-rule)")))]
#[case::a_retry_that_was_scheduled(
    forged(failed()).scheduled("backup", V5).requested("retry/r/nonce-01"), report())]
// Deletion.
#[case::cleanup_runs_on_the_spec(forged(World::settled()).deleted(false, 0), schedule("cleanup", Spec))]
fn a_stamp_is_text(#[case] world: World, #[case] expected: Next) {
    assert_eq!(world.next(), expected);
}

/// Admission would deny both the spec and the last-applied one: the run ends, as its spec is lost.
#[test]
fn a_run_that_is_scheduled_anew_on_what_is_refused_ends() {
    let world = forged(World::settled().edited(&[("A", "2")])).refused();
    let next = world.running("backup", V4).scheduled("backup", V5).next();
    assert!(matches!(&next, Next::End(ended) if ended.contains_key("backup")), "{next:?}");
}

#[test]
fn nothing_is_cleaned_up_on_a_spec_that_is_refused() {
    let world = World::settled().edited(&[("A", "2")]).stamp_lost().refused().deleted(false, 0);
    let Next::RemoveFinalizer { warning: Some(why) } = world.next() else { panic!("{:?}", world.next()) };
    assert_eq!(why, "cleanup was not run: no");
}

/// Every start and resumption of a run checks the permission to use a package of another namespace.
#[rstest]
#[case::created(World::fresh().stamp_lost().half_created())]
#[case::created_through_admission(World::fresh().scheduled("deploy", V5))]
#[case::drift(World::settled().edited(&[("A", "2")]))]
#[case::a_trigger(World::settled().scheduled("backup", V4))]
#[case::a_run(World::settled().running("backup", V4).scheduled("backup", V4))]
#[case::scheduled_anew(World::settled().running("backup", V4).scheduled("backup", V5))]
#[case::a_retry(failed().scheduled("backup", V5).requested("retry/r/nonce-01"))]
#[case::cleanup(World::settled().deleted(false, 0))]
fn a_reference_is_asked_about(#[case] world: World) {
    assert_eq!(world.clone().reference_unknown().next(), Next::CheckAccess(NamespacedName::new("ns", "v1")));
    assert_eq!(world.reference_refused().next(), report());
}

/// Steps that start no run check no permission.
#[rstest]
#[case::at_rest(World::settled(), Next::Idle)]
#[case::finished(World::settled().ran("deploy", "d", Complete).scheduled("deploy", "d"), Next::Clear)]
#[case::put_back(
    World::settled().running("backup", V5), Next::Restore { plan: "backup".to_owned(), uid: V5.to_owned() })]
#[case::adopted(World::fresh().stamp_lost().ran("deploy", "d", FatalError), Next::Adopt)]
fn a_reference_is_not_asked_about(#[case] world: World, #[case] expected: Next) {
    assert_eq!(world.reference_unknown().next(), expected);
}

/// A deletion must end: it waits for a missing permission only for a while.
#[test]
fn a_deletion_does_not_wait_for_a_right_for_ever() {
    let world = World::settled().reference_refused().deleted(false, 0).long_deleted();
    let Next::RemoveFinalizer { warning: Some(why) } = world.next() else { panic!("{:?}", world.next()) };
    assert_eq!(why, "cleanup was not run: no");
}
