//! What can happen to a rollout in a state of the exploration: what users, Kubernetes and crashes do.

use std::collections::BTreeSet;
use std::rc::Rc;

use interlock_core::api::meta;
use interlock_core::api::object::ObjectKey;
use interlock_core::effect::Effect;
use serde_json::{Value, json};

use super::invariants::{CERTIFICATE, is_right};
use super::scenarios::{BLUE, GREEN, INGRESS};
use super::world::{PassEnd, World, is_terminating};
use crate::api::labels;
use crate::data_plane::rollout::side::Colour;

/// What is left to happen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EventBudget {
    pub edits: usize,
    pub promotions: usize,
    /// How often a person deletes a child.
    pub deletions: usize,
    /// How often a person deletes a Deployment that goes only after its pods.
    pub terminations: usize,
    /// How often a person edits one.
    pub hand_edits: usize,
    pub crashes: usize,
    /// How often another process takes itself for the leader too.
    pub leaders: usize,
    /// How often the watch of an object falls behind.
    pub lags: usize,
}

#[derive(Clone)]
pub struct State {
    pub world: World,
    pub budget: EventBudget,
    pub path: Path,
    /// The child that was deleted or edited by hand and is not right again yet.
    pub harmed: Option<String>,
    /// What the other leader has decided and not written yet.
    pub pending: Option<Vec<Effect>>,
}

/// The events that led to a state, shared with the states before it.
#[derive(Clone, Default)]
pub struct Path(Option<Rc<(Path, String)>>);

impl Path {
    fn push(&mut self, event: String) {
        let before = std::mem::take(self);
        *self = Self(Some(Rc::new((before, event))));
    }

    pub fn last(&self) -> Option<&str> {
        self.0.as_deref().map(|(_, event)| event.as_str())
    }

    pub fn events(&self) -> Vec<&str> {
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

/// The children of a DataPlane that a person deletes.
pub const CHILDREN: [(&str, &str); 6] = [
    ("Deployment", "dataplane-edge-blue"),
    ("Deployment", "dataplane-edge-green"),
    ("Service", "dataplane-ingress-edge"),
    ("Service", "dataplane-admin-edge"),
    ("Service", "dataplane-ingress-edge-preview"),
    ("Service", "dataplane-admin-edge-preview"),
];

/// Every state that one more event leads to.
pub fn next(state: &State, spec: fn(&str) -> Value) -> Vec<State> {
    let mut all = Vec::new();
    let mut add = |what: String, change: &dyn Fn(&mut State)| {
        let mut after = state.clone();
        change(&mut after);
        after.path.push(what);
        all.push(after);
    };
    edits(state, spec, &mut add);
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
    if state.world.objects.values().any(|object| is_terminating(object)) {
        add("what is being deleted is gone".to_owned(), &|s| s.world.collect_garbage());
    }
    for key in state.world.unseen.keys() {
        add(format!("the watch shows {}", key.name), &|s| {
            s.world.unseen.remove(key);
        });
    }
    add(KUBELET.to_owned(), &|s| {
        s.world.unseen.clear();
        s.world.collect_garbage();
        s.world.settle_deployments();
    });
    add(GRACE_OVER.to_owned(), &|s| {
        s.world.unseen.clear();
        s.world.wait(31);
        s.world.reconcile(usize::MAX);
    });
    lags(state, &mut all);
    let mut add = |what: String, change: &dyn Fn(&mut State)| {
        let mut after = state.clone();
        change(&mut after);
        after.path.push(what);
        all.push(after);
    };
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

/// What a user writes into the spec.
fn edits(state: &State, spec: fn(&str) -> Value, add: &mut impl FnMut(String, &dyn Fn(&mut State))) {
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
}

/// Each change of others once more, with a watch that does not show it yet.
fn lags(state: &State, all: &mut Vec<State>) {
    if state.budget.lags == 0 {
        return;
    }
    let before = &state.world;
    let mut lagging = Vec::new();
    for after in all.iter().filter(|after| after.path.last() != Some(GRACE_OVER)) {
        let keys = before.objects.keys().chain(after.world.objects.keys()).collect::<BTreeSet<_>>();
        let changed = |key: &&ObjectKey| {
            after.world.objects.get(*key) != before.objects.get(*key)
                && !after.world.unseen.contains_key(*key)
        };
        for key in keys.into_iter().filter(changed) {
            let mut late = after.clone();
            late.world.unseen.insert(key.clone(), before.objects.get(key).cloned());
            late.budget.lags -= 1;
            late.path.push(format!("which the watch of {} does not show", key.name));
            lagging.push(late);
        }
    }
    all.extend(lagging);
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
    if state.budget.deletions > 0 && state.world.child("Secret", CERTIFICATE).is_some() {
        add(format!("delete {CERTIFICATE}"), &|s| {
            s.world.delete("Secret", CERTIFICATE);
            s.harmed = Some(CERTIFICATE.to_owned());
            s.budget.deletions -= 1;
        });
    }
    if state.budget.terminations > 0 {
        for name in [BLUE, GREEN] {
            if state.world.child("Deployment", name).is_some() {
                add(format!("delete {name}, which is still there"), &|s| {
                    s.world.terminate("Deployment", name);
                    s.harmed = Some(name.to_owned());
                    s.budget.terminations -= 1;
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

pub const KUBELET: &str = "kubelet";
pub const GRACE_OVER: &str = "grace period over";
