//! Every order of what users, processes and crashes do to an Instance.

use rstest::rstest;

use super::exploration::{Exploration, Explored, Violation};
use super::rules::Without;
use super::situation::{Budget, Event, Kind};
use super::users::{ADMITTED, DENIED, EDITS, Edit, FEW, REFERENCES, Way};

/// How the Instance is created: through admission, and past it.
const CREATED: [bool; 2] = [true, false];

/// Explores, and sees that everything happened that may; whether it did on one path.
fn explore(budget: Budget, created: &[bool]) -> bool {
    let explored = match Exploration::new(None, budget).run(created) {
        Ok(explored) => explored,
        Err(Violation { what, events }) => panic!("{what}\n{events:#?}"),
    };
    let Explored { happened, conflicts, spent } = explored;
    for kind in Kind::ALL.into_iter().filter(|kind| budget.may_happen(*kind)) {
        assert!(happened.iter().any(|event| event.kind() == Some(kind)), "{kind:?} never happened");
    }
    for &admitted in created {
        assert!(happened.contains(&Event::Created { admitted }));
    }
    for &(edit, way) in budget.of.iter().filter(|_| budget.edits > 0) {
        let happened = happened.contains(&Event::Edited(edit, way));
        match DENIED.contains(&(edit, way)) {
            // Before its creation is admitted or completed, an Instance may become anything.
            true => {
                assert!(!happened || budget.edits > 1 || created[0] == CREATED[1], "{edit:?} is admitted")
            }
            // Admission leaves a plan scheduled that a write leaves out.
            false => assert!(
                happened || (edit, way) == (Edit::Cancel, Way::Admitted),
                "{edit:?} {way:?} never happened"
            ),
        }
    }
    assert!(budget.conflicts == 0 || conflicts > 0, "no write met a newer version");
    spent
}

const NONE: Budget = Budget { edits: 0, of: &EDITS, deletions: 0, crashes: 0, sleepers: 0, conflicts: 0 };
const ONE: Budget = Budget { edits: 1, ..NONE };
/// One edit through admission while a process sleeps.
const ASLEEP: Budget = Budget { edits: 1, of: &ADMITTED, sleepers: 1, ..NONE };

#[rstest]
#[case::edits(Budget { edits: 2, of: &FEW, ..NONE })]
#[case::every_edit(ONE)]
#[case::references(Budget { edits: 2, of: &REFERENCES, ..NONE })]
#[case::references_and_crashes(Budget { edits: 2, of: &REFERENCES, crashes: 1, ..NONE })]
#[case::crashes(Budget { edits: 1, of: &FEW, crashes: 1, ..NONE })]
#[case::deletions(Budget { deletions: 1, crashes: 1, ..NONE })]
#[case::sleepers(Budget { conflicts: 1, ..ASLEEP })]
#[case::triggered_asleep(TRIGGERED)]
#[case::updated_asleep(UPDATED)]
#[case::deletions_asleep(Budget { sleepers: 1, deletions: 1, of: &ADMITTED, ..NONE })]
fn no_order_of_events_loses_an_edit(#[case] budget: Budget) {
    assert!(explore(budget, &CREATED[..1]), "on no path everything happened that may");
    if budget.of == EDITS || budget.of == REFERENCES {
        explore(budget, &CREATED[1..]);
    }
}

/// An edit through admission, and one while the webhook is down.
const UP_AND_DOWN: [(Edit, Way); 2] = [(Edit::A, Way::Admitted), (Edit::B, Way::Unseen)];

/// Two edits, the webhook up or down, one deletion, one crash after any write, one process that sleeps before any
/// request and wakes up at any time, one foreign write that it does not see: in every order, from an Instance that
/// is created through admission and past it. With every edit in every way where no process sleeps, and with one
/// such edit while a process sleeps.
#[rstest]
#[case::everything(Budget { edits: 2, of: &UP_AND_DOWN, deletions: 1, crashes: 1, sleepers: 1, conflicts: 1 })]
#[case::every_edit(Budget { edits: 2, deletions: 1, crashes: 1, ..NONE })]
#[case::every_edit_asleep(Budget { sleepers: 1, conflicts: 1, ..ONE })]
#[ignore = "minutes; run by make soak"]
fn no_order_of_many_events_loses_an_edit(#[case] budget: Budget) {
    assert!(explore(budget, &CREATED), "on no path everything happened that may");
}

/// What is found without a rule.
const CHILD: &str = "which is not of the last run";
const UNAPPLIED: &str = "A is 2, and d1 is not of it";
const REFUSED: &str = "on a spec that admission refuses";
const NEVER: &str = "was admitted and never started";

const UNSEEN: Budget = Budget { of: &[(Edit::A, Way::Unseen)], ..ONE };
const BOTH: Budget = Budget { of: &[(Edit::Both, Way::Unseen)], ..ONE };
const REPLACED: Budget = Budget { of: &[(Edit::A, Way::Replaced)], ..ONE };
const IMMUTABLE: Budget = Budget { of: &[(Edit::Immutable, Way::Unseen)], ..ONE };
const FORGED: Budget = Budget { of: &[(Edit::Immutable, Way::Forged)], ..ONE };
/// A plan is triggered, and taken out while it runs.
const CANCELLED: Budget = Budget {
    edits: 2,
    of: &[(Edit::Trigger, Way::Admitted), (Edit::Cancel, Way::Unseen)],
    crashes: 1,
    ..NONE
};
/// One edit while a process sleeps in the run before it.
const OVERTAKEN: Budget = Budget { of: &[(Edit::A, Way::Admitted)], ..ASLEEP };
/// A plan is triggered, while a process sleeps.
const TRIGGERED: Budget = Budget { of: &[(Edit::Trigger, Way::Admitted)], ..ASLEEP };
/// Another plan is scheduled, while a process sleeps that has begun the first one: what was written since is no
/// foreign write that it has to undo.
const UPDATED: Budget = Budget { of: &[(Edit::B, Way::Admitted)], ..ASLEEP };
/// A plan is triggered, and left out of a later write.
const RESYNCED: Budget =
    Budget { edits: 2, of: &[(Edit::Trigger, Way::Admitted), (Edit::Cancel, Way::Admitted)], ..NONE };

/// Each rule is needed: without it, some order of events breaks what it is for, and with it none does.
#[rstest]
#[case::versions(Without::Versions, ASLEEP, CHILD)]
#[case::child_versions(Without::ChildVersions, ASLEEP, CHILD)]
#[case::first_write_creates(Without::FirstWriteCreates, ASLEEP, CHILD)]
#[case::proof(Without::Proof, OVERTAKEN, CHILD)]
#[case::test_of_clear(Without::TestOfClear, TRIGGERED, NEVER)]
#[case::effects_first(Without::EffectsFirst, NONE, "plan deploy is COMPLETE, and d1 is None")]
#[case::stamped_spec(Without::StampedSpec, Budget { crashes: 1, ..UNSEEN }, CHILD)]
#[case::lost_stamp(Without::LostStamp, Budget { crashes: 1, ..REPLACED }, CHILD)]
#[case::basis(Without::Basis, REPLACED, UNAPPLIED)]
#[case::drift(Without::Drift, UNSEEN, UNAPPLIED)]
#[case::owed(Without::Owed, BOTH, "B is 2, and u1 is not of it")]
#[case::put_back(Without::PutBack, CANCELLED, "a plan runs, and nothing goes on")]
#[case::report(Without::Report, IMMUTABLE, "C is 2, which is refused and not reported")]
#[case::judgement(Without::Judgement, FORGED, REFUSED)]
#[case::lock(Without::Lock, Budget { of: &ADMITTED, ..ONE }, "an edit of a locked Instance was admitted")]
#[case::restoration(Without::Restoration, RESYNCED, NEVER)]
#[case::holder(Without::Holder, UPDATED, NEVER)]
#[case::finalizer(Without::Finalizer, Budget { deletions: 1, ..NONE }, "its cleanup has not deleted d1")]
fn each_rule_is_missed(#[case] rule: Without, #[case] budget: Budget, #[case] found: &str) {
    let Err(violation) = Exploration::new(Some(rule), budget).run(&CREATED[..1]) else {
        panic!("nothing is found without {rule:?}")
    };
    println!("without {rule:?}: {}", violation.what);
    assert!(violation.what.contains(found), "{violation:#?}");
    // Those in which a process sleeps are explored above.
    if budget.sleepers == 0 {
        explore(budget, &CREATED[..1]);
    }
}
