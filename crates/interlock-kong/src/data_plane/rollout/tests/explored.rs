//! Every order of what users, Kubernetes and crashes do to a rollout, on the real code.
//!
//! Two edits, one promotion, one deletion or edit by hand of any child, a deletion that takes its time, a crash after
//! any write, another leader that writes late. In every state the live side is whole, and from every state the rollout
//! comes to rest. With a rule of self-healing switched off ([`Fault`]) that is not so.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use interlock_core::api::meta;
use interlock_core::effect::Effect;
use rstest::rstest;
use serde_json::{Value, json};

use super::events::{EventBudget, GRACE_OVER, KUBELET, Path, State, next};
use super::faults::Fault;
use super::invariants::{check, is_whole};
use super::scenarios::settle;
use super::world::{World, spec};

/// A spec whose live side has an autoscaler and a disruption budget.
fn scaled(image: &str) -> Value {
    let mut spec = spec(image);
    spec["deployment"]["scaling"] = json!({"horizontal": {"minReplicas": 2, "maxReplicas": 4}});
    spec["resources"] = json!({"podDisruptionBudget": {"spec": {"minAvailable": 1}}});
    spec
}

/// What is known of a state that was reached.
struct Reached {
    path: Path,
    /// Whether the live side is ready and the rollout waits for people.
    is_at_rest: bool,
    /// The states that it leads to without people.
    after_kubelet: u64,
    after_grace: u64,
}

fn is_at_rest(world: &World) -> bool {
    let ready = &world.get()["status"]["conditions"][0];
    ready["status"] == "True"
        && matches!(world.rolled_out(), "WaitingForChange" | "AwaitingPromotion")
        && is_whole(world)
}

/// A DataPlane that runs, with nothing staged.
fn at_rest(spec: fn(&str) -> Value) -> World {
    settled(World::with(spec("kong:3.8")))
}

/// The same where a CA signs its certificate.
fn certified() -> World {
    let mut world = World::with(spec("kong:3.8"));
    world.has_authority = true;
    settled(world)
}

fn settled(mut world: World) -> World {
    settle(&mut world);
    world
}

/// One with something staged, whose promotion was requested and has not begun.
fn before_promotion(mut world: World, spec: fn(&str) -> Value) -> World {
    world.edit(spec("kong:3.9"));
    settle(&mut world);
    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    world
}

/// Every state that events lead to; how many there are, or the first harm.
fn explore(mut world: World, budget: EventBudget, spec: fn(&str) -> Value) -> Result<usize, String> {
    world.log.clear();
    let first = State { world, budget, path: Path::default(), harmed: None, pending: None };
    let mut reached: HashMap<u64, Reached> = HashMap::new();
    let mut seen = HashSet::from([fingerprint(&first)]);
    let mut queue = VecDeque::from([first]);
    while let Some(state) = queue.pop_front() {
        let (mut after_kubelet, mut after_grace) = (0, 0);
        for mut after in next(&state, spec) {
            if let Err(harm) = check(&state, &after) {
                return Err(format!("{harm}\n{:#?}\n{:#?}", after.path.events(), after.world.log));
            }
            after.world.log.clear();
            let key = fingerprint(&after);
            match after.path.last() {
                Some(KUBELET) => after_kubelet = key,
                Some(GRACE_OVER) => after_grace = key,
                _ => {}
            }
            if seen.insert(key) {
                queue.push_back(after);
            }
        }
        let is_at_rest = is_at_rest(&state.world);
        let key = fingerprint(&state);
        reached.insert(key, Reached { path: state.path, is_at_rest, after_kubelet, after_grace });
    }
    reached.keys().try_for_each(|key| comes_to_rest(&reached, *key))?;
    println!("counted: {} states of a rollout, none stuck", reached.len());
    Ok(reached.len())
}

/// Without further events of users, a state leads to one at rest.
fn comes_to_rest(reached: &HashMap<u64, Reached>, from: u64) -> Result<(), String> {
    let mut state = &reached[&from];
    for _ in 0..12 {
        let before = state.after_grace;
        state = &reached[&reached[&before].after_kubelet];
        if state.is_at_rest && before == state.after_grace {
            return Ok(());
        }
    }
    Err(format!("it does not come to rest: {:#?}", reached[&from].path.events()))
}

const BUDGET: EventBudget = EventBudget {
    edits: 1,
    promotions: 1,
    deletions: 0,
    terminations: 0,
    hand_edits: 0,
    crashes: 0,
    leaders: 0,
    lags: 0,
};

#[rstest]
#[case::crashes(EventBudget { crashes: 1, ..BUDGET }, spec)]
#[case::deletions(EventBudget { deletions: 1, ..BUDGET }, spec)]
#[case::hand_edits(EventBudget { hand_edits: 1, ..BUDGET }, spec)]
#[case::leaders(EventBudget { leaders: 1, ..BUDGET }, spec)]
#[case::scaled(EventBudget { crashes: 1, ..BUDGET }, scaled)]
#[case::lags(EventBudget { lags: 1, ..BUDGET }, spec)]
#[case::lag_of_a_deletion(EventBudget { deletions: 1, lags: 1, ..BUDGET }, spec)]
fn no_order_of_events_harms_the_live_side(#[case] budget: EventBudget, #[case] spec: fn(&str) -> Value) {
    let states = explore(at_rest(spec), budget, spec).unwrap_or_else(|harm| panic!("{harm}"));
    assert!(states > 50);
}

#[rstest]
#[case::certificate(certified(), EventBudget { deletions: 1, crashes: 1, ..NOTHING })]
#[case::termination(at_rest(spec), EventBudget { terminations: 1, crashes: 1, ..NOTHING })]
fn no_order_of_events_harms_a_promotion(#[case] world: World, #[case] budget: EventBudget) {
    let states = explore(before_promotion(world, spec), budget, spec).unwrap_or_else(|harm| panic!("{harm}"));
    assert!(states > 50);
}

const RECORDED: &str = "the live Deployment is not made from the recorded spec";
const NO_TRAFFIC: &str = "the live Service selects nothing";
const NOT_COMMITTED: &str = "a child of the live side is given to the side that is not committed";
const DYING: &str = "the commit is given to a Deployment that is being deleted";
const ROLLED: &str = "the live pods are replaced though their spec is the same";
const NOTHING: EventBudget = EventBudget { edits: 0, promotions: 0, ..BUDGET };

/// The harm that some order of events does without a rule.
fn harm_without(fault: Fault, budget: EventBudget, spec: fn(&str) -> Value) -> String {
    let world = at_rest(spec);
    let mut world = if budget.edits == 0 { before_promotion(world, spec) } else { world };
    world.fault = Some(fault);
    explore(world, budget, spec).expect_err("harm")
}

#[rstest]
#[case::deleted(Fault::LeavesDeleted, at_rest(spec), EventBudget { deletions: 1, ..NOTHING })]
#[case::terminated(Fault::LeavesDeleted, at_rest(spec), EventBudget { terminations: 1, ..NOTHING })]
#[case::certificate_deleted(Fault::LeavesDeleted, certified(), EventBudget { deletions: 1, ..NOTHING })]
#[case::edited(Fault::LeavesEdited, at_rest(spec), EventBudget { hand_edits: 1, ..NOTHING })]
fn what_people_do_to_a_child_must_be_put_right(
    #[case] fault: Fault,
    #[case] mut world: World,
    #[case] budget: EventBudget,
) {
    world.fault = Some(fault);
    let found = explore(world, budget, spec).expect_err("harm");
    assert!(found.starts_with("it does not come to rest"), "{found}");
}

/// Each rule is needed. That for [`Fault::NoFence`] is in a test of its own.
#[rstest]
#[case::heals_from_written_spec(Fault::HealsFromWrittenSpec, BUDGET, RECORDED)]
#[case::traffic_before_commit(Fault::TrafficBeforeCommit, EventBudget { crashes: 1, ..NOTHING }, NOT_COMMITTED)]
#[case::traffic_without_pods(Fault::TrafficWithoutPods, EventBudget { deletions: 1, crashes: 1, ..NOTHING }, NO_TRAFFIC)]
#[case::unconditional_writes(Fault::UnconditionalWrites, EventBudget { deletions: 1, leaders: 1, ..NOTHING }, NOT_COMMITTED)]
#[case::former_side_stops(Fault::FormerSideStops, EventBudget { deletions: 1, crashes: 1, ..NOTHING }, NO_TRAFFIC)]
#[case::older_side_wins(Fault::OlderSideWins, NOTHING, NO_TRAFFIC)]
#[case::adopts_terminating(Fault::AdoptsTerminating, EventBudget { terminations: 1, ..NOTHING }, DYING)]
fn without_a_rule_some_order_of_events_harms_the_live_side(
    #[case] fault: Fault,
    #[case] budget: EventBudget,
    #[case] harm: &str,
) {
    let found = harm_without(fault, budget, spec);
    assert!(found.starts_with(harm), "{found}");
}

#[rstest]
#[case::autoscaler(Fault::AutoscalerOfPreview)]
#[case::budget(Fault::BudgetOfPreview)]
fn what_scales_and_guards_the_live_pods_must_not_follow_the_preview(#[case] fault: Fault) {
    let found = harm_without(fault, EventBudget { crashes: 1, ..BUDGET }, scaled);
    assert!(found.starts_with(NOT_COMMITTED), "{found}");
}

#[test]
fn a_certificate_made_again_under_another_name_replaces_the_live_pods() {
    let mut world = certified();
    world.fault = Some(Fault::CertificateUnderAnotherName);
    let budget = EventBudget { deletions: 1, crashes: 1, ..NOTHING };
    let found = explore(world, budget, spec).expect_err("harm");
    assert!(found.starts_with(ROLLED), "{found}");
}

#[test]
#[ignore = "a minute; run by make soak"]
fn without_the_fence_a_late_decision_harms_the_live_side() {
    let budget = EventBudget { deletions: 1, crashes: 1, leaders: 1, ..NOTHING };
    let found = harm_without(Fault::NoFence, budget, spec);
    assert!(found.starts_with(NO_TRAFFIC), "{found}");
}

#[rstest]
#[case::deletion(EventBudget { edits: 2, deletions: 1, crashes: 1, leaders: 1, ..BUDGET })]
#[case::termination(EventBudget { terminations: 1, crashes: 1, ..BUDGET })]
#[ignore = "minutes; run by make soak"]
fn no_order_of_many_events_harms_the_live_side(#[case] budget: EventBudget) {
    let states = explore(at_rest(spec), budget, spec).unwrap_or_else(|harm| panic!("{harm}"));
    assert!(states > 300);
}

/// What decides whether two states are the same: versions and times left out.
pub fn fingerprint(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&state.budget, &state.harmed).hash(&mut hasher);
    for (key, object) in &state.world.objects {
        (&key.gvk.kind, &key.name).hash(&mut hasher);
        hash_lasting(object, &object["metadata"]["generation"], &mut hasher);
    }
    for (key, shown) in &state.world.unseen {
        (&key.gvk.kind, &key.name, shown.is_some()).hash(&mut hasher);
        let shown = shown.as_deref().unwrap_or(&Value::Null);
        hash_lasting(shown, &shown["metadata"]["generation"], &mut hasher);
    }
    // Of what was decided, it matters whether the version still holds, and not which one it is.
    let pending = state.pending.iter().flatten();
    let generation = &state.world.get()["metadata"]["generation"];
    pending
        .take_while(|effect| state.world.holds(effect))
        .for_each(|effect| hash_effect(effect, generation, &mut hasher));
    state.pending.is_some().hash(&mut hasher);
    hasher.finish()
}

fn hash_effect(effect: &Effect, generation: &Value, hasher: &mut DefaultHasher) {
    match effect {
        Effect::Apply { object, .. } | Effect::Create { object } => hash_lasting(object, generation, hasher),
        Effect::Patch { key, patch, .. } => {
            (&key.gvk.kind, &key.name).hash(hasher);
            hash_lasting(patch, generation, hasher);
        }
        Effect::Status { status, .. } => hash_lasting(status, generation, hasher),
        Effect::Delete { key, .. } => (&key.gvk.kind, &key.name).hash(hasher),
        Effect::Event { .. } | Effect::Healed { .. } => {}
    }
}

/// Members that do not distinguish states: versions, times, and who wrote.
const PASSING: [&str; 6] = [
    "resourceVersion",
    "generation",
    "managedFields",
    "lastTransitionTime",
    meta::LIVE_SINCE,
    meta::FORMER_SIDE_KEPT,
];

/// Of a generation that was observed, it matters whether it is the current one.
fn hash_lasting(value: &Value, generation: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(name, _)| !PASSING.contains(&name.as_str())) {
                name.hash(hasher);
                match name.as_str() {
                    "observedGeneration" => (member == generation).hash(hasher),
                    _ => hash_lasting(member, generation, hasher),
                }
            }
            0_u8.hash(hasher);
        }
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().for_each(|item| hash_lasting(item, generation, hasher));
        }
        scalar => scalar.hash(hasher),
    }
}
