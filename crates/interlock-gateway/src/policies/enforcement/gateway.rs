//! A Gateway is reconciled: its EnvoyPatchPolicies and AuthConfigs, and the limits of its Limitador.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use gateway_policies::{Delivery, NodeKey, ObjectKind, PolicyId};
use interlock_core::api::condition::{self, Condition, ConditionChange, ConditionStatus, Time};
use interlock_core::api::interlock::{LimitStore, Limitador};
use interlock_core::api::object::{Gvk, NamespacedName, ObjectKey, annotation, meta_str};
use interlock_core::effect::Effect;
use interlock_core::kinds::capabilities::POLICIES;
use interlock_core::kinds::inventory::ReadKinds;
use interlock_core::reconcile::{Needs, ObjectList, ReconcileStep, Reconciler, View};
use interlock_core::rejection::Rejection;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::auth::config::{AuthConfig, without_others};
use super::counting::Idle;
use super::names::{self, AUTH_CONFIG, GATEWAY_UID, LIMITS, LIMITS_FILE, Patched, RENDERED};
use super::patches::MOST;
use super::rendering::{Rendered, StoredLimits};
use super::state::Wanted;
use super::{auth, output};
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

/// The version of the kind AuthConfig.
const AUTHORINO_VERSION: &str = "authorino.kuadrant.io/v1beta3";

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
    let wanted = graph.decide(|linked| {
        let wanted = linked.enforcement.wanted(&linked.index, &gateway);
        linked.wake_restated();
        wanted
    });
    let wanted = match wanted {
        Err(Idle::Kuadrant | Idle::Awaits(_)) => return Ok(ReconcileStep::Await(None)),
        Err(Idle::Lacks(_)) => None,
        Ok(wanted) => Some(wanted),
    };
    let rendered = wanted.as_ref().map(|own| &*own.rendered);
    let mut effects = Vec::new();
    let mut refused_writes = Vec::new();
    for patched in Patched::ALL {
        let mut writes = patches(view, &gateway, rendered, patched)?;
        if let Some(Wanted { stored: Some((limitador, stored)), .. }) =
            wanted.as_ref().filter(|_| patched == Patched::Limits)
        {
            writes.extend(limits(view, limitador, stored)?);
        }
        refused_writes.push((patched, refused(view, &writes)));
        effects.extend(writes);
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
        refused_writes.into_iter().for_each(|(patched, own)| written.refuse(&gateway, patched, own));
        written.refuse_configs(&gateway, refused_configs);
        AFFECTED.map(|(kind, condition)| (condition, kind, affecting(linked, &gateway, kind)))
    });
    effects.extend(affected(view, affecting));
    Ok(if effects.is_empty() { ReconcileStep::Await(None) } else { ReconcileStep::Write(effects) })
}

/// What decides about requests and is not read, if anything.
pub(super) fn unread(view: &View<'_>) -> Option<String> {
    const KINDS: [(&str, &str); 12] = [
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

/// Why no AuthConfig is read, where that is so.
pub(super) fn unread_auth_configs(view: &View<'_>) -> Option<String> {
    let is_read = view.lister::<dyn ReadKinds>()?.is_read(groups::AUTHORINO, "AuthConfig", "");
    (!is_read).then(|| {
        "AuthConfigs, whose definition, authconfigs.authorino.kuadrant.io, is not installed, or which Interlock may not read"
            .to_owned()
    })
}

/// The objects of a kind that are of the Gateway of that uid, by the label.
fn owned(version: &str, kind: &str, namespace: &str, label: &str, uid: &str) -> ObjectList {
    ObjectList {
        gvk: Gvk::new(version, kind),
        namespace: namespace.to_owned(),
        labels: BTreeMap::from([(label.to_owned(), uid.to_owned())]),
    }
}

/// What makes EnvoyPatchPolicies those that are wanted; nothing where those that are there stay.
fn patches(
    view: &View<'_>,
    gateway: &NodeKey,
    rendered: Option<&Rendered>,
    patched: Patched,
) -> Result<Vec<Effect>, Needs> {
    let object = view.object();
    let mut wanted = Vec::new();
    if let Some(rendered) = rendered {
        if rendered.is_kept(patched) {
            return Ok(Vec::new());
        }
        let patches = rendered.patches(patched).iter().flatten().enumerate();
        wanted.extend(patches.map(|(n, own)| patch(object, gateway, (patched, n), &n, own)));
        let standby = rendered.standby.iter().filter(|_| patched == Patched::Guards);
        wanted.extend(standby.map(|own| patch(object, gateway, (patched, MOST), &"standby", own)));
    }
    let (namespace, uid) = (&gateway.namespace, meta_str(object, "uid").unwrap_or_default());
    let label = patched.label();
    let present = view.list(&owned(ENVOY_GATEWAY_VERSION, "EnvoyPatchPolicy", namespace, label, uid))?;
    let mut effects = applied(view, &wanted, present)?;
    effects.extend(surplus(&wanted, present, |name| Patched::of_name(name) == Some(patched)));
    Ok(effects)
}

/// What makes AuthConfigs those that are wanted. Where the kind is not read, there is nothing that can be done about them.
fn auth_configs(
    view: &View<'_>,
    gateway: &NodeKey,
    rendered: Option<&Rendered>,
) -> Result<Vec<Effect>, Needs> {
    if unread_auth_configs(view).is_some() {
        return Ok(Vec::new());
    }
    let wanted = wanted_auth_configs(view.object(), gateway, rendered);
    let present = auth_configs_of(view, gateway)?;
    let mut effects = applied(view, &wanted, present)?;
    for wanted in &wanted {
        let Some(own) = present.iter().find(|own| ObjectKey::of(own) == ObjectKey::of(wanted)) else {
            continue;
        };
        // An apply leaves what others have added.
        if let Some(spec) = without_others(&own["spec"], &wanted["spec"]) {
            let key = ObjectKey::of(own);
            effects.extend(key.and_then(|key| Effect::patch_of(key, own, json!({"spec": spec}))));
        }
    }
    Ok(effects)
}

/// The deletion of AuthConfigs that are not wanted.
fn surplus_auth_configs(
    view: &View<'_>,
    gateway: &NodeKey,
    rendered: Option<&Rendered>,
) -> Result<Vec<Effect>, Needs> {
    let is_kept = rendered.is_some_and(|own| own.is_kept(Patched::Guards));
    if is_kept || unread_auth_configs(view).is_some() {
        return Ok(Vec::new());
    }
    let wanted = wanted_auth_configs(view.object(), gateway, rendered);
    let is_ours = |name: &str| name.starts_with(AUTH_CONFIG);
    Ok(surplus(&wanted, auth_configs_of(view, gateway)?, is_ours).collect())
}

fn auth_configs_of<'a>(view: &View<'a>, gateway: &NodeKey) -> Result<&'a [Arc<Value>], Needs> {
    let uid = meta_str(view.object(), "uid").unwrap_or_default();
    view.list(&owned(AUTHORINO_VERSION, "AuthConfig", &gateway.namespace, GATEWAY_UID, uid))
}

fn wanted_auth_configs(object: &Value, gateway: &NodeKey, rendered: Option<&Rendered>) -> Vec<Value> {
    let guarded = rendered.filter(|own| own.asked.auth.is_ok()).and_then(|own| own.guarded.as_ref());
    let configs = guarded.into_iter().flat_map(|own| &own.configs);
    configs.map(|(host, own)| auth_config(object, gateway, host, own)).collect()
}

fn are_guards_delivered(linked: &mut LinkedObjects, gateway: &NodeKey) -> bool {
    let LinkedObjects { index, enforcement, .. } = linked;
    match enforcement.wanted(index, gateway) {
        Ok(wanted) => {
            let written = &enforcement.written;
            written.delivery(gateway, &wanted.rendered, Patched::Guards) == Delivery::Delivered
        }
        Err(Idle::Lacks(_)) => true,
        Err(Idle::Kuadrant | Idle::Awaits(_)) => false,
    }
}

/// The metadata of an object that goes with its Gateway.
fn metadata_of(
    object: &Value,
    NamespacedName { namespace, name }: NamespacedName,
    label: &str,
    hash: &str,
) -> Value {
    let metadata = &object["metadata"];
    json!({
        "name": name,
        "namespace": namespace,
        "labels": {MANAGED_BY.0: MANAGED_BY.1, label: metadata["uid"]},
        "annotations": {RENDERED: hash},
        "ownerReferences": [{
            "apiVersion": object["apiVersion"], "kind": object["kind"],
            "name": metadata["name"], "uid": metadata["uid"],
        }],
    })
}

/// An AuthConfig.
fn auth_config(object: &Value, gateway: &NodeKey, host: &str, own: &AuthConfig) -> Value {
    json!({
        "apiVersion": AUTHORINO_VERSION,
        "kind": "AuthConfig",
        "metadata": metadata_of(object, names::auth_config(gateway, host), GATEWAY_UID, &own.hash),
        "spec": own.spec,
    })
}

/// An EnvoyPatchPolicy, and where it stands among those of its kind.
fn patch(
    object: &Value,
    gateway: &NodeKey,
    (patched, position): (Patched, usize),
    name: &dyn Display,
    (operations, hash): &(Vec<Value>, String),
) -> Value {
    json!({
        "apiVersion": ENVOY_GATEWAY_VERSION,
        "kind": "EnvoyPatchPolicy",
        "metadata": metadata_of(object, names::patch(patched, gateway, name), patched.label(), hash),
        "spec": {
            "targetRef": {"group": groups::GATEWAY_API, "kind": "Gateway", "name": object["metadata"]["name"]},
            "type": "JSONPatch",
            "priority": patched.priority() + i32::try_from(position).unwrap_or(i32::MAX / 2),
            "jsonPatches": operations,
        },
    })
}

/// The first of these writes that the API server refuses, and why.
fn refused(view: &View<'_>, effects: &[Effect]) -> Option<String> {
    effects.iter().find_map(|effect| named_refusal(view, effect)).map(|(_, why)| why)
}

/// The object of a write that the API server refuses, and why.
fn named_refusal(view: &View<'_>, effect: &Effect) -> Option<(NamespacedName, String)> {
    let (key, refused) = view.refused_write(effect)?;
    let name = NamespacedName::new(key.namespace.as_deref().unwrap_or_default(), &key.name);
    let rejection = Rejection::of(&refused.failure);
    let why = format!("{} {name}, which cannot be written ({})", key.gvk.kind, rejection.message);
    Some((name, why))
}

/// What writes the wanted objects that are not there, or not so. One may be there without our label.
fn applied(view: &View<'_>, wanted: &[Value], present: &[Arc<Value>]) -> Result<Vec<Effect>, Needs> {
    let mut effects = Vec::new();
    for object in wanted {
        let Some(key) = ObjectKey::of(object) else { continue };
        let own = present.iter().find(|own| ObjectKey::of(own).as_ref() == Some(&key));
        let own = match own {
            Some(own) => Some(own),
            None => view.get(&key)?,
        };
        if !own.is_some_and(|own| has(own, object)) {
            effects.push(apply(object.clone(), own.map(AsRef::as_ref)));
        }
    }
    Ok(effects)
}

/// The deletion of present objects that are not wanted, and have a name of ours.
fn surplus(
    wanted: &[Value],
    present: &[Arc<Value>],
    is_ours: impl Fn(&str) -> bool,
) -> impl Iterator<Item = Effect> {
    let key = |object: &Value| ObjectKey::of(object);
    let is_ours = move |own: &&Arc<Value>| meta_str(own, "name").is_some_and(&is_ours);
    let is_there = |own: &&Arc<Value>| own["metadata"]["deletionTimestamp"].is_null();
    let surplus = present.iter().filter(is_ours).filter(is_there);
    let surplus = surplus.filter(move |own| !wanted.iter().any(|object| key(object) == key(own)));
    surplus.filter_map(move |own| Some(Effect::delete_of(key(own)?, own)))
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

/// The limits of a Limitador, where they differ from those that it has.
fn limits(view: &View<'_>, limitador: &Limitador, stored: &StoredLimits) -> Result<Option<Effect>, Needs> {
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

/// Whether a list has all members that are wanted, beside others.
fn has_members(present: &Value, wanted: &Value) -> bool {
    let present = present.as_array().map(Vec::as_slice).unwrap_or_default();
    let mut wanted = wanted.as_array().into_iter().flatten();
    wanted.all(|own| present.iter().any(|other| has(other, own)))
}

/// Whether an object has all that is wanted of it. Lists are whole; what the API server adds to their members is not
/// looked at.
fn has(present: &Value, wanted: &Value) -> bool {
    match (present, wanted) {
        (Value::Object(present), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            present.get(name).is_some_and(|own| match name.as_str() {
                "ownerReferences" => has_members(own, wanted),
                _ => has(own, wanted),
            })
        }),
        (Value::Array(present), Value::Array(wanted)) => {
            present.len() == wanted.len() && present.iter().zip(wanted).all(|(own, wanted)| has(own, wanted))
        }
        _ => present == wanted,
    }
}
