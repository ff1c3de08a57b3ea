//! What holds where nothing is left to do.

use std::sync::Arc;

use interlock_core::api::condition;
use interlock_core::api::meta::condition as types;
use interlock_kudo::instance::change::lock;
use serde_json::Value;

use super::super::view::InstanceView;
use super::cluster::Cluster;
use super::ledger::Params;
use super::objects::LATER_VERSION;
use super::package::{DEPLOYED, LATER, UPDATED, key};

/// Why a cluster whose controller waits is not as it should be.
pub fn objection(cluster: &Cluster) -> Option<String> {
    let Some(object) = cluster.objects.instance() else {
        let left = cluster.objects.config_maps().next()?;
        return Some(format!("the Instance is gone, and {} is there", left["metadata"]["name"]));
    };
    let view = InstanceView::read(&key(), Arc::clone(object)).unwrap();
    if view.deleted_at().is_some() {
        return Some("it is being deleted, and nothing goes on".to_owned());
    }
    if view.entries().values().any(|entry| entry.status.is_running()) {
        return Some("a plan runs, and nothing goes on".to_owned());
    }
    // A plan that is scheduled on what admission refuses waits for a person: its condition says so.
    let conditions = view.conditions();
    if condition::is_true(&conditions, types::SPEC_DRIFT) || condition::is_true(&conditions, types::STALLED) {
        return None;
    }
    if awaits_version(cluster) {
        return None;
    }
    if let Some(lock) = lock::of(&view.instance) {
        return Some(format!("it is locked by plan {}, and nothing goes on", lock.plan));
    }
    if let Some(promised) = cluster.ledger.promised.as_ref().filter(|uid| !cluster.ledger.uids.contains(*uid))
    {
        return Some(format!("run {promised} was admitted and never started"));
    }
    unapplied(cluster, &Params::of(&object["spec"]["parameters"]))
}

/// Whether the Instance says that its OperatorVersion is not there, and it is not.
pub fn awaits_version(cluster: &Cluster) -> bool {
    let Some(object) = cluster.objects.instance() else { return false };
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let says = |found: &Value| found["reason"] == types::OPERATOR_VERSION_MISSING;
    object["spec"]["operatorVersion"]["name"] == LATER
        && cluster.objects.get(LATER_VERSION).is_none()
        && conditions.filter(|found| found["type"] == types::RECONCILING).any(says)
}

/// The edit that is neither carried out nor reported.
fn unapplied(cluster: &Cluster, spec: &Params) -> Option<String> {
    let Some(first) = &cluster.ledger.first else { return Some("no plan ever ran".to_owned()) };
    if first.c != spec.c {
        return Some(format!("C is {}, which is refused and not reported", spec.c));
    }
    let is = |name: &str, parameter: &str, wanted: &str| {
        cluster.objects.data(name).is_some_and(|data| data[parameter] == wanted)
    };
    if let Some(name) = DEPLOYED.iter().find(|name| !is(name, "A", &spec.a)) {
        return Some(format!("A is {}, and {name} is not of it", spec.a));
    }
    let edited = first.b != spec.b;
    let updated = |name: &&&str| edited || cluster.objects.data(name).is_some();
    let missed = UPDATED.iter().filter(updated).find(|name| !is(name, "B", &spec.b));
    missed.map(|name| format!("B is {}, and {name} is not of it", spec.b))
}
