//! A RateLimitPolicy is reconciled: its conditions say how far it is carried out.

use std::time::Duration;

use gateway_policies::{Condition as Found, Delivery, PolicyId, conditions};
use interlock_core::api::condition::{self, Condition, ConditionChange, ConditionStatus, Time};
use interlock_core::api::object::{ObjectKey, meta_str};
use interlock_core::effect::Effect;
use interlock_core::kinds::capabilities::POLICIES;
use interlock_core::reconcile::{Needs, ReconcileStep, Reconciler, View};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::gateway::unread;
use super::output::KIND;
use crate::policies::attachments::AttachmentGraph;
use crate::policies::linked::LinkedObjects;

/// Reconciles RateLimitPolicies.
pub(crate) static RECONCILER: Reconciler =
    Reconciler { name: "rate-limit-policy", capability: &POLICIES, reconcile };

/// When it is looked again how far something on its way has come, if no event comes first.
const AGAIN: Duration = Duration::from_secs(1);

const ACCEPTED: &str = "Accepted";
const ENFORCED: &str = "Enforced";

fn reconcile(view: &View<'_>) -> Result<ReconcileStep, Needs> {
    let object = view.object();
    let (Some(graph), Some(key)) = (view.lister::<AttachmentGraph>(), ObjectKey::of(object)) else {
        return Ok(ReconcileStep::Await(None));
    };
    let namespace = meta_str(object, "namespace").unwrap_or_default();
    let id = PolicyId { kind: KIND.into(), namespace: namespace.into(), name: key.name.as_str().into() };
    let unread = unread(view);
    let Some(standing) = graph.decide(|linked| standing(linked, &id, unread.as_deref())) else {
        return Ok(ReconcileStep::Await(Some(AGAIN)));
    };
    let generation = object["metadata"]["generation"].as_i64();
    // Another operator says what becomes of it.
    if standing.found.is_empty() {
        return Ok(ReconcileStep::Await(None));
    }
    // The graph has another version than this one.
    if standing.found.iter().any(|own| Some(own.observed_generation) != generation) {
        return Ok(ReconcileStep::Await(Some(AGAIN)));
    }
    let again = standing.is_awaited.then_some(AGAIN);
    let present = present(object);
    let mut wanted = present.clone();
    let is_in_force = |own: &Condition| own.status == "True" && own.observed_generation == generation;
    // What is in force stays so while its next form is on its way.
    let keeps_enforced = standing.is_awaited
        && standing.is_patched
        && condition::find(&present, ENFORCED).is_some_and(is_in_force);
    if !standing.found.iter().any(|own| own.kind == ENFORCED) {
        wanted.retain(|own| own.type_ != ENFORCED);
    }
    let found = standing.found.into_iter().filter(|own| own.kind != ENFORCED || !keeps_enforced);
    let changes = found.map(|own| {
        let status = if own.is_true { ConditionStatus::True } else { ConditionStatus::False };
        ConditionChange::set(own.kind, status, own.reason, own.message)
    });
    condition::apply(&mut wanted, changes.collect(), generation, &Time(view.now()));
    wanted.sort_by(|one, other| one.type_.cmp(&other.type_));
    if wanted == present && object["status"]["observedGeneration"].as_i64() == generation {
        return Ok(ReconcileStep::Await(again));
    }
    let resource_version = meta_str(object, "resourceVersion").unwrap_or_default().to_owned();
    let status = json!({"conditions": wanted, "observedGeneration": generation});
    Ok(ReconcileStep::Write(vec![Effect::Status { key, resource_version, status }]))
}

fn present(object: &Value) -> Vec<Condition> {
    Vec::deserialize(&object["status"]["conditions"]).unwrap_or_default()
}

/// How far a policy is carried out.
struct Standing {
    found: Vec<Found>,
    /// Whether something is on its way.
    is_awaited: bool,
    /// Whether what was there before it still is.
    is_patched: bool,
}

fn standing(linked: &mut LinkedObjects, id: &PolicyId, unread: Option<&str>) -> Option<Standing> {
    let LinkedObjects { index, enforcement, .. } = linked;
    if enforcement.is_idle() {
        return Some(Standing { found: Vec::new(), is_awaited: false, is_patched: false });
    }
    let state = index.state(id)?;
    let live = state.ancestors.iter().filter(|(_, own)| own.is_live).map(|(gateway, _)| gateway);
    let mut deliveries: Vec<_> =
        live.map(|gateway| (gateway.clone(), enforcement.delivery(index, gateway))).collect();
    if let Some(unread) = unread {
        let unread = |delivery: &mut Delivery| *delivery = Delivery::Pending(unread.to_owned());
        deliveries.iter_mut().for_each(|(_, delivery)| unread(delivery));
    }
    let is_patched = deliveries.iter().all(|(gateway, _)| enforcement.is_patched(gateway));
    let of = |gateway: &_| {
        let found = deliveries.iter().find(|(own, _)| own == gateway);
        found.map_or(Delivery::Delivered, |(_, delivery)| delivery.clone())
    };
    let mut found = conditions(state, &of);
    let left_out = deliveries.iter().find_map(|(gateway, _)| enforcement.left_out(index, gateway, id));
    if let (Some(why), Some(enforced)) = (left_out, found.iter_mut().find(|own| own.kind == ENFORCED)) {
        enforced.is_true = false;
        enforced.reason = "Unsupported";
        enforced.message = why;
    }
    debug_assert!(found.iter().all(|own| [ACCEPTED, ENFORCED].contains(&own.kind)), "{found:?}");
    let is_awaited = deliveries.iter().any(|(_, own)| matches!(own, Delivery::Pending(_)));
    Some(Standing { found, is_awaited, is_patched })
}
