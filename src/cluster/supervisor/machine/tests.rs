use proptest::prelude::*;
use rstest::rstest;

use super::super::state::{ApiVerb, UnavailableAnswer};
use super::*;
use crate::cluster::crds::Absence;

const SECOND: Duration = Duration::from_secs(1);

fn kind(name: &str, finalized: bool) -> RequiredKind {
    RequiredKind {
        name: name.to_owned(),
        finalized,
        watch_state: WatchState::Synced,
        terminating: false,
        dropped: Vec::new(),
        crd_identity: Epoch(1),
    }
}

fn facts() -> CapabilityFacts {
    CapabilityFacts {
        mode: Some(Mode::Auto),
        definitions_known: true,
        required: vec![kind("instances.kudo.dev", true), kind("operatorversions.kudo.dev", false)],
        at_work: Work::None,
        waited: Duration::ZERO,
        next_epoch: Epoch(7),
    }
}

fn with(change: impl FnOnce(&mut CapabilityFacts)) -> CapabilityFacts {
    let mut facts = facts();
    change(&mut facts);
    facts
}

fn gone(facts: &mut CapabilityFacts, i: usize) {
    facts.required[i].watch_state = WatchState::Absent(Absence::Missing);
}

/// Steps until nothing changes; the controller does its assigned work at once.
fn run_until_stable(
    machine: &mut Machine,
    facts: &mut CapabilityFacts,
) -> (CapabilityPhase, Work, Vec<CapabilityTransition>) {
    let mut turns = Vec::new();
    for _ in 0..10 {
        let before = (machine.state().clone(), facts.at_work);
        let step = machine.step(facts);
        turns.extend(step.transition);
        facts.at_work = step.work;
        if before == (machine.state().clone(), facts.at_work) {
            return (machine.state().clone(), step.work, turns);
        }
    }
    panic!("it never settles: {:?}", machine.state());
}

fn running() -> Machine {
    let mut machine = Machine::default();
    let (state, work, turns) = run_until_stable(&mut machine, &mut facts());
    assert_eq!(
        (state, work, turns),
        (CapabilityPhase::Running(Epoch(7)), Work::Full, vec![CapabilityTransition::Started])
    );
    machine
}

fn names(state: &CapabilityPhase) -> String {
    format!("{} {}", state.reason(), state.message())
}

/// The idle state of a capability, from nothing.
#[rstest]
#[case::nothing_is_known(|f: &mut CapabilityFacts| f.definitions_known = false, "Unknown", Work::None)]
#[case::off(|f: &mut CapabilityFacts| f.mode = Some(Mode::Off), "Disabled", Work::StatusOnly)]
#[case::off_and_not_read(
    |f: &mut CapabilityFacts| { f.mode = Some(Mode::Off); f.required[0].watch_state = WatchState::Listing; }, "Disabled", Work::None
)]
#[case::off_and_leaving(
    |f: &mut CapabilityFacts| { f.mode = Some(Mode::Off); f.required[0].terminating = true; }, "Disabled", Work::Deletions
)]
#[case::off_and_leaving_without_its_package(
    |f: &mut CapabilityFacts| { f.mode = Some(Mode::Off); f.required[0].terminating = true; gone(f, 1); }, "Disabled", Work::Deletions
)]
#[case::off_and_leaving_and_packages_not_listed(
    |f: &mut CapabilityFacts| { f.mode = Some(Mode::Off); f.required[0].terminating = true; f.required[1].watch_state = WatchState::Listing; },
    "Disabled", Work::StatusOnly
)]
#[case::off_and_another_leaving(
    |f: &mut CapabilityFacts| { f.mode = Some(Mode::Off); f.required[1].terminating = true; }, "Disabled", Work::StatusOnly
)]
#[case::not_known_whether_off(|f: &mut CapabilityFacts| f.mode = None, "Starting", Work::None)]
#[case::not_known_whether_off_and_missing(|f: &mut CapabilityFacts| { f.mode = None; gone(f, 1); }, "Starting", Work::None)]
#[case::off_and_unknown(|f: &mut CapabilityFacts| { f.mode = Some(Mode::Off); f.definitions_known = false; }, "Disabled", Work::StatusOnly)]
#[case::both_missing(|f: &mut CapabilityFacts| { gone(f, 0); gone(f, 1); }, "Waiting", Work::None)]
#[case::one_missing(|f: &mut CapabilityFacts| gone(f, 0), "Waiting", Work::None)]
#[case::only_deletions_end(|f: &mut CapabilityFacts| gone(f, 1), "Waiting", Work::Deletions)]
#[case::terminating(|f: &mut CapabilityFacts| f.required[0].terminating = true, "Draining", Work::Deletions)]
#[case::another_leaving(|f: &mut CapabilityFacts| f.required[1].terminating = true, "Waiting", Work::Deletions)]
#[case::leaving_and_packages_not_listed(
    |f: &mut CapabilityFacts| { f.required[0].terminating = true; f.required[1].watch_state = WatchState::Listing; }, "Draining", Work::None
)]
#[case::refused(|f: &mut CapabilityFacts| f.required[1].watch_state = WatchState::Forbidden(ApiVerb::List), "Forbidden", Work::StatusOnly)]
#[case::refused_itself(|f: &mut CapabilityFacts| f.required[0].watch_state = WatchState::Forbidden(ApiVerb::List), "Forbidden", Work::None)]
#[case::missing_before_refused(
    |f: &mut CapabilityFacts| { gone(f, 0); f.required[1].watch_state = WatchState::Forbidden(ApiVerb::List); }, "Waiting", Work::None
)]
#[case::listing(|f: &mut CapabilityFacts| f.required[1].watch_state = WatchState::Listing, "Starting", Work::None)]
#[case::broken(|f: &mut CapabilityFacts| f.required[1].watch_state = WatchState::Broken("500".into()), "Starting", Work::None)]
#[case::manual_at_the_first_look(|f: &mut CapabilityFacts| f.mode = Some(Mode::Manual), "Running", Work::Full)]
fn from_nothing(#[case] change: fn(&mut CapabilityFacts), #[case] expected: &str, #[case] work: Work) {
    let mut machine = Machine::default();
    let (state, did, _) = run_until_stable(&mut machine, &mut with(change));
    assert_eq!((state.name(), did), (expected, work));
}

/// The next state of a running capability, once its controller has finished its work.
#[rstest]
#[case::nothing(|_: &mut CapabilityFacts| (), "Running", Work::Full, false)]
#[case::definitions_unknown(|f: &mut CapabilityFacts| f.definitions_known = false, "Unknown", Work::Full, false)]
#[case::unknown_and_all_gone(
    |f: &mut CapabilityFacts| { f.definitions_known = false; gone(f, 0); gone(f, 1); }, "Unknown", Work::Full, false
)]
#[case::off(|f: &mut CapabilityFacts| f.mode = Some(Mode::Off), "Disabled", Work::StatusOnly, true)]
#[case::missing(|f: &mut CapabilityFacts| gone(f, 0), "Waiting", Work::None, true)]
#[case::input_missing(|f: &mut CapabilityFacts| gone(f, 1), "Waiting", Work::Deletions, true)]
#[case::terminating(|f: &mut CapabilityFacts| f.required[0].terminating = true, "Draining", Work::Deletions, true)]
#[case::refused(|f: &mut CapabilityFacts| f.required[0].watch_state = WatchState::Forbidden(ApiVerb::Watch), "Forbidden", Work::None, true)]
#[case::broken(|f: &mut CapabilityFacts| f.required[0].watch_state = WatchState::Broken("500".into()), "Degraded", Work::Full, false)]
#[case::another_world(|f: &mut CapabilityFacts| f.required[0].crd_identity = Epoch(2), "Running", Work::Full, true)]
#[case::another_world_not_listed(
    |f: &mut CapabilityFacts| { f.required[0].crd_identity = Epoch(2); f.required[0].watch_state = WatchState::Listing; }, "Starting", Work::None, true
)]
#[case::manual(|f: &mut CapabilityFacts| f.mode = Some(Mode::Manual), "Running", Work::Full, false)]
fn from_running(
    #[case] change: fn(&mut CapabilityFacts),
    #[case] expected: &str,
    #[case] work: Work,
    #[case] stops: bool,
) {
    let mut machine = running();
    let mut facts = with(change);
    facts.at_work = Work::Full;
    facts.next_epoch = Epoch(8);
    let (state, did, turns) = run_until_stable(&mut machine, &mut facts);
    assert_eq!((state.name(), did), (expected, work));
    assert_eq!(turns.contains(&CapabilityTransition::Stopped), stops, "{turns:?}");
    if stops && state.epoch().is_some() && expected != "Draining" {
        assert_eq!(state.epoch(), Some(Epoch(8)), "a new start is a new epoch");
    }
}

#[test]
fn draining_lasts_while_the_controller_is_at_work() {
    let mut machine = running();
    let mut facts = with(|f| gone(f, 0));
    facts.at_work = Work::Full;
    for _ in 0..3 {
        assert_eq!(machine.step(&facts).work, Work::None, "told to stop");
        assert_eq!(*machine.state(), CapabilityPhase::Draining(Epoch(7)));
    }
    facts = super::tests::facts();
    facts.at_work = Work::Full;
    let _ = machine.step(&facts);
    assert_eq!(*machine.state(), CapabilityPhase::Draining(Epoch(7)), "also when the kind is back meanwhile");
    facts.at_work = Work::None;
    facts.next_epoch = Epoch(8);
    assert_eq!(run_until_stable(&mut machine, &mut facts).0, CapabilityPhase::Running(Epoch(8)));
}

#[test]
fn a_definition_that_is_deleted_is_drained_until_it_is_gone() {
    let mut machine = running();
    let mut facts = with(|f| f.required[0].terminating = true);
    facts.at_work = Work::Full;
    assert_eq!(run_until_stable(&mut machine, &mut facts).1, Work::Deletions);
    gone(&mut facts, 1);
    assert_eq!(run_until_stable(&mut machine, &mut facts).1, Work::Deletions, "without its package as well");
    gone(&mut facts, 0);
    let (state, work, _) = run_until_stable(&mut machine, &mut facts);
    assert_eq!((state.name(), work), ("Waiting", Work::None));
}

#[test]
fn a_start_that_takes_too_long_is_a_fault_and_goes_on_when_it_can() {
    let mut machine = Machine::default();
    let mut facts = with(|f| f.required[0].watch_state = WatchState::Listing);
    assert_eq!(run_until_stable(&mut machine, &mut facts).0.name(), "Starting");
    facts.waited = START_DEADLINE - SECOND;
    assert_eq!(run_until_stable(&mut machine, &mut facts).0.name(), "Starting");
    facts.waited = START_DEADLINE;
    let (state, work, turns) = run_until_stable(&mut machine, &mut facts);
    assert_eq!((state.name(), work, turns), ("Degraded", Work::None, vec![]), "nothing runs on a part");
    facts.definitions_known = false;
    assert_eq!(run_until_stable(&mut machine, &mut facts).1, Work::None);
    facts.definitions_known = true;
    facts.required[0].watch_state = WatchState::Synced;
    facts.waited = Duration::ZERO;
    assert_eq!(run_until_stable(&mut machine, &mut facts).1, Work::Full);
}

/// It never ran, so objects with our finalizer, if they can be read, get a status.
#[rstest]
#[case::broken(WatchState::Broken("500".into()))]
#[case::slow(WatchState::Listing)]
fn a_kind_that_cannot_be_listed_is_reported_once_it_is_a_fault(#[case] watch_state: WatchState) {
    let mut machine = Machine::default();
    let mut facts = with(|f| f.required[1].watch_state = watch_state);
    let (state, work, _) = run_until_stable(&mut machine, &mut facts);
    assert_eq!((state.name(), work), ("Starting", Work::None));
    facts.waited = START_DEADLINE;
    let (state, work, turns) = run_until_stable(&mut machine, &mut facts);
    assert_eq!((state.name(), work, turns), ("Degraded", Work::StatusOnly, vec![]));
    facts.required[1].watch_state = WatchState::Synced;
    assert_eq!(run_until_stable(&mut machine, &mut facts).1, Work::Full);
}

#[test]
fn manual_does_not_start_by_what_others_install() {
    let mut machine = running();
    let mut facts = with(|f| {
        f.mode = Some(Mode::Manual);
        gone(f, 0);
    });
    facts.at_work = Work::Full;
    assert_eq!(run_until_stable(&mut machine, &mut facts).0.reason(), "CRDMissing");
    facts.required[0].watch_state = WatchState::Synced;
    let (state, work, _) = run_until_stable(&mut machine, &mut facts);
    assert_eq!((state.reason(), work), ("Manual", Work::StatusOnly));
    facts.mode = Some(Mode::Auto);
    assert_eq!(run_until_stable(&mut machine, &mut facts).0.name(), "Running");
    facts.mode = Some(Mode::Manual);
    assert_eq!(run_until_stable(&mut machine, &mut facts).0.name(), "Running", "what runs goes on");
}

#[test]
fn refused_goes_on_when_the_right_is_back() {
    let mut machine = running();
    let mut facts = with(|f| f.required[0].watch_state = WatchState::Forbidden(ApiVerb::Watch));
    facts.at_work = Work::Full;
    let (state, ..) = run_until_stable(&mut machine, &mut facts);
    assert_eq!(
        names(&state),
        "Forbidden this process may not watch instances.kudo.dev; grant it the verbs get, list and watch"
    );
    assert_eq!(run_until_stable(&mut machine, &mut super::tests::facts()).0.name(), "Running");
}

#[rstest]
#[case(Absence::Missing, "CRDMissing CustomResourceDefinition instances.kudo.dev is not installed")]
#[case(
    Absence::NotEstablished("names are taken".into()),
    "NotEstablished CustomResourceDefinition instances.kudo.dev is not established: names are taken"
)]
#[case(
    Absence::NotServed { wanted: vec!["v1".into()], served: vec!["v2".into()] },
    "VersionNotServed CustomResourceDefinition instances.kudo.dev serves v2, not v1"
)]
fn what_is_missing_is_named(#[case] absence: Absence, #[case] text: &str) {
    let mut machine = Machine::default();
    let (state, ..) = run_until_stable(
        &mut machine,
        &mut with(|f| f.required[0].watch_state = WatchState::Absent(absence.clone())),
    );
    assert_eq!(names(&state), text);
}

/// Design section 8, the last paragraph on capabilities.
#[rstest]
#[case(CapabilityPhase::Disabled, 0, "allow")]
#[case(CapabilityPhase::Waiting(vec![]), 0, "allow")]
#[case(CapabilityPhase::Starting(Epoch(1)), 7, "503")]
#[case(CapabilityPhase::Starting(Epoch(1)), 8, "in-object")]
#[case(CapabilityPhase::Unknown(None), 7, "503")]
#[case(CapabilityPhase::Unknown(None), 8, "in-object")]
#[case(CapabilityPhase::Unknown(Some(Epoch(1))), 900, "judge")]
#[case(CapabilityPhase::Forbidden(RefusedKind { name: "a".into(), verb: ApiVerb::List }), 0, "in-object")]
#[case(CapabilityPhase::Degraded(Epoch(1), "why".into()), 0, "in-object")]
#[case(CapabilityPhase::Running(Epoch(1)), 0, "judge")]
#[case(CapabilityPhase::Draining(Epoch(1)), 0, "judge")]
fn what_admission_answers(#[case] state: CapabilityPhase, #[case] seconds: u32, #[case] expected: &str) {
    let report = match UnavailableAnswer::of("instances", &state, SECOND * seconds) {
        UnavailableAnswer::Judge => "judge",
        UnavailableAnswer::InObjectOnly(_) => "in-object",
        UnavailableAnswer::NotYet => "503",
        UnavailableAnswer::Allow(_) => "allow",
    };
    assert_eq!(report, expected);
}

fn any_state() -> impl Strategy<Value = WatchState> {
    prop_oneof![
        4 => Just(WatchState::Synced),
        1 => Just(WatchState::Listing),
        1 => Just(WatchState::Absent(Absence::Missing)),
        1 => Just(WatchState::Forbidden(ApiVerb::List)),
        1 => Just(WatchState::Broken("500".to_owned())),
    ]
}

fn any_kind(finalized: bool) -> impl Strategy<Value = RequiredKind> {
    (any_state(), prop::bool::weighted(0.1), 1..3u64).prop_map(
        move |(watch_state, terminating, crd_identity)| RequiredKind {
            watch_state,
            terminating,
            crd_identity: Epoch(crd_identity),
            ..kind("kind", finalized)
        },
    )
}

prop_compose! {
    fn any_facts()(
        mode in prop_oneof![
            6 => Just(Some(Mode::Auto)),
            1 => Just(Some(Mode::Manual)),
            1 => Just(Some(Mode::Off)),
            1 => Just(None),
        ],
        definitions_known in prop::bool::weighted(0.8),
        first in any_kind(true),
        second in any_kind(false),
        seconds in 0..90u32,
        obeys in prop::bool::weighted(0.7),
    ) -> (CapabilityFacts, bool) {
        let facts = CapabilityFacts {
            mode, definitions_known, required: vec![first, second], at_work: Work::None,
            waited: SECOND * seconds, next_epoch: Epoch(0),
        };
        (facts, obeys)
    }
}

proptest! {
    /// For every order of events: full work begins only when all kinds are synced, the work of two epochs
    /// never overlaps, and starts and stops alternate.
    #[test]
    fn work_begins_on_all_that_is_known_and_ends_before_it_begins_again(
        course in prop::collection::vec(any_facts(), 1..60),
    ) {
        let mut machine = Machine::default();
        let (mut at_work, mut told, mut on) = (Work::None, Work::None, None);
        let mut busy: Option<Epoch> = None;
        for (i, (mut facts, obeys)) in course.into_iter().enumerate() {
            facts.at_work = at_work;
            facts.next_epoch = Epoch(i as u64 + 1);
            let step = machine.step(&facts);
            let whole = facts.definitions_known
                && facts.mode.is_some_and(|mode| mode != Mode::Off)
                && facts.required.iter().all(|k| k.watch_state == WatchState::Synced && !k.terminating);
            if step.work == Work::Full && told != Work::Full {
                prop_assert!(whole, "{facts:?}");
                prop_assert!(busy.is_none() || busy == machine.state().epoch(), "the last epoch still works");
            }
            if let Some(transition) = step.transition {
                prop_assert_ne!(on, Some(transition));
                prop_assert!(on.is_some() || transition == CapabilityTransition::Started);
                on = Some(transition);
            }
            prop_assert_eq!(step.work == Work::Full, on == Some(CapabilityTransition::Started));
            told = step.work;
            if obeys {
                at_work = told;
                busy = (at_work == Work::Full).then(|| machine.state().epoch()).flatten();
            }
        }
    }
}

/// Without the fields that the controller writes nothing is carried out; admission goes on, and so does the work
/// once the definition has them.
#[test]
fn a_definition_without_our_fields_stops_the_work() {
    let mut facts = with(|facts| facts.required[0].dropped = vec!["lastApplied"]);
    let mut machine = Machine::default();
    let (state, work, _) = run_until_stable(&mut machine, &mut facts);
    assert!(
        matches!(&state, CapabilityPhase::Outdated(_, why) if why.contains("lacks status.lastApplied")),
        "{state:?}"
    );
    assert_eq!((state.reason(), work), ("DefinitionOutdated", Work::StatusOnly));
    assert_eq!(UnavailableAnswer::of("instances", &state, SECOND), UnavailableAnswer::Judge);
    facts.required[0].dropped.clear();
    let (state, work, turns) = run_until_stable(&mut machine, &mut facts);
    assert!(matches!(state, CapabilityPhase::Running(_)), "{state:?}");
    assert_eq!((work, turns.as_slice()), (Work::Full, [CapabilityTransition::Started].as_slice()));

    // A definition that is replaced under a running controller.
    facts.required[0].dropped = vec!["progress"];
    let (state, work, turns) = run_until_stable(&mut machine, &mut facts);
    assert!(matches!(state, CapabilityPhase::Outdated(..)), "{state:?}");
    assert_eq!((work, turns.as_slice()), (Work::StatusOnly, [CapabilityTransition::Stopped].as_slice()));
}
