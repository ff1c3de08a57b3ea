//! A Gateway is reconciled: its EnvoyPatchPolicies, and the limits of its Limitador.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gateway_policies::{NodeKey, ObjectKind, PolicyId};
use interlock_core::api::condition::{self, Condition, ConditionChange, ConditionStatus, Time};
use interlock_core::api::interlock::LimitStore;
use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey, annotation, meta_str};
use interlock_core::effect::Effect;
use interlock_core::kinds::capabilities::POLICIES;
use interlock_core::kinds::inventory::ReadKinds;
use interlock_core::reconcile::{Needs, ObjectList, ReconcileStep, Reconciler, View};
use interlock_core::rejection::Rejection;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::counting::Idle;
use super::names::{self, GATEWAY_UID, LIMITS, LIMITS_FILE, RENDERED};
use super::output::KIND;
use super::state::Wanted;
use crate::names as groups;
use crate::policies::attachments::AttachmentGraph;
use crate::policies::linked::LinkedObjects;

/// Reconciles Gateways.
pub(crate) static RECONCILER: Reconciler =
    Reconciler { name: "gateway-policies", capability: &POLICIES, reconcile };

/// When it is looked again whether all kinds are read.
const AGAIN: Duration = Duration::from_secs(2);

/// The version of Envoy Gateway's kinds.
const ENVOY_GATEWAY_VERSION: &str = "gateway.envoyproxy.io/v1alpha1";
/// The version of the kind Limitador.
const LIMITADOR_VERSION: &str = "limitador.kuadrant.io/v1alpha1";
/// The label of objects that Interlock makes.
const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "interlock");

/// The condition of a Gateway with limits (Kuadrant, GEP-713).
const AFFECTED: &str = "kuadrant.io/RateLimitPolicyAffected";
/// Policies that its message names.
const NAMED: usize = 8;

fn reconcile(view: &View<'_>) -> Result<ReconcileStep, Needs> {
    let object = view.object();
    let (Some(graph), Some(uid), Some(name)) =
        (view.lister::<AttachmentGraph>(), meta_str(object, "uid"), meta_str(object, "name"))
    else {
        return Ok(ReconcileStep::Await(None));
    };
    // Of what is not read, nothing is known: what is written stays.
    if unread(view).is_some() {
        return Ok(ReconcileStep::Await(Some(AGAIN)));
    }
    let namespace = meta_str(object, "namespace").unwrap_or_default();
    let gateway = NodeKey::new(ObjectKind::Gateway, namespace, name);
    let wanted = graph.decide(|linked| {
        let wanted = linked.enforcement.wanted(&linked.index, &gateway);
        linked.wake_restated();
        wanted
    });
    let present = view.list(&patches_of(namespace, uid))?;
    let patches = match &wanted {
        // The last good ones stay.
        Err(Idle::Kuadrant | Idle::Awaits(_)) => return Ok(ReconcileStep::Await(None)),
        Err(Idle::Lacks(_)) => Vec::new(),
        Ok(wanted) => match &wanted.rendered.patches {
            Ok(patches) => {
                patches.iter().enumerate().map(|(n, own)| patch(object, &gateway, n, own)).collect()
            }
            Err(_) => return Ok(ReconcileStep::Await(None)),
        },
    };
    let mut effects = Vec::new();
    if let Ok(wanted) = &wanted {
        effects.extend(limits(view, wanted)?);
    }
    effects.extend(changes(&patches, present));
    let refused = refused(view, &effects);
    graph.decide(|linked| linked.enforcement.written.refuse(&gateway, refused));
    let affecting =
        if wanted.is_ok() { graph.decide(|linked| affecting(linked, &gateway)) } else { BTreeSet::new() };
    effects.extend(affected(view, &affecting));
    Ok(if effects.is_empty() { ReconcileStep::Await(None) } else { ReconcileStep::Write(effects) })
}

/// What decides about limits and is not read, if anything.
pub(super) fn unread(view: &View<'_>) -> Option<String> {
    const KINDS: [(&str, &str); 10] = [
        (groups::GATEWAY_API, "GatewayClass"),
        (groups::GATEWAY_API, "Gateway"),
        (groups::GATEWAY_API, "ListenerSet"),
        (groups::EXPERIMENTS, "XListenerSet"),
        (groups::GATEWAY_API, "HTTPRoute"),
        (groups::GATEWAY_API, "GRPCRoute"),
        (groups::KUADRANT, "RateLimitPolicy"),
        (groups::KUADRANT, "Kuadrant"),
        (groups::ENVOY_GATEWAY, "ClientTrafficPolicy"),
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

/// The EnvoyPatchPolicies of the Gateway of that uid.
fn patches_of(namespace: &str, uid: &str) -> ObjectList {
    ObjectList {
        gvk: Gvk::new(ENVOY_GATEWAY_VERSION, "EnvoyPatchPolicy"),
        namespace: namespace.to_owned(),
        labels: BTreeMap::from([(GATEWAY_UID.to_owned(), uid.to_owned())]),
    }
}

/// An EnvoyPatchPolicy, which goes with its Gateway.
fn patch(
    object: &Value,
    gateway: &NodeKey,
    position: usize,
    (operations, hash): &(Vec<Value>, String),
) -> Value {
    let NamespacedName { namespace, name } = names::patch(gateway, position);
    let metadata = &object["metadata"];
    json!({
        "apiVersion": ENVOY_GATEWAY_VERSION,
        "kind": "EnvoyPatchPolicy",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {MANAGED_BY.0: MANAGED_BY.1, GATEWAY_UID: metadata["uid"]},
            "annotations": {RENDERED: hash},
            "ownerReferences": [{
                "apiVersion": object["apiVersion"], "kind": object["kind"],
                "name": metadata["name"], "uid": metadata["uid"],
            }],
        },
        "spec": {
            "targetRef": {"group": groups::GATEWAY_API, "kind": "Gateway", "name": metadata["name"]},
            "type": "JSONPatch",
            // What goes on under another's map comes after it.
            "priority": position,
            "jsonPatches": operations,
        },
    })
}

/// The first of these writes that the API server refuses, and why.
fn refused(view: &View<'_>, effects: &[Effect]) -> Option<String> {
    let (key, refused) = effects.iter().find_map(|effect| view.refused_write(effect))?;
    let name = NamespacedName::new(key.namespace.as_deref().unwrap_or_default(), &key.name);
    let rejection = Rejection::of(&refused.failure);
    Some(format!("{} {name}, which cannot be written ({})", key.gvk.kind, rejection.message))
}

/// What makes the present objects those that are wanted.
fn changes(wanted: &[Value], present: &[Arc<Value>]) -> Vec<Effect> {
    let key = |object: &Value| ObjectKey::of(object);
    let mut effects = Vec::new();
    for object in wanted {
        match present.iter().find(|own| key(own) == key(object)) {
            Some(own) if has(own, object) => {}
            own => effects.push(apply(object.clone(), own.map(AsRef::as_ref))),
        }
    }
    let surplus = present.iter().filter(|own| !wanted.iter().any(|object| key(object) == key(own)));
    effects.extend(surplus.filter_map(|own| Some(Effect::delete_of(key(own)?, own))));
    effects
}

/// The policies with a rule that acts on requests of a Gateway; what its proxies redirect is not limited.
fn affecting(linked: &mut LinkedObjects, gateway: &NodeKey) -> BTreeSet<PolicyId> {
    let LinkedObjects { index, enforcement, .. } = linked;
    let mut own = index.affecting(gateway, None).remove(KIND).unwrap_or_default();
    own.retain(|id| !enforcement.redirects(index, gateway, id).is_some_and(|own| own.are_all));
    own
}

/// The condition of the Gateway that names the policies with a rule that acts on a path through it, as Kuadrant has it.
/// On listeners and routes, Envoy Gateway would overwrite it.
fn affected(view: &View<'_>, policies: &BTreeSet<PolicyId>) -> Option<Effect> {
    let object = view.object();
    let present = &object["status"]["conditions"];
    // Those of others are written with it.
    let present: Vec<Condition> =
        if present.is_null() { Vec::new() } else { Vec::deserialize(present).ok()? };
    let mut names: Vec<String> = policies.iter().take(NAMED).map(PolicyId::qualified_name).collect();
    names.extend(
        policies.len().checked_sub(NAMED).filter(|more| *more > 0).map(|more| format!("and {more} more")),
    );
    let change = match names.is_empty() {
        true => ConditionChange::Remove(AFFECTED),
        false => {
            let message = format!("Object affected by {KIND} [{}]", names.join(" "));
            ConditionChange::set(AFFECTED, ConditionStatus::True, "Accepted", message)
        }
    };
    let mut wanted = present.clone();
    let generation = object["metadata"]["generation"].as_i64();
    condition::apply(&mut wanted, vec![change], generation, &Time(view.now()));
    let resource_version = meta_str(object, "resourceVersion")?.to_owned();
    let status = json!({"conditions": wanted});
    (wanted != present).then_some(Effect::Status { key: ObjectKey::of(object)?, resource_version, status })
}

/// The limits of a Limitador, where they differ from those that it has.
fn limits(view: &View<'_>, Wanted { limitador, stored, .. }: &Wanted) -> Result<Option<Effect>, Needs> {
    let (gvk, field, name) = match &limitador.store {
        LimitStore::ConfigMap(name) => (Gvk::new("v1", "ConfigMap"), ["data", LIMITS_FILE], name),
        LimitStore::Limitador(name) => (Gvk::new(LIMITADOR_VERSION, "Limitador"), ["spec", "limits"], name),
    };
    let NamespacedName { namespace, name } = name.clone();
    let key = ObjectKey { gvk, namespace: Some(namespace), name };
    let present = view.get(&key)?.map(AsRef::as_ref);
    let is_labelled = matches!(limitador.store, LimitStore::ConfigMap(_));
    let is_written = |own: &Value| {
        annotation(own, RENDERED) == Some(&stored.hash)
            && has(&own[field[0]][field[1]], &stored.content)
            && (!is_labelled || own["metadata"]["labels"][LIMITS] == "true")
    };
    match present {
        Some(own) if is_written(own) => return Ok(None),
        // Without limits, nothing is made.
        None if stored.is_empty || !is_labelled => return Ok(None),
        _ => {}
    }
    let mut object = json!({
        "apiVersion": key.gvk.api_version(), "kind": key.gvk.kind,
        "metadata": {"name": key.name, "namespace": key.namespace, "annotations": {RENDERED: stored.hash}},
        field[0]: {field[1]: stored.content},
    });
    if is_labelled {
        object["metadata"]["labels"] = json!({LIMITS: "true"});
    }
    Ok(Some(apply(object, present)))
}

fn apply(mut object: Value, present: Option<&Value>) -> Effect {
    if let Some(present) = present {
        for field in ["uid", "resourceVersion"] {
            object["metadata"][field] = present["metadata"][field].clone();
        }
    }
    Effect::Apply { object, force: true }
}

/// Whether an object has all that is wanted of it. Lists are whole; what the API server adds to their members is not
/// looked at.
fn has(present: &Value, wanted: &Value) -> bool {
    match (present, wanted) {
        (Value::Object(present), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| present.get(name).is_some_and(|own| has(own, wanted)))
        }
        (Value::Array(present), Value::Array(wanted)) => {
            present.len() == wanted.len() && present.iter().zip(wanted).all(|(own, wanted)| has(own, wanted))
        }
        _ => present == wanted,
    }
}
