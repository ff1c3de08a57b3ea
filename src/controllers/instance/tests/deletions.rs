//! A deletion that the watch has not shown yet, while a definition is missing, so that only deletions are carried out.

use interlock_core::api::condition;
use interlock_core::api::meta::condition as types;
use jiff::Timestamp;

use super::super::view::InstanceView;
use super::api::Api;
use super::cluster::Cluster;
use super::package::key;
use super::process::SharedParts;
use super::users::Webhooks;
use crate::cluster::crds::Absence;
use crate::cluster::supervisor::{
    CapabilityPhase, CapabilityStatus, Missing, Mode, NotReadyReason, UnavailableAnswer, Work,
};
use crate::controllers::capabilities::INSTANCES;
use crate::runtime::controller::Action;

/// The definition of OperatorVersions is not there.
fn waiting() -> CapabilityStatus {
    let why = NotReadyReason::Absent(Absence::Missing);
    CapabilityStatus {
        name: INSTANCES,
        state: CapabilityPhase::Waiting(vec![Missing { name: "operatorversions.kudo.dev".to_owned(), why }]),
        mode: Mode::Auto,
        since: Timestamp::UNIX_EPOCH,
        answer: UnavailableAnswer::Judge,
        kinds: [].into(),
    }
}

/// An Instance whose first plan is COMPLETE, at rest.
fn at_rest(parts: &SharedParts) -> Cluster {
    let mut cluster = Webhooks::new(None).create(true);
    loop {
        let (api, ended) = parts.pass(&cluster, Api::new(cluster.clone(), None));
        if ended == Action::AwaitChange && api.cluster.objects.address() == cluster.objects.address() {
            return cluster;
        }
        cluster = api.cluster;
    }
}

/// Of an Instance at rest only its row is cached, so its conditions are written on what is read. Where that shows the
/// deletion, the echo of it by the watch is no change: no event wakes a process to carry it out.
#[test]
fn a_deletion_that_the_watch_does_not_show_first_is_carried_out() {
    let parts = SharedParts::new(None);
    let cached = at_rest(&parts);
    let mut deleted = cached.clone();
    deleted.delete_instance();
    let (api, action) = parts.assigned(&cached, Api::new(deleted, None), Work::Deletions, vec![waiting()]);
    assert_eq!(action, Action::AwaitChange, "{:#?}", api.log);
    assert_eq!(api.cluster.objects.instance(), None, "{:#?}", api.log);
    assert_eq!(api.cluster.objects.config_maps().count(), 0, "its children went with it");
}

/// One that is not deleted gets a condition that says why nothing happens, and is left alone.
#[test]
fn without_a_deletion_an_instance_is_only_told_what_is_missing() {
    let parts = SharedParts::new(None);
    let cached = at_rest(&parts);
    let (api, action) =
        parts.assigned(&cached, Api::new(cached.clone(), None), Work::Deletions, vec![waiting()]);
    assert_eq!(action, Action::AwaitChange, "{:#?}", api.log);
    let found = api.cluster.objects.instance().expect("it stays").clone();
    let ready =
        condition::find(&InstanceView::read(&key(), found).unwrap().conditions(), types::READY).cloned();
    assert_eq!(ready.map(|ready| ready.reason).as_deref(), Some(types::MISSING_DEPENDENCY));
    assert_eq!(api.writes, 1, "{:#?}", api.log);
}
