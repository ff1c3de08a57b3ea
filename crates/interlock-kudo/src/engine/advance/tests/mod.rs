//! Tables of the engine as a whole, on the API server of [`super::sim`].

use interlock_core::api::object::{ObjectKey, annotation, meta_str};
use interlock_core::effect::Effect;
use interlock_core::reconcile::{KindServed, Lookup};
use rstest::rstest;
use serde_json::{Value, json};

use super::advance;
use super::fixture::{config_map, key, one, package, phase, phase_named};
use super::sim::{Did, Fixture, Process, Server, manifest};
use crate::api::ExecutionStatus;
use crate::api::ExecutionStatus::{Complete, Error, InProgress};
use crate::engine::lookup::{EngineStep, Observed, PlanState};

mod children;
mod existing;
mod failures;
mod limits;
mod presence;
mod prune;

fn steps(state: &PlanState) -> Vec<(ExecutionStatus, String)> {
    let phases = state.status.phases.iter().flatten();
    let steps = phases.flat_map(|p| p.steps.iter().flatten());
    steps.map(|s| (s.status.clone(), s.message.clone().unwrap_or_default())).collect()
}

fn statuses(state: &PlanState) -> Vec<ExecutionStatus> {
    steps(state).into_iter().map(|(status, _)| status).collect()
}

/// All kinds are served, no object exists.
fn empty(keys: &[ObjectKey]) -> Observed {
    let mut observed = Observed::default();
    for key in keys {
        observed.facts.kinds.insert(key.gvk.clone(), KindServed::Namespaced);
        observed.facts.objects.insert(key.clone(), Lookup::Absent);
    }
    observed
}

fn writes(step: &EngineStep) -> Vec<Vec<ObjectKey>> {
    step.effects.iter().map(|lane| lane.iter().map(|w| w.key().unwrap()).collect()).collect()
}

#[rstest]
#[case::serial(json!("serial"), vec![vec![config_map("a")]])]
#[case::parallel(json!("parallel"), vec![vec![config_map("a")], vec![config_map("b")]])]
#[case::absent_is_parallel(json!(null), vec![vec![config_map("a")], vec![config_map("b")]])]
#[case::other_words_are_parallel(json!("Serial"), vec![vec![config_map("a")], vec![config_map("b")]])]
fn strategies_of_phases(#[case] strategy: Value, #[case] expected: Vec<Vec<ObjectKey>>) {
    let fixture = Fixture::new(package(phase(strategy, &[&["apply-a"], &["apply-b"]])));
    let step = advance(&fixture.run(), fixture.start(), &empty(&[config_map("a"), config_map("b")]));
    assert_eq!(writes(&step), expected);
    assert_eq!(step.state.status.status, InProgress);
}

#[rstest]
#[case::serial(json!("serial"), 1)]
#[case::parallel(json!("parallel"), 2)]
#[case::absent_is_parallel(json!(null), 2)]
fn strategies_of_plans(#[case] strategy: Value, #[case] lanes: usize) {
    let phases = [
        phase_named("one", json!("serial"), &[&["apply-a"]]),
        phase_named("two", json!("serial"), &[&["apply-b"]]),
    ];
    let fixture = Fixture::new(package(json!({"strategy": strategy, "phases": phases})));
    let step = advance(&fixture.run(), fixture.start(), &empty(&[config_map("a"), config_map("b")]));
    assert_eq!(step.effects.len(), lanes);
}

#[rstest]
#[case::no_phases(json!({}))]
#[case::no_steps(json!({"phases": [{"name": "main"}]}))]
#[case::no_tasks(phase(json!("serial"), &[&[], &[]]))]
fn what_holds_nothing_is_complete_at_once(#[case] plan: Value) {
    let fixture = Fixture::new(package(plan));
    let step = advance(&fixture.run(), fixture.start(), &Observed::default());
    assert_eq!(step.state.status.status, Complete);
    assert!(statuses(&step.state).iter().all(|s| *s == Complete));
}

#[test]
fn objects_are_written_in_the_order_of_the_list() {
    let fixture = one("apply-ab");
    let step = advance(&fixture.run(), fixture.start(), &empty(&[config_map("a"), config_map("b")]));
    assert_eq!(writes(&step), [vec![config_map("b"), config_map("a")]]);
}

#[test]
fn objects_are_made_the_instances() {
    let fixture = one("apply-a");
    let step = advance(&fixture.run(), fixture.start(), &empty(&[config_map("a")]));
    let [lane] = step.effects.as_slice() else { panic!("{step:?}") };
    let [Effect::Create { object }] = lane.as_slice() else { panic!("{lane:?}") };
    let metadata = json!({
        "name": "a", "namespace": "ns",
        "labels": {"heritage": "kudo", "kudo.dev/operator": "op", "kudo.dev/instance": "inst"},
        "annotations": {
            "kudo.dev/plan": "deploy", "kudo.dev/phase": "main", "kudo.dev/step": "s0",
            "kudo.dev/last-plan-execution-uid": "run-1",
            "kudo.dev/last-applied-configuration": annotation(object, "kudo.dev/last-applied-configuration").unwrap(),
        },
        "ownerReferences": [{
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance", "name": "inst", "uid": "uid-1",
            "controller": true, "blockOwnerDeletion": true,
        }],
    });
    assert_eq!(*object, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}));
}

#[rstest]
#[case::wait("wait", InProgress)]
#[case::done("nothing", Complete)]
#[case::error("error", Error)]
fn dummies(#[case] task: &str, #[case] expected: ExecutionStatus) {
    let fixture = one(task);
    let step = advance(&fixture.run(), fixture.start(), &Observed::default());
    assert_eq!(statuses(&step.state), [expected]);
}

#[test]
fn finished_tasks_are_not_done_again() {
    let fixture = Fixture::new(package(phase(json!("serial"), &[&["apply-a", "wait"]])));
    let mut server = Server::default();
    let mut process = Process::new(fixture.run(), fixture.start());
    let step = process.pass(&mut server).unwrap();
    assert_eq!(step.state.done["main/s0"].iter().collect::<Vec<_>>(), ["apply-a"]);
    server.objects.clear();
    let _ = process.pass(&mut server).unwrap();
    assert_eq!(server.ledger, [Did::Create(config_map("a"))]);
}

#[test]
fn tasks_that_share_an_object_take_turns() {
    let fixture = Fixture::new(package(phase(json!("parallel"), &[&["apply-j"], &["apply-j", "apply-k"]])));
    let mut server = Server::default();
    let mut process = Process::new(fixture.run(), fixture.start());
    let step = process.pass(&mut server).unwrap();
    assert!(
        step.waiting.iter().any(|w| w == "Job j is being changed by task deploy.main.s0.apply-j"),
        "{:?}",
        step.waiting
    );
    assert_eq!(process.finish(&mut server).unwrap().state.status.status, Complete);
    let job = &server.objects[&key("batch/v1", "Job", "j")];
    assert_eq!(annotation(job, "kudo.dev/step"), Some("s1"));
    assert_eq!(server.ledger.len(), 3);
}

#[test]
fn what_a_finished_task_made_is_changed_only_once_that_is_written_down() {
    let fixture = Fixture::new(package(phase(json!("serial"), &[&["apply-a"], &["delete-a"], &["apply-b"]])));
    let mut server = Server::default();
    let mut process = Process::new(fixture.run(), fixture.start());
    process.watch = |_, step| {
        let deletes = step.effects.iter().flatten().any(|w| matches!(w, Effect::Delete { .. }));
        assert_eq!(step.save_first, deletes);
    };
    assert_eq!(process.finish(&mut server).unwrap().state.status.status, Complete);
}

#[test]
fn cluster_scoped_objects_carry_the_instances_uid() {
    let mut spec = package(phase(json!("serial"), &[&["apply-a"]]));
    spec["templates"]["a.yaml"] = manifest("rbac.authorization.k8s.io/v1", "ClusterRole", "a").into();
    let fixture = Fixture::new(spec);
    let mut server = Server::default();
    let _ = Process::new(fixture.run(), fixture.start()).finish(&mut server).unwrap();
    let object = server.objects.values().next().unwrap();
    assert_eq!(object["metadata"]["labels"]["interlock.dev/instance-uid"], "uid-1");
    assert_eq!((meta_str(object, "namespace"), object["metadata"].get("ownerReferences")), (None, None));
}
