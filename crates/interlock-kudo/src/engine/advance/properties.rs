//! Properties of every plan: it ends, serial parts never run ahead, and neither a kill at any write
//! nor transient failures change the end.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::advance;
use super::fixture::{package, phase_named};
use super::sim::{Fixture, Process, Server, failure};
use crate::api::ExecutionStatus;
use crate::api::ExecutionStatus::{Complete, FatalError, Pending};
use crate::engine::lookup::{EngineStep, Observed};
use crate::engine::run::Run;

fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["serial", "parallel"])
}

fn plan_of(strategy: &str, phases: &[(&str, Vec<Vec<&str>>)]) -> Value {
    let phases: Vec<Value> = phases
        .iter()
        .enumerate()
        .map(|(i, (strategy, steps))| {
            let steps: Vec<&[&str]> = steps.iter().map(Vec::as_slice).collect();
            phase_named(&format!("p{i}"), json!(strategy), &steps)
        })
        .collect();
    json!({"strategy": strategy, "phases": phases})
}

fn phases_of(
    strategy: impl Strategy<Value = &'static str>,
) -> impl Strategy<Value = Vec<(&'static str, Vec<Vec<&'static str>>)>> {
    let task = prop::sample::select(vec![
        "apply-a", "apply-b", "apply-j", "apply-k", "apply-ab", "delete-a", "delete-j", "delete-k",
        "nothing", "toggle",
    ]);
    let step = prop::collection::vec(task, 0..3);
    prop::collection::vec((strategy, prop::collection::vec(step, 0..4)), 1..4)
}

/// Any plan; concurrent steps may change one object in either order.
fn any_plan() -> impl Strategy<Value = Value> {
    (word(), phases_of(word())).prop_map(|(strategy, phases)| plan_of(strategy, &phases))
}

/// A plan whose end is determined: serial as a whole, or with each object in one step only.
fn determined_plan() -> impl Strategy<Value = Value> {
    let serial = phases_of(Just("serial")).prop_map(|phases| plan_of("serial", &phases));
    let places = prop::collection::vec((0_usize..4, 0_usize..4), 4);
    let disjoint = (word(), word(), word(), places).prop_map(|(plan, one, two, places)| {
        let mut steps: Vec<Vec<&str>> = vec![Vec::new(); 4];
        let tasks = [
            ("apply-a", "delete-a"),
            ("apply-b", "delete-b"),
            ("apply-j", "delete-j"),
            ("apply-k", "delete-k"),
        ];
        for ((apply, delete), (step, order)) in tasks.into_iter().zip(places) {
            let orders = [vec![apply], vec![delete], vec![apply, delete], vec![delete, apply]];
            steps[step].extend(&orders[order]);
        }
        let last = steps.split_off(2);
        plan_of(plan, &[(one, steps), (two, last)])
    });
    prop_oneof![serial, disjoint]
}

/// Nothing after the first unfinished part of a serial whole has begun.
fn in_order(run: &Run<'_>, step: &EngineStep) {
    let plan = run.package.plan(run.plan).unwrap();
    let begun = |status: &ExecutionStatus| *status != Pending;
    let after_first_open = |statuses: Vec<&ExecutionStatus>| {
        let open = statuses.iter().position(|s| **s != Complete).unwrap_or(statuses.len());
        statuses.into_iter().skip(open + 1).any(begun)
    };
    let phases = step.state.status.phases.as_deref().unwrap();
    if plan.strategy.as_deref() == Some("serial") {
        assert!(!after_first_open(phases.iter().map(|p| &p.status).collect()), "{phases:#?}");
    }
    for (phase, spec) in phases.iter().zip(plan.phases.iter().flatten()) {
        if spec.strategy.as_deref() == Some("serial") {
            let steps = phase.steps.iter().flatten();
            assert!(!after_first_open(steps.map(|s| &s.status).collect()), "{phases:#?}");
        }
    }
}

/// The objects at the end, without versions.
fn contents(server: &Server) -> Vec<Value> {
    let strip = |object: &Value| {
        let mut object = object.clone();
        for field in ["resourceVersion", "uid"] {
            object["metadata"].as_object_mut().unwrap().remove(field);
        }
        object
    };
    server.objects.values().map(strip).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_that_is_killed_at_any_write_ends_the_same(plan in determined_plan(), lossy in any::<bool>()) {
        let fixture = Fixture::new(package(plan));
        let mut server = Server::default();
        let mut process = Process::new(fixture.run(), fixture.start());
        process.watch = in_order;
        let whole = process.finish(&mut server).unwrap().state.status;
        prop_assert_eq!(&whole.status, &Complete);
        for lives in 1..40 {
            let mut crashed = Server::default();
            let mut process = Process::new(fixture.run(), fixture.start());
            process.lives = lives;
            process.watch = in_order;
            let finished = process.finish(&mut crashed).is_ok();
            let mut saved = process.saved;
            if lossy {
                saved.done.clear();
            }
            let mut process = Process::new(fixture.run(), saved);
            process.watch = in_order;
            crashed.tick();
            let again = process.finish(&mut crashed).unwrap().state.status;
            prop_assert_eq!(&again, &whole);
            prop_assert_eq!(contents(&crashed), contents(&server));
            if !lossy {
                let sorted = |server: &Server| { let mut did = server.ledger.clone(); did.sort(); did };
                prop_assert_eq!(sorted(&crashed), sorted(&server), "killed at write {}", lives);
            }
            if finished { break; }
        }
    }

    #[test]
    fn failures_that_pass_change_nothing_in_the_end(
        plan in determined_plan(),
        faults in prop::collection::vec(prop::option::of(prop::sample::select(vec![500_u16, 409, 404, 403, 0])), 0..12),
    ) {
        let fixture = Fixture::new(package(plan));
        let mut server = Server::default();
        let whole = Process::new(fixture.run(), fixture.start()).finish(&mut server).unwrap().state.status;
        let faults = faults.into_iter().map(|code| code.map(|code| failure(code, "no luck"))).collect();
        let mut failing = Server { faults, ..Server::default() };
        let again = Process::new(fixture.run(), fixture.start()).finish(&mut failing).unwrap().state.status;
        prop_assert_eq!(again, whole);
        prop_assert_eq!(contents(&failing), contents(&server));
    }

    #[test]
    fn every_run_ends_and_serial_never_runs_ahead(plan in any_plan()) {
        let fixture = Fixture::new(package(plan));
        let mut process = Process::new(fixture.run(), fixture.start());
        process.watch = in_order;
        let step = process.finish(&mut Server::default()).unwrap();
        prop_assert_eq!(step.state.status.status, Complete);
        prop_assert!(step.state.done.is_empty());
    }

    #[test]
    fn a_run_that_is_over_stays_as_it_is(plan in any_plan(), fatal in any::<bool>()) {
        let fixture = Fixture::new(package(plan));
        let mut state = fixture.start();
        state.status.status = if fatal { FatalError } else { Complete };
        let step = advance(&fixture.run(), state.clone(), &Observed::default());
        prop_assert_eq!(step, EngineStep { state, ..EngineStep::default() });
    }
}
