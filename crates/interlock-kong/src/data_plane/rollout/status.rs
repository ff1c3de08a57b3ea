//! The status of a DataPlane: Kong's fields and conditions, and ours.

use interlock_core::api::condition;
use interlock_core::api::condition::{Condition, ConditionStatus, Time, WantedCondition};
use interlock_core::api::meta;
use interlock_core::api::object::meta_str;
use interlock_core::effect::{Effect, Severity};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::live_record::{RECORDED, recorded_hash};
use super::phase::RolloutState;
use super::refused_child::replica_failure;
use super::report::{GATES_PASSED, ROLLED_OUT, RolloutPhase};
use super::sourced_flavor::SourcedFlavorChange;
use super::take_over::not_supported;
use super::view::DataPlaneView;
use crate::api::labels;
use crate::data_plane::flavor::Flavor;
use crate::data_plane::flavor::gateway::Gateway;
use crate::data_plane::flavor::sources::Nothing;

/// What a status tells.
#[derive(Debug)]
pub struct DataPlaneStatusInput<'a> {
    /// Selector of the live side.
    pub selector: &'a str,
    /// The spec of the live side, if it is known.
    pub live_spec: Option<&'a Value>,
    /// The router flavor of the live side, where that comes from a ConfigMap or Secret.
    pub sourced: Option<Flavor>,
    /// The router flavor that a change of such a source stages.
    pub staged_flavor: Option<SourcedFlavorChange>,
    /// Whether something is staged: `Ready` is of an earlier generation then.
    pub staged: bool,
    /// The live Deployment.
    pub deployment: Option<&'a Value>,
    /// The live ingress Service.
    pub ingress: Option<&'a Value>,
    /// The rollout; `None` without one.
    pub rollout: Option<RolloutInput<'a>>,
    /// What else its pods may wait for, for people.
    pub certificate: &'a str,
    /// Reason and message of `Ready` where the API server refused a child of the live side.
    pub refused: Option<(&'static str, String)>,
    /// Reason and message of `Stalled`: where only a person can help.
    pub stalled: Option<(&'static str, String)>,
    /// What `Managed` says of one that was taken over.
    pub taken_over: Option<String>,
}

/// What a status tells of a rollout.
#[derive(Debug)]
pub struct RolloutInput<'a> {
    /// Where it stands.
    pub state: &'a RolloutState,
    /// Selector of the preview.
    pub selector: String,
    /// The ingress Service of the preview.
    pub ingress: Option<&'a Value>,
    /// The admin Service of the preview.
    pub admin: Option<&'a Value>,
}

/// Fields that only our definition has: Kong's drops them each time.
const OURS: [&str; 2] = ["podSelector", "routerFlavor"];

/// The write of the status, where it differs from the present one, with the Event of a take-over.
pub fn write(of: &DataPlaneView<'_>, input: &DataPlaneStatusInput<'_>, now: Timestamp) -> Vec<Effect> {
    let mut effects: Vec<Effect> = status(of, input, now).into_iter().collect();
    let before = of.conditions();
    let said = condition::find(&before, meta::condition::MANAGED).map(|said| said.reason.as_str());
    if let Some(message) = input.taken_over.as_ref().filter(|_| said != Some(meta::condition::TAKEN_OVER)) {
        effects.push(of.event(Severity::Normal, meta::event::TAKEN_OVER, message.clone()));
    }
    let said = condition::find(&before, meta::condition::STALLED);
    if let Some((reason, message)) = &input.stalled
        && said.is_none_or(|said| said.reason != *reason || said.message != *message)
    {
        effects.push(of.event(Severity::Warning, reason, message.clone()));
    }
    effects
}

fn status(of: &DataPlaneView<'_>, input: &DataPlaneStatusInput<'_>, now: Timestamp) -> Option<Effect> {
    let now = Time(now);
    let before = &of.object["status"];
    let mut status = Map::new();
    status.insert("selector".to_owned(), json!(input.selector));
    let pods = format!("app={},{}={}", of.name, labels::SELECTOR, input.selector);
    status.insert("podSelector".to_owned(), json!(pods));
    status.insert("routerFlavor".to_owned(), json!(router_flavor(of, input)));
    status.insert("service".to_owned(), json!(input.ingress.and_then(|service| meta_str(service, "name"))));
    status.insert("addresses".to_owned(), json!(input.ingress.map(addresses)));
    for count in ["replicas", "readyReplicas"] {
        let found = input.deployment.and_then(|deployment| deployment["status"][count].as_i64());
        status.insert(count.to_owned(), json!(found.unwrap_or_default()));
    }
    status.insert("conditions".to_owned(), json!(conditions(of, input, &now)));
    status.insert("rollout".to_owned(), rollout(of, input.rollout.as_ref(), &now));
    status.retain(|name, wanted| differs(&before[name.as_str()], wanted));
    let drops = before["podSelector"].is_null() && !before["selector"].is_null();
    if status.is_empty() || drops && status.keys().all(|name| OURS.contains(&name.as_str())) {
        return None;
    }
    Some(of.write_status(Value::Object(status)))
}

/// The write that says that a DataPlane is another operator's, where the status does not say so.
pub fn not_managed(of: &DataPlaneView<'_>, reason: &str, message: String, now: Timestamp) -> Option<Effect> {
    let before = of.conditions();
    let mut after = before.clone();
    let managed = wanted(meta::condition::MANAGED, ConditionStatus::False, reason, message);
    condition::set(&mut after, managed, Some(of.generation), &Time(now));
    (before != after).then(|| of.write_status(json!({"conditions": after})))
}

/// The writes that say that a DataPlane was handed back, where the status does not say so. What Kong's operator does not
/// keep up is taken off.
pub fn handed_back(of: &DataPlaneView<'_>, message: String, now: Timestamp) -> Vec<Effect> {
    let reason = meta::condition::HANDED_BACK;
    let before = of.conditions();
    let said = condition::find(&before, meta::condition::MANAGED);
    let is_new = said.is_none_or(|said| said.reason != reason);
    let mut effects: Vec<Effect> = not_managed(of, reason, message.clone(), now).into_iter().collect();
    if let Some(Effect::Status { status, .. }) = effects.first_mut() {
        let is_ours = |found: &Value| found["type"] == RECORDED || found["type"] == meta::condition::STALLED;
        if let Some(conditions) = status["conditions"].as_array_mut() {
            conditions.retain(|condition| !is_ours(condition));
        }
        for ours in OURS {
            status[ours] = Value::Null;
        }
        let rollout = of.object["status"]["rollout"]["conditions"].as_array();
        let is_gate = |found: &Value| found["type"] == GATES_PASSED;
        if let Some(rollout) = rollout.filter(|all| all.iter().any(is_gate)) {
            let kept: Vec<&Value> = rollout.iter().filter(|found| !is_gate(found)).collect();
            status["rollout"] = json!({"conditions": kept});
        }
    }
    if is_new {
        effects.push(of.event(Severity::Normal, meta::event::HANDED_BACK, message));
    }
    effects
}

/// The router flavor of the live side, where its spec is known and sets one.
fn router_flavor(of: &DataPlaneView<'_>, input: &DataPlaneStatusInput<'_>) -> Option<&'static str> {
    input.live_spec?;
    let runs = Gateway::runs(of.object, of.namespace, &Nothing).ok().flatten()?;
    runs.known().map(Flavor::as_str)
}

/// Whether a merge patch of a member would change it.
fn differs(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().any(|(name, wanted)| differs(found.get(name).unwrap_or(&Value::Null), wanted))
        }
        _ => found != wanted,
    }
}

fn conditions(of: &DataPlaneView<'_>, input: &DataPlaneStatusInput<'_>, now: &Time) -> Vec<Condition> {
    let mut all = of.conditions();
    let known = condition::find(&all, meta::condition::READY).and_then(|ready| ready.observed_generation);
    // Kong's meaning: the generation that is live.
    let generation = match (input.staged, known) {
        (true, Some(known)) => known,
        _ => of.generation,
    };
    condition::set(&mut all, ready(input), Some(generation), now);
    // Its pods serve what is in the cluster, also where a load balancer has no address.
    let serves = input.deployment.is_some_and(is_available);
    if let Some(spec) = input.live_spec {
        let served = serves || condition::is_true(&all, RECORDED);
        let status = if served { ConditionStatus::True } else { ConditionStatus::False };
        let message = recorded_hash(spec, input.sourced).as_str().to_owned();
        let reason = if served { "Served" } else { "NeverReady" };
        condition::set(&mut all, wanted(RECORDED, status, reason, message), None, now);
    }
    let stated = [
        (
            meta::condition::ROUTER_FLAVOR_STAGED,
            input.staged_flavor.as_ref().map(|staged| ("SourceChanged", staged.to_string())),
        ),
        (meta::condition::NOT_CARRIED_OUT, not_carried_out(of).map(|message| ("UnsupportedFields", message))),
        (meta::condition::STALLED, input.stalled.clone()),
        (
            meta::condition::MANAGED,
            input.taken_over.clone().map(|message| (meta::condition::TAKEN_OVER, message)),
        ),
    ];
    for (type_, stated) in stated {
        match stated {
            Some((reason, message)) => {
                let wanted = wanted(type_, ConditionStatus::True, reason, message);
                condition::set(&mut all, wanted, Some(of.generation), now);
            }
            None => all.retain(|condition| condition.type_ != type_),
        }
    }
    all
}

/// What Interlock does not carry out of a spec, for people.
fn not_carried_out(of: &DataPlaneView<'_>) -> Option<String> {
    let fields: Vec<String> =
        not_supported(of.spec()).map(|path| format!("spec.{}", path.join("."))).collect();
    (!fields.is_empty())
        .then(|| format!("{}: kept in the spec, and not carried out by Interlock", fields.join(", ")))
}

/// Kong's condition, with Kong's reasons and texts.
fn ready(input: &DataPlaneStatusInput<'_>) -> WantedCondition {
    let ready = |status, reason: &str, message| wanted(meta::condition::READY, status, reason, message);
    let waiting = |more: String| {
        let message = format!("Waiting for the resource to become ready{more}");
        ready(ConditionStatus::False, "WaitingToBecomeReady", message)
    };
    let name = |object: &Value| meta_str(object, "name").unwrap_or_default().to_owned();
    if let Some((reason, message)) = &input.refused {
        return ready(ConditionStatus::False, reason, message.clone());
    }
    let Some(deployment) = input.deployment else { return waiting(String::new()) };
    if !is_available(deployment) {
        let refused = replica_failure(deployment).map(|why| format!("; its pods are refused: {why}"));
        let why = refused.unwrap_or_else(|| input.certificate.to_owned());
        return waiting(format!(": Deployment {} is not ready yet{why}", name(deployment)));
    }
    let Some(ingress) = input.ingress else { return waiting(String::new()) };
    if !has_address(ingress) {
        return waiting(format!(": ingress Service {} is not ready yet", name(ingress)));
    }
    ready(ConditionStatus::True, "Ready", String::new())
}

fn wanted(type_: &'static str, status: ConditionStatus, reason: &str, message: String) -> WantedCondition {
    WantedCondition { type_, status, reason: reason.to_owned(), message }
}

/// Kong's rule: a Deployment without pods is never ready.
pub fn is_available(deployment: &Value) -> bool {
    let status = |name: &str| deployment["status"][name].as_i64().unwrap_or_default();
    let replicas = deployment["spec"]["replicas"].as_i64().unwrap_or(1);
    status("replicas") != 0 && status("availableReplicas") >= replicas
}

fn has_address(service: &Value) -> bool {
    let listed = service["status"]["loadBalancer"]["ingress"].as_array();
    service["spec"]["type"] != "LoadBalancer" || listed.is_some_and(|listed| !listed.is_empty())
}

/// Kong's order: addresses and host names of the load balancer, then cluster addresses.
fn addresses(service: &Value) -> Vec<Value> {
    let listed = |field: &str| {
        let ingress = service["status"]["loadBalancer"]["ingress"].as_array().into_iter().flatten();
        ingress.filter_map(|entry| entry[field].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let address =
        |type_: &str, value: &str, source: &str| json!({"type": type_, "value": value, "sourceType": source});
    let mut all: Vec<Value> = Vec::new();
    all.extend(listed("ip").iter().map(|ip| address("IPAddress", ip, "PublicLoadBalancer")));
    all.extend(listed("hostname").iter().map(|name| address("Hostname", name, "PublicLoadBalancer")));
    let own = service["spec"]["clusterIPs"].as_array().into_iter().flatten().filter_map(Value::as_str);
    all.extend(own.map(|ip| address("IPAddress", ip, "PrivateIP")));
    all
}

fn rollout(of: &DataPlaneView<'_>, input: Option<&RolloutInput<'_>>, now: &Time) -> Value {
    let Some(input) = input else { return Value::Null };
    let service = |service: Option<&Value>| {
        service.map(|service| {
            let listed = addresses(service).into_iter().take(16).collect::<Vec<_>>();
            json!({"name": meta_str(service, "name"), "addresses": listed})
        })
    };
    let RolloutState { phase, message, .. } = input.state;
    // The reason is the state: as with Kong's operator, a transition is one from a reason to another.
    let before = of.rolled_out().filter(|condition| condition.reason == phase.reason());
    let mut conditions: Vec<Condition> = before.into_iter().collect();
    let status = match phase {
        RolloutPhase::Grace => ConditionStatus::True,
        _ => ConditionStatus::False,
    };
    let rolled_out = wanted(ROLLED_OUT, status, phase.reason(), message.clone());
    condition::set(&mut conditions, rolled_out, Some(of.generation), now);
    if let Some(gate) = phase.gate() {
        conditions.extend(of.rollout_condition(GATES_PASSED).filter(|before| before.reason == gate.reason()));
        let said = format!("gate {} is closed; RolledOut says what it waits for", gate.as_str());
        let passed = wanted(GATES_PASSED, ConditionStatus::False, gate.reason(), said);
        condition::set(&mut conditions, passed, Some(of.generation), now);
    }
    json!({
        "deployment": {"selector": input.selector},
        "services": {"ingress": service(input.ingress), "adminAPI": service(input.admin)},
        "conditions": conditions,
    })
}
