//! A RateLimitPolicy is reconciled: its conditions say how far it is carried out.

use std::time::Duration;

use gateway_policies::{
    AncestorStatus, Condition as Found, Delivery, PolicyId, ancestor_statuses, conditions,
};
use interlock_core::api::condition::{self, Condition, ConditionChange, ConditionStatus, Time};
use interlock_core::api::object::{ObjectKey, meta_str};
use interlock_core::effect::Effect;
use interlock_core::kinds::capabilities::POLICIES;
use interlock_core::reconcile::{Needs, ReconcileStep, Reconciler, View};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::ancestors;
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
/// GEP-713's, by ancestor.
const PROGRAMMED: &str = "Programmed";

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
    let (present, is_kept) = (present(object), standing.is_awaited && standing.is_patched);
    let time = Time(view.now());
    let with_found = |present: Vec<Condition>, found| with_found(present, found, is_kept, generation, &time);
    let wanted = with_found(present.clone(), standing.found);
    let ancestors = ancestors::entries(object, standing.ancestors, with_found);
    let is_written = wanted == present && !ancestors::differ(object, &ancestors);
    if is_written && object["status"]["observedGeneration"].as_i64() == generation {
        return Ok(ReconcileStep::Await(again));
    }
    let resource_version = meta_str(object, "resourceVersion").unwrap_or_default().to_owned();
    let status = json!({"conditions": wanted, "ancestors": ancestors, "observedGeneration": generation});
    Ok(ReconcileStep::Write(vec![Effect::Status { key, resource_version, status }]))
}

/// The conditions with what was found. What is in force stays so while its next form is on its way.
fn with_found(
    present: Vec<Condition>,
    mut found: Vec<Found>,
    is_kept: bool,
    generation: Option<i64>,
    now: &Time,
) -> Vec<Condition> {
    let is_of_delivery = |kind: &str| [ENFORCED, PROGRAMMED].contains(&kind);
    let mut wanted = present;
    wanted.retain(|own| !is_of_delivery(&own.type_) || found.iter().any(|found| found.kind == own.type_));
    let is_in_force = |own: &Condition| own.status == "True" && own.observed_generation == generation;
    found.retain(|own| {
        let keeps = is_kept && is_of_delivery(own.kind);
        !keeps || !condition::find(&wanted, own.kind).is_some_and(is_in_force)
    });
    let changes = found.into_iter().map(|own| {
        let status = if own.is_true { ConditionStatus::True } else { ConditionStatus::False };
        ConditionChange::set(own.kind, status, own.reason, own.message)
    });
    condition::apply(&mut wanted, changes.collect(), generation, now);
    wanted.sort_by(|one, other| one.type_.cmp(&other.type_));
    wanted
}

fn present(object: &Value) -> Vec<Condition> {
    Vec::deserialize(&object["status"]["conditions"]).unwrap_or_default()
}

/// How far a policy is carried out; nothing is found where another operator does it.
#[derive(Default)]
struct Standing {
    found: Vec<Found>,
    ancestors: Vec<AncestorStatus>,
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
    Standing { found: vec![enforced], ancestors: Vec::new(), is_awaited: true, is_patched: true }
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
    let mut ancestors = ancestor_statuses(state, &of);
    let hindrances: Vec<_> = deliveries
        .iter()
        .map(|(gateway, _)| Hindrance {
            left_out: enforcement.left_out(index, gateway, id),
            redirects: enforcement.redirects(index, gateway, id),
        })
        .collect();
    say(found.iter_mut().find(|own| own.kind == ENFORCED), &hindrances);
    for own in &mut ancestors {
        let of_this = deliveries.iter().position(|(gateway, _)| *gateway == own.ancestor);
        let programmed = own.conditions.iter_mut().find(|own| own.kind == PROGRAMMED);
        say(programmed, of_this.map(|index| &hindrances[index..=index]).unwrap_or_default());
    }
    debug_assert!(found.iter().all(|own| [ACCEPTED, ENFORCED].contains(&own.kind)), "{found:?}");
    let is_awaited = deliveries.iter().any(|(_, own)| matches!(own, Delivery::Pending(_)));
    Some(Standing { found, ancestors, is_awaited, is_patched })
}

/// Why limits do not act below a Gateway, though they are delivered.
struct Hindrance {
    /// The limit that the proxy cannot carry out, and why.
    left_out: Option<String>,
    /// What the proxy redirects without asking.
    redirects: Option<Redirects>,
}

/// Says it in a condition that is true but for it.
fn say(condition: Option<&mut Found>, of_gateways: &[Hindrance]) {
    let Some(condition) = condition else { return };
    if let Some(why) = of_gateways.iter().find_map(|own| own.left_out.as_ref()) {
        condition.is_true = false;
        condition.reason = "Unsupported";
        condition.message.clone_from(why);
    } else if condition.is_true {
        say_redirects(condition, of_gateways);
    }
}

fn say_redirects(condition: &mut Found, of_gateways: &[Hindrance]) {
    let redirects = || of_gateways.iter().map(|own| own.redirects.as_ref());
    let are_all = redirects().all(|own| own.is_some_and(|own| own.are_all));
    let Some(Redirects { rule, .. }) = redirects().flatten().next() else { return };
    if are_all {
        condition.is_true = false;
        condition.reason = "Unsupported";
        condition.message = format!(
            "no request is limited: {rule} redirects, which Envoy does without asking; target rules with backends"
        );
    } else {
        condition.message += &format!("; requests that {rule} redirects are not limited");
    }
}
