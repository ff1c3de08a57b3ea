//! Every order of what users, Kubernetes and crashes do to a rollout, on the real code.
//!
//! Two edits, one promotion, one deletion or edit by hand of any child, a crash after any write, another leader that
//! writes late. In every state the live side is whole, and from every state the rollout comes to rest. With a rule
//! of self-healing switched off ([`Fault`]) that is not so.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use rstest::rstest;
use serde_json::{Value, json};

use super::faults::Fault;
use super::fingerprint::fingerprint;
use super::invariants::{check, is_right, is_whole};
use super::scenarios::{BLUE, GREEN, INGRESS, settle};
use super::world::{PassEnd, World, spec};
use crate::api::kong::labels;
use crate::api::meta;
use crate::effect::Effect;
use crate::kinds::data_plane::rollout::side::Colour;

/// A spec whose live side has an autoscaler and a disruption budget.
fn scaled(image: &str) -> Value {
    let mut spec = spec(image);
    spec["deployment"]["scaling"] = json!({"horizontal": {"minReplicas": 2, "maxReplicas": 4}});
    spec["resources"] = json!({"podDisruptionBudget": {"spec": {"minAvailable": 1}}});
    spec
}

/// What is left to happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventBudget {
    edits: usize,
    promotions: usize,
    /// How often a person deletes a child.
    deletions: usize,
    /// How often a person edits one.
    hand_edits: usize,
    crashes: usize,
    /// How often another process takes itself for the leader too.
    leaders: usize,
}

#[derive(Clone)]
pub struct State {
    pub world: World,
    pub budget: EventBudget,
    path: Path,
    /// The child that was deleted or edited by hand and is not right again yet.
    pub harmed: Option<String>,
    /// What the other leader has decided and not written yet.
    pub pending: Option<Vec<Effect>>,
}

/// The events that led to a state, shared with the states before it.
#[derive(Clone, Default)]
struct Path(Option<Rc<(Path, String)>>);

impl Path {
    fn push(&mut self, event: String) {
        let before = std::mem::take(self);
        *self = Self(Some(Rc::new((before, event))));
    }

    fn last(&self) -> Option<&str> {
        self.0.as_deref().map(|(_, event)| event.as_str())
    }

    fn events(&self) -> Vec<&str> {
        let mut events = Vec::new();
        let mut path = self;
        while let Some((before, event)) = path.0.as_deref() {
            events.push(event.as_str());
            path = before;
        }
        events.reverse();
        events
    }
}

pub const CHILDREN: [(&str, &str); 6] = [
    ("Deployment", "dataplane-edge-blue"),
    ("Deployment", "dataplane-edge-green"),
    ("Service", "dataplane-ingress-edge"),
    ("Service", "dataplane-admin-edge"),
    ("Service", "dataplane-ingress-edge-preview"),
    ("Service", "dataplane-admin-edge-preview"),
];

/// Every state that one more event leads to.
fn next(state: &State, spec: fn(&str) -> Value) -> Vec<State> {
    let mut all = Vec::new();
    let mut add = |what: String, change: &dyn Fn(&mut State)| {
        let mut after = state.clone();
        change(&mut after);
        after.path.push(what);
        all.push(after);
    };
    if state.budget.edits > 0 {
        for image in ["kong:3.8", "kong:3.9", "kong:3.10"] {
            // While a promotion is in progress the definition refuses an edit of the spec.
            if state.world.rolled_out() != "PromotionInProgress" && state.world.get()["spec"] != spec(image) {
                add(format!("edit {image}"), &|s| {
                    s.world.edit(spec(image));
                    s.budget.edits -= 1;
                });
            }
        }
    }
    if state.budget.promotions > 0 {
        add("promote".to_owned(), &|s| {
            s.world.annotate(meta::PROMOTE_WHEN_READY, "true");
            s.budget.promotions -= 1;
        });
    }
    by_hand(state, &mut add);
    if state.budget.leaders > 0 && state.pending.is_none() {
        add("another leader decides".to_owned(), &|s| {
            s.pending = s.world.decide();
            s.budget.leaders -= 1;
        });
    }
    if let Some(pending) = &state.pending {
        add("the other leader writes".to_owned(), &|s| {
            s.pending = None;
            s.world.carry_out(pending.clone());
        });
    }
    add(KUBELET.to_owned(), &|s| s.world.settle_deployments());
    add(GRACE_OVER.to_owned(), &|s| {
        s.world.wait(31);
        s.world.reconcile(usize::MAX);
    });
    add("reconcile".to_owned(), &|s| {
        s.world.reconcile(usize::MAX);
    });
    if state.budget.crashes > 0 {
        for writes in 1..=12 {
            let mut after = state.clone();
            if after.world.reconcile(writes) == PassEnd::Waits {
                break;
            }
            after.budget.crashes -= 1;
            after.path.push(format!("crash after {writes} writes"));
            all.push(after);
        }
    }
    for after in &mut all {
        if after.harmed.as_ref().is_some_and(|name| is_right(&after.world, name)) {
            after.harmed = None;
        }
    }
    all
}

/// What a person does to children.
fn by_hand(state: &State, add: &mut impl FnMut(String, &dyn Fn(&mut State))) {
    if state.budget.deletions > 0 {
        for (kind, name) in CHILDREN {
            if state.world.child(kind, name).is_some() {
                add(format!("delete {name}"), &|s| {
                    s.world.delete(kind, name);
                    s.harmed = Some(name.to_owned());
                    s.budget.deletions -= 1;
                });
            }
        }
    }
    if state.budget.hand_edits > 0 {
        for (kind, name, patch) in hand_edits() {
            if state.world.child(kind, name).is_some() {
                add(format!("edit {name} by hand"), &|s| {
                    s.world.edit_by_hand(kind, name, &patch);
                    s.harmed = Some(name.to_owned());
                    s.budget.hand_edits -= 1;
                });
            }
        }
    }
}

/// What a person writes into a child.
fn hand_edits() -> Vec<(&'static str, &'static str, Value)> {
    let selector = |colour: Colour| json!({"spec": {"selector": {labels::SELECTOR: colour.selector("u-1")}}});
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "proxy", "image": "kong:by-hand"}]}}}});
    vec![
        ("Deployment", BLUE, image.clone()),
        ("Deployment", GREEN, image),
        ("Deployment", BLUE, json!({"spec": {"replicas": 0}})),
        ("Service", INGRESS, selector(Colour::Green)),
        ("Service", INGRESS, selector(Colour::Blue)),
    ]
}

const KUBELET: &str = "kubelet";
const GRACE_OVER: &str = "grace period over";

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
    let mut world = World::with(spec("kong:3.8"));
    settle(&mut world);
    world
}

/// One with something staged, whose promotion was requested and has not begun.
fn before_promotion(spec: fn(&str) -> Value) -> World {
    let mut world = at_rest(spec);
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

const BUDGET: EventBudget =
    EventBudget { edits: 1, promotions: 1, deletions: 0, hand_edits: 0, crashes: 0, leaders: 0 };

#[rstest]
#[case::crashes(EventBudget { crashes: 1, ..BUDGET }, spec)]
#[case::deletions(EventBudget { deletions: 1, ..BUDGET }, spec)]
#[case::hand_edits(EventBudget { hand_edits: 1, ..BUDGET }, spec)]
#[case::leaders(EventBudget { leaders: 1, ..BUDGET }, spec)]
#[case::scaled(EventBudget { crashes: 1, ..BUDGET }, scaled)]
fn no_order_of_events_harms_the_live_side(#[case] budget: EventBudget, #[case] spec: fn(&str) -> Value) {
    let states = explore(at_rest(spec), budget, spec).unwrap_or_else(|harm| panic!("{harm}"));
    assert!(states > 50);
}

const RECORDED: &str = "the live Deployment is not made from the recorded spec";
const NO_TRAFFIC: &str = "the live Service selects nothing";
const NOT_COMMITTED: &str = "a child of the live side is given to the side that is not committed";
const NOTHING: EventBudget = EventBudget { edits: 0, promotions: 0, ..BUDGET };

/// The harm that some order of events does without a rule.
fn harm_without(fault: Fault, budget: EventBudget, spec: fn(&str) -> Value) -> String {
    let mut world = if budget.edits == 0 { before_promotion(spec) } else { at_rest(spec) };
    world.fault = Some(fault);
    explore(world, budget, spec).expect_err("harm")
}

#[rstest]
#[case::deleted(Fault::LeavesDeleted, EventBudget { deletions: 1, ..NOTHING })]
#[case::edited(Fault::LeavesEdited, EventBudget { hand_edits: 1, ..NOTHING })]
fn what_people_do_to_a_child_must_be_put_right(#[case] fault: Fault, #[case] budget: EventBudget) {
    let mut world = at_rest(spec);
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
#[ignore = "a minute; run by make soak"]
fn without_the_fence_a_late_decision_harms_the_live_side() {
    let budget = EventBudget { deletions: 1, crashes: 1, leaders: 1, ..NOTHING };
    let found = harm_without(Fault::NoFence, budget, spec);
    assert!(found.starts_with(NO_TRAFFIC), "{found}");
}

#[test]
#[ignore = "minutes; run by make soak"]
fn no_order_of_many_events_harms_the_live_side() {
    let budget = EventBudget { edits: 2, promotions: 1, deletions: 1, hand_edits: 0, crashes: 1, leaders: 1 };
    let states = explore(at_rest(spec), budget, spec).unwrap_or_else(|harm| panic!("{harm}"));
    assert!(states > 1_000);
}
