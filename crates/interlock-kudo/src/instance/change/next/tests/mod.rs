//! The drift table, one case a row and a sentence of `docs/drift.md`, "Drift".

use rstest::rstest;

use self::world::{V4, V5, World, report, schedule};
use super::Next;
use super::SpecSource::{Spec, Stamp as Stamped};
use crate::api::ExecutionStatus::{FatalError, InProgress};
use crate::instance::change::baseline::PendingPlan;

mod accepted;
mod deletion;
mod requests;
mod world;

#[rstest]
#[case::nothing_to_do(World::settled(), Next::Idle)]
// The rows of the table.
#[case::no_basis_but_a_finished_run_is_adopted(World::settled().no_baseline().stamp_lost(), Next::Adopt)]
#[case::no_basis_but_a_failed_run_is_adopted(
    World::fresh().stamp_lost().ran("deploy", "d", FatalError), Next::Adopt)]
#[case::created_unseen(World::fresh().stamp_lost().half_created(), Next::Create)]
#[case::copied_with_stamp_and_plan_name(World::fresh().half_created().scheduled("backup", V4), Next::Create)]
#[case::copied_with_the_stamp_of_another(
    World::fresh().edited(&[("A", "9")]).half_created().scheduled("deploy", V4), Next::Create)]
#[case::created_through_admission(World::fresh().scheduled("deploy", V5), Next::Start { source: Spec })]
#[case::created_through_admission_and_triggered_past_it_gets_a_uid(
    World::fresh().scheduled("deploy", ""), schedule("deploy", Stamped))]
#[case::created_unseen_and_refused(World::fresh().stamp_lost().half_created().refused(), report())]
#[case::stamp_missing(World::settled().stamp_lost(), Next::Restamp)]
#[case::stamp_of_something_else(
    World::settled().edited(&[("A", "2")]).stamped_as_spec().edited(&[("A", "1"), ("B", "1")]), Next::Restamp)]
#[case::one_trigger(World::settled().edited(&[("A", "2"), ("B", "1")]), schedule("backup", Spec))]
#[case::one_trigger_by_removal(World::settled().edited(&[("A", "1")]), schedule("audit", Spec))]
#[case::one_trigger_of_a_put_that_dropped_the_stamp(
    World::settled().edited(&[("A", "2"), ("B", "1")]).stamp_lost(), schedule("backup", Spec))]
#[case::several_triggers_by_name(World::settled().edited(&[("A", "2"), ("B", "2")]), schedule("audit", Spec))]
#[case::deploy_before_others(
    World::settled().edited(&[("A", "2"), ("B", "1"), ("D", "1")]), schedule("deploy", Spec))]
#[case::a_parameter_without_trigger(
    World::settled().edited(&[("A", "1"), ("B", "1"), ("PLAIN", "1")]), schedule("update", Spec))]
#[case::the_queue_goes_on(World::settled().with_pending(&[("backup", PendingPlan::Queued)]), schedule("backup", Spec))]
#[case::failed_plans_are_not_in_the_queue(World::settled().with_pending(&[("backup", PendingPlan::Failed)]), Next::Idle)]
#[case::the_queue_in_order(
    World::settled().with_pending(&[("audit", PendingPlan::Queued), ("update", PendingPlan::Queued), ("deploy", PendingPlan::Failed)]),
    schedule("update", Spec))]
#[case::drift_and_queue_together(
    World::settled().with_pending(&[("audit", PendingPlan::Queued)]).edited(&[("A", "2"), ("B", "1")]), schedule("audit", Spec))]
#[case::only_a_bare_hash(World::settled().bare_hash().edited(&[("A", "2")]), schedule("deploy", Spec))]
#[case::another_version(World::settled().on_version("v2"), schedule("upgrade", Spec))]
#[case::another_version_without_upgrade(
    World::settled().packages_without("upgrade").on_version("v2"), schedule("update", Spec))]
#[case::another_version_before_parameters(
    World::settled().edited(&[("A", "2"), ("B", "1")]).on_version("v2"), schedule("upgrade", Spec))]
#[case::refused_is_neither_carried_out_nor_reverted(
    World::settled().edited(&[("A", "2")]).refused(), report())]
#[case::refused_while_something_is_owed_runs_that_on_the_stamp(
    World::settled().with_pending(&[("backup", PendingPlan::Queued)]).edited(&[("A", "2")]).refused(),
    schedule("backup", Stamped))]
#[case::mended_again(World::settled().refused(), Next::Idle)]
#[case::unknown_parameter_needs_no_plan(
    World::settled().edited(&[("A", "1"), ("B", "1"), ("NOBODY", "1")]), Next::Adopt)]
#[case::a_version_that_is_not_there(
    World::settled().on_version("v3"), Next::AwaitVersion("ns/v3".to_owned()))]
// Scheduled and not begun.
#[case::an_accepted_edit(
    World::settled().edited(&[("A", "2"), ("B", "1")]).stamped_as_spec().scheduled("backup", V5),
    Next::Start { source: Stamped })]
#[case::a_direct_trigger(World::settled().scheduled("backup", V5), Next::Start { source: Stamped })]
#[case::a_trigger_without_stamp_on_the_basis(
    World::settled().stamp_lost().scheduled("backup", V5), Next::Start { source: Spec })]
#[case::a_trigger_on_an_unstamped_drifted_spec_is_dropped(
    World::settled().edited(&[("A", "2")]).stamp_lost().scheduled("backup", V4), Next::DropTrigger)]
#[case::a_trigger_on_a_drifted_spec_with_a_stamp_runs_on_the_stamp(
    World::settled().edited(&[("A", "2")]).scheduled("backup", V4), Next::Start { source: Stamped })]
#[case::a_trigger_whose_stamp_is_text_only_is_dropped(
    World::settled().stamp_text_only().edited(&[("A", "2")]).scheduled("backup", V4), Next::DropTrigger)]
#[case::a_trigger_without_a_uid_gets_one(World::settled().scheduled("backup", ""), schedule("backup", Stamped))]
#[case::a_trigger_without_its_package_waits(
    World::settled().without_package().scheduled("backup", V5), Next::AwaitVersion("ns/v1".to_owned()))]
#[case::a_trigger_on_an_adopted_old_instance_is_stamped_first(
    World::settled().no_baseline().stamp_lost().scheduled("backup", V4), schedule("backup", Spec))]
#[case::an_accepted_edit_of_an_old_instance(
    World::settled().no_baseline().scheduled("backup", V5), Next::Start { source: Stamped })]
#[case::finished(World::settled().scheduled("deploy", "d0"), Next::Clear)]
#[case::failed(World::settled().ran("deploy", "d1", FatalError).scheduled("deploy", "d1"), Next::Clear)]
#[case::finished_with_another_uid_is_a_new_run(
    World::settled().scheduled("deploy", "d1"), Next::Start { source: Stamped })]
// Too large for the annotation.
#[case::no_room_and_nothing_to_do(World::settled().without_room(), Next::Idle)]
#[case::no_room_created(World::fresh().without_room().scheduled("deploy", V5), Next::Start { source: Spec })]
#[case::no_room_and_an_accepted_edit(
    World::settled().edited(&[("A", "2")]).without_room().scheduled("backup", V5), Next::Start { source: Spec })]
// Running.
#[case::resumes(
    World::settled().running("backup", V5).scheduled("backup", V5), Next::Continue { source: Stamped })]
#[case::goes_on_though_the_stamp_is_lost_while_the_spec_is_the_same(
    World::settled().stamp_lost().running("backup", V5).scheduled("backup", V5), Next::Continue { source: Spec })]
#[case::edited_while_it_runs_goes_on_with_what_it_started_with(
    World::settled().edited(&[("A", "2")]).running("backup", V5).scheduled("backup", V5),
    Next::Continue { source: Stamped })]
#[case::edited_and_stamp_dropped_starts_anew(
    World::settled().edited(&[("A", "2")]).stamp_lost().running("backup", V5).scheduled("backup", V5),
    schedule("backup", Spec))]
#[case::put_back(World::settled().running("backup", V5), Next::Restore { plan: "backup".to_owned(), uid: V5.to_owned() })]
#[case::put_back_over_another_plan(
    World::settled().running("backup", V5).scheduled("audit", V4),
    Next::Restore { plan: "backup".to_owned(), uid: V5.to_owned() })]
#[case::put_back_over_another_uid(
    World::settled().running("backup", V5).scheduled("backup", V4),
    Next::Restore { plan: "backup".to_owned(), uid: V5.to_owned() })]
#[case::scheduled_anew(
    World::settled().running("backup", "r").scheduled("backup", V5), Next::Start { source: Stamped })]
#[case::scheduled_anew_on_a_run_of_an_older_kudo(
    World::settled().no_baseline().running("deploy", V4).scheduled("deploy", V5), Next::Start { source: Stamped })]
#[case::not_put_back_when_the_stamp_is_lost(
    World::settled().stamp_lost().running("backup", V5), schedule("backup", Spec))]
#[case::a_run_of_an_older_kudo_is_taken_from_its_first_step(
    World::fresh().stamp_lost().running("deploy", V4).scheduled("deploy", V4), schedule("deploy", Spec))]
#[case::a_run_of_an_older_kudo_that_nothing_names(
    World::fresh().stamp_lost().running("deploy", V4), schedule("deploy", Spec))]
fn table(#[case] world: World, #[case] expected: Next) {
    assert_eq!(world.next(), expected);
}

#[rstest]
#[case::refused("ended: the spec it started with is lost", World::settled().edited(&[("A", "2")]).stamp_lost()
    .refused().running("backup", V5))]
#[case::deleted("ended: the Instance is being deleted", World::settled().running("backup", V5)
    .scheduled("backup", V5).deleted(false, 0))]
#[case::two_at_once("ended: plan deploy is the one", World::settled().running("backup", V5).running("deploy", V4)
    .scheduled("deploy", V4))]
#[case::two_at_once_and_neither_named("ended: plan deploy is the one", World::settled().running("backup", V5)
    .entry("deploy", V4, InProgress, 1001))]
fn a_run_ends(#[case] text: &str, #[case] world: World) {
    let Next::End(ended) = world.next() else { panic!("{:?}", world.next()) };
    assert_eq!(ended.keys().collect::<Vec<_>>(), ["backup"]);
    assert!(ended["backup"].starts_with(text), "{ended:?}");
}

/// Whatever the facts are, no run starts on a refused spec.
#[test]
fn a_refused_spec_is_never_scheduled() {
    let base = World::settled().edited(&[("A", "2")]).refused();
    let worlds = [
        base.clone(),
        base.clone().stamp_lost(),
        base.clone().bare_hash(),
        base.clone().on_version("v2"),
        base.clone().with_pending(&[("backup", PendingPlan::Queued)]),
        base.clone().with_pending(&[("backup", PendingPlan::Queued)]).stamp_lost(),
        base.running("backup", V5).stamp_lost(),
    ];
    for world in worlds {
        let next = world.next();
        assert!(
            !matches!(next, Next::Schedule { source: Spec, .. } | Next::Create | Next::Adopt),
            "{next:?}"
        );
    }
}

/// Every step that only writes the Instance must make progress: its execution never leads back to
/// the same step.
#[rstest]
#[case::older_kudo(World::fresh().stamp_lost().running("deploy", V4).scheduled("deploy", V4))]
#[case::older_kudo_unnamed(World::fresh().stamp_lost().running("deploy", V4))]
#[case::stamp_lost(World::settled().stamp_lost().running("backup", V4))]
#[case::stamp_lost_and_edited(World::settled().edited(&[("A", "2")]).stamp_lost().running("backup", V4))]
#[case::put_back(World::settled().running("backup", V4).scheduled("audit", V5))]
#[case::drift(World::settled().edited(&[("A", "2")]))]
#[case::drift_without_room(World::settled().edited(&[("A", "2")]).without_room())]
#[case::created(World::fresh().stamp_lost().half_created())]
#[case::created_without_room(World::fresh().without_room().half_created())]
#[case::no_uid(World::settled().scheduled("backup", ""))]
#[case::deleted(World::settled().deleted(false, 0))]
fn a_written_step_is_not_asked_for_again(#[case] mut world: World) {
    let mut said = Vec::new();
    loop {
        let next = world.next();
        assert!(!said.contains(&next), "{next:?} again");
        match &next {
            Next::Schedule { plan, source } => {
                if *source == Spec && world.stampable {
                    world = world.stamped_as_spec();
                }
                world = world.scheduled(&plan.clone(), "0b0a2e0c-1111-5222-8333-444455556666");
            }
            Next::Create => {
                world.whole = true;
                if world.stampable {
                    world = world.stamped_as_spec();
                }
                world = world.scheduled("deploy", V5);
            }
            Next::Restore { plan, uid } => world = world.scheduled(&plan.clone(), &uid.clone()),
            Next::Start { .. } | Next::Continue { .. } => return,
            other => panic!("{other:?}"),
        }
        said.push(next);
    }
}
