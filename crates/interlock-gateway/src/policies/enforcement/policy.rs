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
use super::output::{KIND, Redirects};
use crate::policies::attachments::AttachmentGraph;
use crate::policies::linked::LinkedObjects;

/// Reconciles RateLimitPolicies.
pub(crate) static RECONCILER: Reconciler =
    Reconciler { name: "rate-limit-policy", capability: &POLICIES, reconcile };

/// When it is looked again whether all kinds are read.
const UNREAD: Duration = Duration::from_secs(5);
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
    let generation = object["metadata"]["generation"].as_i64();
    let unread = unread(view);
    let again = if unread.is_some() { UNREAD } else { AGAIN };
    let standing = graph.decide(|linked| match unread {
        _ if linked.enforcement.is_idle() => Some(Standing::default()),
        // Of what is not read, nothing is known: what was decided of this version stays.
        Some(_) if is_decided(object) => None,
        Some(unread) => Some(unknown(unread, generation.unwrap_or_default())),
        None => standing(linked, &id),
    });
    let Some(standing) = standing else { return Ok(ReconcileStep::Await(Some(again))) };
    // Another operator says what becomes of it.
    if standing.found.is_empty() {
        return Ok(ReconcileStep::Await(None));
    }
    // The graph has another version than this one.
    if standing.found.iter().any(|own| Some(own.observed_generation) != generation) {
        return Ok(ReconcileStep::Await(Some(again)));
    }
    let again = standing.is_awaited.then_some(again);
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

/// How far a policy is carried out; nothing is found where another operator does it.
#[derive(Default)]
struct Standing {
    found: Vec<Found>,
    /// Whether something is on its way.
    is_awaited: bool,
    /// Whether what was there before it still is.
    is_patched: bool,
}

/// Whether it was decided how far this version of a policy is in force, or that it is not accepted.
fn is_decided(object: &Value) -> bool {
    let of_this = |own: &&Condition| own.observed_generation == object["metadata"]["generation"].as_i64();
    let present = present(object);
    let own = |kind: &str| condition::find(&present, kind).filter(of_this);
    own(ENFORCED).is_some() || own(ACCEPTED).is_some_and(|own| own.status == "False")
}

/// What holds a version up of which nothing is known yet.
fn unknown(unread: String, observed_generation: i64) -> Standing {
    let message = format!("{KIND} waiting for the following components to sync: [{unread}]");
    let enforced = Found { kind: ENFORCED, is_true: false, reason: "Unknown", message, observed_generation };
    Standing { found: vec![enforced], is_awaited: true, is_patched: true }
}

fn standing(linked: &mut LinkedObjects, id: &PolicyId) -> Option<Standing> {
    let LinkedObjects { index, enforcement, .. } = linked;
    let state = index.state(id)?;
    let live = state.ancestors.iter().filter(|(_, own)| own.is_live).map(|(gateway, _)| gateway);
    let deliveries: Vec<_> =
        live.map(|gateway| (gateway.clone(), enforcement.delivery(index, gateway))).collect();
    let is_patched = deliveries.iter().all(|(gateway, _)| enforcement.written.is_patched(gateway));
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
    if let Some(enforced) = found.iter_mut().find(|own| own.kind == ENFORCED && own.is_true) {
        let redirects = deliveries.iter().map(|(gateway, _)| enforcement.redirects(index, gateway, id));
        say_redirects(enforced, redirects.collect());
    }
    debug_assert!(found.iter().all(|own| [ACCEPTED, ENFORCED].contains(&own.kind)), "{found:?}");
    let is_awaited = deliveries.iter().any(|(_, own)| matches!(own, Delivery::Pending(_)));
    Some(Standing { found, is_awaited, is_patched })
}

/// What the proxies of the Gateways of a policy redirect without asking.
fn say_redirects(enforced: &mut Found, of_gateways: Vec<Option<Redirects>>) {
    let are_all = of_gateways.iter().all(|own| own.as_ref().is_some_and(|own| own.are_all));
    let Some(Redirects { rule, .. }) = of_gateways.into_iter().flatten().next() else { return };
    if are_all {
        enforced.is_true = false;
        enforced.reason = "Unsupported";
        enforced.message = format!(
            "no request is limited: {rule} redirects, which Envoy does without asking; target rules with backends"
        );
    } else {
        enforced.message += &format!("; requests that {rule} redirects are not limited");
    }
}
