//! A policy that is carried out is reconciled: its conditions say how far.

use std::time::Duration;

use gateway_policies::{
    Condition as Found, Delivery, Index, NodeKey, PolicyId, ancestor_statuses, conditions,
};
use interlock_core::api::condition::{self, Condition, ConditionChange, ConditionStatus, Time};
use interlock_core::api::object::{ObjectKey, meta_str};
use interlock_core::effect::Effect;
use interlock_core::kinds::capabilities::POLICIES;
use interlock_core::reconcile::{Needs, ReconcileStep, Reconciler, View};
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::auth::writes::unread_auth_configs;
use super::finding::Finding;
use super::gateway::unread;
use super::names::Patched;
use super::output::Redirects;
use super::state::Enforcement;
use super::{ancestors, auth};
use crate::policies::attachments::AttachmentGraph;
use crate::policies::linked::LinkedObjects;

/// Reconciles RateLimitPolicies.
pub(crate) static OF_LIMITS: Reconciler =
    Reconciler { name: "rate-limit-policy", capability: &POLICIES, reconcile };
/// Reconciles AuthPolicies.
pub(crate) static OF_AUTH: Reconciler = Reconciler { name: "auth-policy", capability: &POLICIES, reconcile };

/// When it is looked again whether all kinds are read.
const UNREAD: Duration = Duration::from_secs(5);
/// When it is looked again how far something on its way has come, if no event comes first.
const AGAIN: Duration = Duration::from_secs(1);

const ACCEPTED: &str = "Accepted";
const ENFORCED: &str = "Enforced";
/// GEP-713's, by ancestor.
const PROGRAMMED: &str = "Programmed";
/// Its reason while something is on its way.
const RECONCILING: &str = "Reconciling";

fn reconcile(view: &View<'_>) -> Result<ReconcileStep, Needs> {
    let object = view.object();
    let (Some(graph), Some(key)) = (view.lister::<AttachmentGraph>(), ObjectKey::of(object)) else {
        return Ok(ReconcileStep::Await(None));
    };
    let namespace = meta_str(object, "namespace").unwrap_or_default();
    let kind = key.gvk.kind.as_str();
    let id = PolicyId { kind: kind.into(), namespace: namespace.into(), name: key.name.as_str().into() };
    let generation = object["metadata"]["generation"].as_i64();
    let unread = unread(view).or_else(|| unread_auth_configs(view).filter(|_| kind == auth::KIND));
    let again = if unread.is_some() { UNREAD } else { AGAIN };
    let room = ancestors::room(object);
    let standing = graph.decide(|linked| match unread {
        _ if linked.enforcement.is_idle() => Some(Standing::default()),
        // Of what is not read, nothing is known: what was decided of this version stays.
        Some(_) if is_decided(object) => None,
        Some(unread) => Some(unknown(kind, unread, generation.unwrap_or_default())),
        None => standing(linked, &id, room),
    });
    let Some(standing) = standing else { return Ok(ReconcileStep::Await(Some(again))) };
    // Another operator says what becomes of it.
    if standing.found.is_empty() {
        return Ok(ReconcileStep::Await(None));
    }
    // The graph has another version than this one.
    if standing.found.iter().any(|own| Some(own.condition.observed_generation) != generation) {
        return Ok(ReconcileStep::Await(Some(again)));
    }
    let again = standing.is_awaited.then_some(again);
    let (present, time) = (present(object), Time(view.now()));
    let with_found = |present: Vec<Condition>, found| with_found(present, found, generation, &time);
    let wanted = with_found(present.clone(), standing.found);
    let mut status = json!({"conditions": wanted, "observedGeneration": generation});
    let mut is_written = wanted == present && object["status"]["observedGeneration"].as_i64() == generation;
    if let Some(found) = standing.ancestors {
        let ours = ancestors::ours(object, found, with_found);
        is_written &= ancestors::is_written(object, &ours)
            && !graph.decide(|linked| linked.enforcement.pruning.is_to_be_tried(&id, object, &ours));
        status["ancestors"] = ancestors::with_others(object, ours);
    }
    if is_written {
        return Ok(ReconcileStep::Await(again));
    }
    let resource_version = meta_str(object, "resourceVersion").unwrap_or_default().to_owned();
    Ok(ReconcileStep::Write(vec![Effect::Status { key, resource_version, status }]))
}

/// The conditions with what was found.
fn with_found(
    present: Vec<Condition>,
    mut found: Vec<Finding>,
    generation: Option<i64>,
    now: &Time,
) -> Vec<Condition> {
    let mut wanted = present;
    wanted.retain(|own| own.type_ != ENFORCED || found.iter().any(|found| found.condition.kind == ENFORCED));
    let is_in_force = |own: &Condition| own.status == "True" && own.observed_generation == generation;
    found.retain(|own| {
        let kept = condition::find(&wanted, own.condition.kind).filter(|_| own.is_on_its_way);
        !kept.is_some_and(is_in_force)
    });
    let changes = found.into_iter().map(|Finding { condition: own, .. }| {
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
    found: Vec<Finding>,
    /// The same by ancestor; `None` where nothing is known.
    ancestors: Option<Vec<(NodeKey, Vec<Finding>)>>,
    /// Whether something is on its way.
    is_awaited: bool,
}

/// Whether it was decided how far this version of a policy is in force, or that it is not accepted.
fn is_decided(object: &Value) -> bool {
    let of_this = |own: &&Condition| own.observed_generation == object["metadata"]["generation"].as_i64();
    let present = present(object);
    let own = |kind: &str| condition::find(&present, kind).filter(of_this);
    own(ENFORCED).is_some() || own(ACCEPTED).is_some_and(|own| own.status == "False")
}

/// What holds a version up of which nothing is known yet.
fn unknown(kind: &str, unread: String, observed_generation: i64) -> Standing {
    let message = format!("{kind} waiting for the following components to sync: [{unread}]");
    let enforced = Found { kind: ENFORCED, is_true: false, reason: "Unknown", message, observed_generation };
    Standing { found: vec![enforced.into()], ancestors: None, is_awaited: true }
}

fn standing(linked: &mut LinkedObjects, id: &PolicyId, room: usize) -> Option<Standing> {
    let LinkedObjects { index, enforcement, .. } = linked;
    let state = index.state(id)?;
    let live = state.ancestors.iter().filter(|(_, own)| own.is_live).map(|(gateway, _)| gateway);
    let below: Vec<BelowGateway<'_>> =
        live.map(|gateway| BelowGateway::of(enforcement, index, gateway, id)).collect();
    let find = |gateway: &NodeKey| below.iter().find(|own| own.gateway == gateway);
    let delivery = |gateway: &NodeKey| find(gateway).map_or(Delivery::Delivered, |own| own.delivery.clone());
    let is_pending = |own: &BelowGateway<'_>| matches!(own.delivery, Delivery::Pending(_));
    let is_on_its_way = below.iter().any(is_pending)
        && below.iter().all(|own| own.is_patched && !matches!(own.delivery, Delivery::Failed(_)));

    let found = conditions(state, &delivery).into_iter().map(|mut own| {
        if own.kind == ENFORCED {
            say(&mut own, &below);
        }
        let is_on_its_way = is_on_its_way && own.kind == ENFORCED && own.reason == "Unknown";
        Finding { condition: own, is_on_its_way }
    });
    let by_ancestor = ancestor_statuses(state, &delivery, room).into_iter().map(|status| {
        let below = find(&status.ancestor);
        let found = status.conditions.into_iter().map(|mut own| {
            if own.kind == PROGRAMMED && own.is_true {
                say(&mut own, below);
            }
            let is_on_its_way =
                own.reason == RECONCILING && below.is_some_and(|below| is_pending(below) && below.is_patched);
            Finding { condition: own, is_on_its_way }
        });
        (status.ancestor, found.collect())
    });
    let (found, ancestors) = (found.collect(), Some(by_ancestor.collect()));
    Some(Standing { found, ancestors, is_awaited: below.iter().any(is_pending) })
}

/// What becomes of a policy below a Gateway where it is live.
struct BelowGateway<'a> {
    gateway: &'a NodeKey,
    delivery: Delivery,
    /// Whether what was there before is.
    is_patched: bool,
    /// The rule that the proxy cannot carry out, and why.
    left_out: Option<String>,
    /// What the proxy redirects without asking.
    redirects: Option<Redirects>,
}

impl<'a> BelowGateway<'a> {
    fn of(enforcement: &mut Enforcement, index: &Index, gateway: &'a NodeKey, id: &PolicyId) -> Self {
        Self {
            gateway,
            delivery: enforcement.delivery(index, gateway, id),
            is_patched: enforcement.is_patched(index, gateway, Patched::of_kind(&id.kind)),
            left_out: enforcement.left_out(index, gateway, id),
            redirects: enforcement.redirects(index, gateway, id),
        }
    }
}

/// Says in a condition why rules do not act as written, though they are delivered.
fn say<'a>(condition: &mut Found, below: impl IntoIterator<Item = &'a BelowGateway<'a>>) {
    let below: Vec<&BelowGateway<'_>> = below.into_iter().collect();
    if let Some(why) = below.iter().find_map(|own| own.left_out.as_ref()) {
        condition.is_true = false;
        condition.reason = "Unsupported";
        condition.message.clone_from(why);
    } else if condition.is_true {
        say_redirects(condition, &below);
    }
}

fn say_redirects(condition: &mut Found, below: &[&BelowGateway<'_>]) {
    let redirects = || below.iter().map(|own| own.redirects.as_ref());
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
