//! Every order of what users, Kubernetes and crashes do to a rollout, on the real code.
//!
//! Two edits, one promotion, one deletion by hand of any child, a crash after any write. In every state the live
//! side is whole, and from every state the rollout comes to rest.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use rstest::rstest;
use serde_json::Value;

use super::world::{PassEnd, World, selected, spec};
use crate::api::meta;
use crate::effect::Effect;

/// What is left to happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Budget {
    edits: usize,
    promotions: usize,
    deletions: usize,
    crashes: usize,
    /// How often another process takes itself for the leader too.
    leaders: usize,
}

#[derive(Clone)]
struct State {
    world: World,
    budget: Budget,
    path: Path,
    /// The child that was deleted by hand and is not back yet.
    deleted: Option<String>,
    /// What the other leader has decided and not written yet.
    pending: Option<Vec<Effect>>,
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

/// What decides whether two states are the same: versions and times left out.
fn fingerprint(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&state.budget, &state.deleted).hash(&mut hasher);
    for (key, object) in &state.world.objects {
        (&key.gvk.kind, &key.name).hash(&mut hasher);
        hash_lasting(object, &mut hasher);
    }
    // Of what was decided, it matters whether the version still holds, and not which one it is.
    let pending = state.pending.iter().flatten();
    pending
        .take_while(|effect| state.world.holds(effect))
        .for_each(|effect| hash_effect(effect, &mut hasher));
    state.pending.is_some().hash(&mut hasher);
    hasher.finish()
}

fn hash_effect(effect: &Effect, hasher: &mut DefaultHasher) {
    match effect {
        Effect::Apply { object, .. } | Effect::Create { object } => hash_lasting(object, hasher),
        Effect::Patch { key, patch, .. } => {
            (&key.gvk.kind, &key.name).hash(hasher);
            hash_lasting(patch, hasher);
        }
        Effect::Status { status, .. } => hash_lasting(status, hasher),
        Effect::Delete { key, .. } => (&key.gvk.kind, &key.name).hash(hasher),
        Effect::Event { .. } | Effect::Healed { .. } => {}
    }
}

/// Members that a state is told apart by neither when they change nor for how long they stand.
const PASSING: [&str; 7] = [
    "resourceVersion",
    "generation",
    "managedFields",
    "observedGeneration",
    "lastTransitionTime",
    meta::LIVE_SINCE,
    meta::FORMER_SIDE_KEPT,
];

fn hash_lasting(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter().filter(|(name, _)| !PASSING.contains(&name.as_str())) {
                name.hash(hasher);
                hash_lasting(member, hasher);
            }
            0_u8.hash(hasher);
        }
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().for_each(|item| hash_lasting(item, hasher));
        }
        scalar => scalar.hash(hasher),
    }
}

const CHILDREN: [(&str, &str); 6] = [
    ("Deployment", "dataplane-edge-blue"),
    ("Deployment", "dataplane-edge-green"),
    ("Service", "dataplane-ingress-edge"),
    ("Service", "dataplane-admin-edge"),
    ("Service", "dataplane-ingress-edge-preview"),
    ("Service", "dataplane-admin-edge-preview"),
];

/// Every state that one more event leads to.
fn next(state: &State) -> Vec<State> {
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
    if state.budget.deletions > 0 {
        for (kind, name) in CHILDREN {
            if state.world.child(kind, name).is_some() {
                add(format!("delete {name}"), &|s| {
                    s.world.delete(kind, name);
                    s.deleted = Some(name.to_owned());
                    s.budget.deletions -= 1;
                });
            }
        }
    }
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
        if after.deleted.as_ref().is_some_and(|name| {
            CHILDREN.iter().any(|(kind, child)| child == name && after.world.child(kind, child).is_some())
        }) {
            after.deleted = None;
        }
    }
    all
}

/// What holds in every state.
fn check(before: &State, after: &State) {
    let fail = |what: &str| panic!("{what}\n{:#?}\n{:#?}", after.path.events(), after.world.log);
    let stamp = after.world.stamp();
    let Some(selector) = stamp["selector"].as_str() else { return };
    let deployments: Vec<&Value> = after
        .world
        .objects
        .values()
        .map(|stored| &**stored)
        .filter(|object| object["kind"] == "Deployment")
        .collect();
    let of = |selector: &str| {
        deployments
            .iter()
            .find(|found| found["spec"]["selector"]["matchLabels"].to_string().contains(selector))
    };
    // The live pods are those of the recorded spec, whatever is being changed.
    if let Some(live) = of(selector) {
        let found = &live["spec"]["template"]["spec"]["containers"][0]["image"];
        let recorded = &stamp["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["image"];
        if found != recorded {
            fail("the live Deployment is not made from the recorded spec");
        }
        if live["spec"]["replicas"] == 0 {
            fail("the live Deployment has no pods");
        }
    } else if after.deleted.is_none() && of_any(before, selector) {
        fail("the live Deployment was deleted by the controller");
    }
    // The traffic goes to pods.
    if let Some(service) = after.world.child("Service", "dataplane-ingress-edge") {
        let behind = of(selected(service));
        let has_pods =
            behind.is_some_and(|found| found["status"]["availableReplicas"].as_i64().unwrap_or(0) > 0);
        if !has_pods && after.deleted.is_none() && had_pods(before) {
            fail("the live Service selects nothing");
        }
    }
}

fn of_any(state: &State, selector: &str) -> bool {
    let all = state.world.objects.values().filter(|object| object["kind"] == "Deployment");
    all.into_iter().any(|found| found["spec"]["selector"]["matchLabels"].to_string().contains(selector))
}

fn had_pods(state: &State) -> bool {
    let Some(service) = state.world.child("Service", "dataplane-ingress-edge") else { return false };
    state.world.objects.values().filter(|object| object["kind"] == "Deployment").any(|found| {
        found["spec"]["selector"]["matchLabels"].to_string().contains(selected(service))
            && found["status"]["availableReplicas"].as_i64().unwrap_or(0) > 0
    })
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
    ready["status"] == "True" && matches!(world.rolled_out(), "WaitingForChange" | "AwaitingPromotion")
}

/// Every state that events lead to; how many there are.
fn explore(budget: Budget) -> usize {
    let mut world = World::with(spec("kong:3.8"));
    for _ in 0..4 {
        world.reconcile(usize::MAX);
        world.settle_deployments();
    }
    world.log.clear();
    let first = State { world, budget, path: Path::default(), deleted: None, pending: None };
    let mut reached: HashMap<u64, Reached> = HashMap::new();
    let mut seen = HashSet::from([fingerprint(&first)]);
    let mut queue = VecDeque::from([first]);
    while let Some(state) = queue.pop_front() {
        let (mut after_kubelet, mut after_grace) = (0, 0);
        for mut after in next(&state) {
            check(&state, &after);
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
    reached.keys().for_each(|key| comes_to_rest(&reached, *key));
    println!("counted: {} states of a rollout, none stuck", reached.len());
    reached.len()
}

/// Without further events of users, a state leads to one at rest.
fn comes_to_rest(reached: &HashMap<u64, Reached>, from: u64) {
    let mut state = &reached[&from];
    for _ in 0..12 {
        let before = state.after_grace;
        state = &reached[&reached[&before].after_kubelet];
        if state.is_at_rest && before == state.after_grace {
            return;
        }
    }
    panic!("it does not come to rest: {:#?}", reached[&from].path.events());
}

#[rstest]
#[case::crashes(Budget { edits: 1, promotions: 1, deletions: 0, crashes: 1, leaders: 0 })]
#[case::deletions(Budget { edits: 1, promotions: 1, deletions: 1, crashes: 0, leaders: 0 })]
#[case::leaders(Budget { edits: 1, promotions: 1, deletions: 0, crashes: 0, leaders: 1 })]
fn no_order_of_events_harms_the_live_side(#[case] budget: Budget) {
    assert!(explore(budget) > 50);
}

#[test]
#[ignore = "minutes; run by make soak"]
fn no_order_of_many_events_harms_the_live_side() {
    assert!(explore(Budget { edits: 2, promotions: 1, deletions: 1, crashes: 1, leaders: 1 }) > 1_000);
}
