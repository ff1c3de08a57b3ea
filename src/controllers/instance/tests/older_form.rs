//! A watch that goes on to show an Instance without a field that its definition got since: the API server has the field
//! under the same version, so no event corrects it.

use std::sync::Arc;

use serde_json::Value;

use super::api::Api;
use super::cluster::Cluster;
use super::objects::INSTANCE;
use super::process::SharedParts;
use super::users::Webhooks;
use crate::runtime::controller::Action;

fn status(cluster: &Cluster) -> &Value {
    &cluster.objects.instance().unwrap()["status"]
}

#[test]
fn a_run_goes_on_though_the_watch_shows_an_older_form() {
    let parts = SharedParts::new(None);
    let created = Webhooks::new(None).create(true);
    let (api, _) = parts.pass(&created, Api::new(created.clone(), None));
    let is_midway = |cluster: &&Cluster| {
        status(cluster)["progress"].is_object()
            && status(cluster)["planStatus"]["deploy"]["status"] == "IN_PROGRESS"
    };
    let stored = api.moments.iter().map(|moment| &moment.cluster).find(is_midway).unwrap();
    let mut older = Value::clone(stored.objects.instance().unwrap());
    older["status"].as_object_mut().unwrap().remove("progress");
    let mut shown = stored.clone();
    shown.objects.insert(INSTANCE, Arc::new(older));
    let (api, action) = parts.pass_on(&shown, Some(stored), Api::new(stored.clone(), None));
    assert_eq!(action, Action::AwaitChange, "{:#?}", api.log);
    assert_eq!(status(&api.cluster)["planStatus"]["deploy"]["status"], "COMPLETE", "{:#?}", api.log);
}
