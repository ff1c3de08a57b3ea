//! What needs a person: Instances, gateways and capabilities in trouble, with the reason, since when, and what to do.

use std::cmp::Reverse;

use interlock_core::api::display::display;
use interlock_core::api::meta::condition;
use interlock_core::api::object::{NamespacedName, meta_str};
use interlock_core::api::remedy::Remedy;
use interlock_core::kinds::fact;
use interlock_kong::data_plane::flavor::gateway::Gateway;
use interlock_kong::data_plane::flavor::overview;
use interlock_kong::data_plane::remedy;
use interlock_kudo::instance::remedy::of_instance;
use interlock_kudo::instance::trouble as troubles;
use interlock_kudo::instance::trouble::{Trouble, TroubleState};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::list::{MESSAGE_LIMIT, PageSection, ROWS, WORD_LIMIT, time};
use super::ranked::Ranked;
use crate::cluster::supervisor::{CapabilityPhase, CapabilitySnapshot, CapabilityStatus};
use crate::runtime::index::instances::KeptInstance;
use crate::runtime::index::row::name;
use crate::runtime::index::tables::Tables;

/// An object in trouble.
#[derive(Debug, Serialize)]
pub(super) struct TroubleRow {
    kind: &'static str,
    namespace: String,
    name: String,
    state: &'static str,
    reason: String,
    message: String,
    since: Option<Timestamp>,
    /// Further conditions of it that report a problem.
    also: Vec<Also>,
    next: String,
    command: String,
}

/// A further condition.
#[derive(Debug, Serialize)]
struct Also {
    reason: String,
    message: String,
}

/// All troubles, the most pressing first.
pub(super) fn all(
    tables: &Tables,
    instances: &[Ranked],
    snapshot: &CapabilitySnapshot,
) -> PageSection<TroubleRow> {
    let capabilities: Vec<TroubleRow> = snapshot.capabilities.iter().filter_map(capability).collect();
    let instances: Vec<&Ranked> = instances.iter().filter(|ranked| ranked.trouble.is_some()).collect();
    let gateways: Vec<&Value> = tables
        .flavors
        .gateways()
        .map(AsRef::as_ref)
        .filter(|gateway| overview::trouble(gateway).is_some())
        .collect();
    let total = capabilities.len() + instances.len() + gateways.len();
    let gateways = gateways.into_iter().take(ROWS).filter_map(gateway);
    let mut found: Vec<_> =
        instances.iter().take(ROWS).filter_map(|ranked| instance(tables, ranked)).collect();
    found.extend(gateways);
    found.sort_by_key(|(state, row)| (*state, Reverse(row.since)));
    let shown = capabilities.into_iter().chain(found.into_iter().map(|(_, row)| row)).take(ROWS);
    PageSection { total, shown: shown.collect() }
}

fn instance(tables: &Tables, ranked: &Ranked) -> Option<(TroubleState, TroubleRow)> {
    let (state, _) = ranked.trouble?;
    let key = name(&ranked.id);
    let object = match tables.kept(&key) {
        KeptInstance::Whole(object) => Some(object),
        KeptInstance::AtRest { .. } | KeptInstance::Nothing => None,
    };
    let found = object.as_deref().map(troubles::of).unwrap_or_default();
    let row = tables.instance(&key)?;
    let (first, others) =
        found.split_first().map_or((None, &[][..]), |(first, others)| (Some(first), others));
    let reason = first.map_or_else(|| row.word(fact::WAITS).unwrap_or_default(), |first| first.reason);
    let plan = object.as_deref().and_then(owed).unwrap_or_default();
    let Remedy { next, command } = of_instance(reason, plan, &key);
    let also = others.iter().map(|Trouble { reason, message, .. }| Also {
        reason: display(reason, WORD_LIMIT),
        message: display(message, MESSAGE_LIMIT),
    });
    let row = TroubleRow {
        kind: "Instance",
        state: state.as_str(),
        reason: display(reason, WORD_LIMIT),
        message: first.map(|first| display(first.message, MESSAGE_LIMIT)).unwrap_or_default(),
        since: first.and_then(|first| parsed(first.since)).or_else(|| time(row.number(fact::TROUBLED))),
        also: also.collect(),
        next,
        command,
        namespace: key.namespace,
        name: key.name,
    };
    Some((state, row))
}

/// The first plan that the Instance owes.
fn owed(object: &Value) -> Option<&str> {
    object["status"]["lastApplied"]["owed"].as_object()?.keys().next().map(String::as_str)
}

fn gateway(object: &Value) -> Option<(TroubleState, TroubleRow)> {
    let found = overview::trouble(object)?;
    let subject = Gateway::subject_of(object, meta_str(object, "namespace").unwrap_or_default())?;
    let is_stalled = found.type_ == condition::STALLED;
    let Remedy { next, command } = match is_stalled {
        true => remedy::of_stalled(&subject.name),
        false => remedy::of_gateway(&subject),
    };
    let NamespacedName { namespace, name } = subject.name;
    // Kong's operator and Deployments say for themselves that pods are not ready; mixed flavors never end.
    let ours = is_stalled || found.type_ == condition::ROUTER_FLAVOR_CONSISTENT;
    let state = if ours { TroubleState::Stalled } else { TroubleState::NotReady };
    let row = TroubleRow {
        kind: if object["kind"] == "DataPlane" { "DataPlane" } else { "Deployment" },
        namespace,
        name,
        state: state.as_str(),
        reason: display(found.reason, WORD_LIMIT),
        message: display(found.message, MESSAGE_LIMIT),
        since: parsed(found.since),
        also: Vec::new(),
        next,
        command,
    };
    Some((state, row))
}

/// A capability that cannot do its work, though it should.
fn capability(status: &CapabilityStatus) -> Option<TroubleRow> {
    let troubled = match status.state {
        CapabilityPhase::Forbidden(_)
        | CapabilityPhase::Degraded(..)
        | CapabilityPhase::Outdated(..)
        | CapabilityPhase::Unknown(_) => true,
        CapabilityPhase::Disabled
        | CapabilityPhase::Waiting(_)
        | CapabilityPhase::Starting(_)
        | CapabilityPhase::Running(_)
        | CapabilityPhase::Draining(_) => false,
    };
    troubled.then(|| TroubleRow {
        kind: "Capability",
        namespace: String::new(),
        name: status.name.to_owned(),
        state: TroubleState::Stalled.as_str(),
        reason: status.state.reason().to_owned(),
        message: display(&status.state.message(), MESSAGE_LIMIT),
        since: Some(status.since),
        also: Vec::new(),
        next: "Compare the installation with what this version needs.".to_owned(),
        command: "interlock verify".to_owned(),
    })
}

fn parsed(text: Option<&str>) -> Option<Timestamp> {
    text?.parse().ok()
}
