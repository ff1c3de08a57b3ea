//! A Gateway is reconciled: its EnvoyPatchPolicies and AuthConfigs, and the limits of its Limitador.

use std::collections::BTreeSet;
use std::time::Duration;

use gateway_policies::{Delivery, NodeKey, ObjectKind, PolicyId};
use interlock_core::api::condition::{self, Condition, ConditionChange, ConditionStatus, Time};
use interlock_core::api::object::{ObjectKey, meta_str};
use interlock_core::effect::Effect;
use interlock_core::kinds::capabilities::POLICIES;
use interlock_core::kinds::inventory::ReadKinds;
use interlock_core::reconcile::{Needs, ReconcileStep, Reconciler, View};
use serde::Deserialize as _;
use serde_json::json;

use super::auth::writes::{auth_configs, surplus_auth_configs};
use super::fleet_writes::{FleetWrites, fleet_writes, limits};
use super::idle::Idle;
use super::names::Patched;
use super::writes::named_refusal;
use super::{auth, output};
use crate::names as groups;
use crate::policies::attachments::AttachmentGraph;
use crate::policies::linked::LinkedObjects;

/// Reconciles Gateways.
pub(crate) static RECONCILER: Reconciler =
    Reconciler { name: "gateway-policies", capability: &POLICIES, reconcile };

/// When it is looked again whether all kinds are read.
pub(super) const AGAIN: Duration = Duration::from_secs(2);

/// The conditions of a Gateway with policies, by their kinds (Kuadrant, GEP-713).
const AFFECTED: [(&str, &str); 2] =
    [(output::KIND, "kuadrant.io/RateLimitPolicyAffected"), (auth::KIND, "kuadrant.io/AuthPolicyAffected")];
/// Policies that its message names.
const NAMED: usize = 8;

fn reconcile(view: &View<'_>) -> Result<ReconcileStep, Needs> {
    let object = view.object();
    let (Some(graph), Some(name)) = (view.lister::<AttachmentGraph>(), meta_str(object, "name")) else {
        return Ok(ReconcileStep::Await(None));
    };
    // Of what is not read, nothing is known: what is written stays.
    if unread(view).is_some() {
        return Ok(ReconcileStep::Await(Some(AGAIN)));
    }
    let namespace = meta_str(object, "namespace").unwrap_or_default();
    let gateway = NodeKey::new(ObjectKind::Gateway, namespace, name);
    let (wanted, uncounted) = graph.decide(|linked| {
        let LinkedObjects { index, enforcement, .. } = linked;
        let wanted = enforcement.wanted(index, &gateway);
        let uncounted = wanted.as_ref().ok().and_then(|own| enforcement.uncounted(index, &gateway, own));
        linked.wake_restated();
        (wanted, uncounted)
    });
    let wanted = match wanted {
        Err(Idle::Kuadrant | Idle::Awaits(_)) => return Ok(ReconcileStep::Await(None)),
        Err(Idle::Lacks(_)) => None,
        Ok(wanted) => Some(wanted),
    };
    let rendered = wanted.as_ref().map(|own| &*own.rendered);
    // What is for merged ones is written for their class.
    let of_fleet = wanted.as_ref().filter(|own| !own.rendered.fleet.is_merged());
    let FleetWrites { mut effects, refused } =
        fleet_writes(view, &BTreeSet::from([namespace.to_owned()]), of_fleet)?;
    if let Some((limitador, stored)) = &uncounted {
        effects.extend(limits(view, limitador, stored)?);
    }
    let configs = auth_configs(view, &gateway, rendered)?;
    let refused_configs = configs.iter().filter_map(|own| named_refusal(view, own)).collect();
    effects.extend(configs);
    // No proxy asks about them any more.
    let is_at_rest = effects.iter().all(|own| view.refused_write(own).is_some());
    if is_at_rest && graph.decide(|linked| are_guards_delivered(linked, &gateway)) {
        effects.extend(surplus_auth_configs(view, &gateway, rendered)?);
    }
    let affecting = graph.decide(|linked| {
        let written = &mut linked.enforcement.written;
        refused.into_iter().for_each(|(patched, own)| written.refuse(&gateway, patched, own));
        written.refuse_configs(&gateway, refused_configs);
        AFFECTED.map(|(kind, condition)| (condition, kind, affecting(linked, &gateway, kind)))
    });
    effects.extend(affected(view, affecting));
    Ok(if effects.is_empty() { ReconcileStep::Await(None) } else { ReconcileStep::Write(effects) })
}

/// What decides about requests and is not read, if anything.
pub(super) fn unread(view: &View<'_>) -> Option<String> {
    const KINDS: [(&str, &str); 13] = [
        (groups::GATEWAY_API, "GatewayClass"),
        (groups::GATEWAY_API, "Gateway"),
        (groups::GATEWAY_API, "ListenerSet"),
        (groups::EXPERIMENTS, "XListenerSet"),
        (groups::GATEWAY_API, "HTTPRoute"),
        (groups::GATEWAY_API, "GRPCRoute"),
        (groups::KUADRANT, "RateLimitPolicy"),
        (groups::KUADRANT, "AuthPolicy"),
        (groups::KUADRANT, "Kuadrant"),
        (groups::AUTHORINO, "AuthConfig"),
        (groups::ENVOY_GATEWAY, "ClientTrafficPolicy"),
        (groups::ENVOY_GATEWAY, "EnvoyProxy"),
        ("", "Namespace"),
    ];
    let read = view.lister::<dyn ReadKinds>()?;
    if !read.is_of_all_namespaces() {
        return Some("all namespaces, of which some are not watched".to_owned());
    }
    let is_known =
        |(group, kind): &&(&str, &str)| read.is_read(group, kind, "") || read.is_absent(group, kind);
    let (_, kind) = KINDS.iter().find(|kind| !is_known(kind))?;
    Some(format!(
        "objects of the kind {kind}, which are not read yet, or cannot be: as the capability attachments is off, or a right is \
         missing"
    ))
}

fn are_guards_delivered(linked: &mut LinkedObjects, gateway: &NodeKey) -> bool {
    let LinkedObjects { index, enforcement, .. } = linked;
    match enforcement.wanted(index, gateway) {
        Ok(wanted) => {
            let written = &enforcement.written;
            written.delivery(&wanted.rendered, Patched::Guards) == Delivery::Delivered
        }
        Err(Idle::Lacks(_)) => true,
        Err(Idle::Kuadrant | Idle::Awaits(_)) => false,
    }
}

/// The policies of a kind with a rule that acts on requests of a Gateway; what its proxies redirect is not limited.
fn affecting(linked: &mut LinkedObjects, gateway: &NodeKey, kind: &str) -> BTreeSet<PolicyId> {
    let LinkedObjects { index, enforcement, .. } = linked;
    if !enforcement.carries_out(index, gateway, kind) {
        return BTreeSet::new();
    }
    let mut own = index.affecting(gateway, None).remove(kind).unwrap_or_default();
    own.retain(|id| !enforcement.redirects(index, gateway, id).is_some_and(|own| own.are_all));
    own
}

/// The conditions of the Gateway that name the policies with a rule that acts on a path through it, as Kuadrant has them.
/// On listeners and routes, Envoy Gateway would overwrite them.
fn affected(view: &View<'_>, affecting: [(&'static str, &str, BTreeSet<PolicyId>); 2]) -> Option<Effect> {
    let object = view.object();
    let present = &object["status"]["conditions"];
    // Those of others are written with it.
    let present: Vec<Condition> =
        if present.is_null() { Vec::new() } else { Vec::deserialize(present).ok()? };
    let changes = affecting.map(|(condition, kind, policies)| {
        let mut names: Vec<String> = policies.iter().take(NAMED).map(PolicyId::qualified_name).collect();
        let more = policies.len().checked_sub(NAMED).filter(|more| *more > 0);
        names.extend(more.map(|more| format!("and {more} more")));
        if names.is_empty() {
            return ConditionChange::Remove(condition);
        }
        let message = format!("Object affected by {kind} [{}]", names.join(" "));
        ConditionChange::set(condition, ConditionStatus::True, "Accepted", message)
    });
    let mut wanted = present.clone();
    let generation = object["metadata"]["generation"].as_i64();
    condition::apply(&mut wanted, changes.into(), generation, &Time(view.now()));
    let resource_version = meta_str(object, "resourceVersion")?.to_owned();
    let status = json!({"conditions": wanted});
    (wanted != present).then_some(Effect::Status { key: ObjectKey::of(object)?, resource_version, status })
}
