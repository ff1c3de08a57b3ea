//! A request that the next run answers, while that run waits: nothing else happens that would wake the process.

use std::sync::Arc;

use interlock_core::api::meta;
use interlock_core::api::object::annotation;
use serde_json::{Value, json};

use super::api::Api;
use super::cluster::Cluster;
use super::objects::INSTANCE;
use super::package::operator_version;
use super::process::SharedParts;
use super::users::Webhooks;
use crate::runtime::controller::Action;

/// The package, whose first step waits for a condition that no controller sets.
fn waiting() -> Arc<Value> {
    let mut version = Value::clone(&operator_version());
    let template = &mut version["spec"]["templates"]["d1.yaml"];
    let text = template.as_str().unwrap();
    let annotated = format!("metadata:\n  annotations: {{{}: Available}}\n", meta::READY_CONDITION);
    *template = json!(text.replace("metadata:\n", &annotated));
    Arc::new(version)
}

fn run(cluster: &Cluster) -> String {
    cluster.objects.instance().unwrap()["spec"]["planExecution"]["uid"].as_str().unwrap().to_owned()
}

#[test]
fn a_restart_is_answered_though_the_run_that_it_begins_waits() {
    let mut parts = SharedParts::new(None);
    parts.version = waiting();
    let created = Webhooks::new(None).create(true);
    let (api, action) = parts.pass(&created, Api::new(created.clone(), None));
    assert_eq!(action, Action::AwaitChange, "{:#?}", api.log);
    let mut cluster = api.cluster;
    let former = run(&cluster);
    let mut asked = Value::clone(cluster.objects.instance().unwrap());
    for (name, value) in [
        (meta::REQUEST, format!("restart/{former}/nonce-0001").as_str()),
        (meta::REASON, "again"),
        (meta::REQUESTED_BY, "alice"),
    ] {
        asked["metadata"]["annotations"][name] = json!(value);
    }
    cluster.store(INSTANCE, asked);
    let (api, action) = parts.pass(&cluster, Api::new(cluster.clone(), None));
    assert_eq!(action, Action::AwaitChange, "{:#?}", api.log);
    let instance = api.cluster.objects.instance().unwrap();
    assert_ne!(run(&api.cluster), former, "{:#?}", api.log);
    assert_eq!(instance["status"]["planStatus"]["deploy"]["uid"], run(&api.cluster).as_str());
    assert_eq!(annotation(instance, meta::REQUEST), None, "{:#?}", api.log);
}
