//! A capability that is off until the settings switch it on.

use interlock::install::{self, InstallOptions, Part};

use super::world::{CAP, World};
use crate::support::instances::condition;
use crate::support::{interlock as process, wait_until};

/// What belongs to DataPlanes.
const CHILDREN: [&str; 5] =
    ["deployments", "endpointslices", "horizontalpodautoscalers", "poddisruptionbudgets", "services"];

#[test]
fn what_belongs_to_data_planes_is_watched_only_where_that_is_switched_on() {
    let world = World::new();
    let listed = || -> Vec<String> {
        world.settle_audit();
        let labelled = "labelSelector=gateway-operator.konghq.com%2Fmanaged-by%3Ddataplane";
        let lists = world.requests("").into_iter().filter(|request| request.contains(labelled));
        let path = |request: String| request.split('?').next().map(str::to_owned).unwrap_or_default();
        let mut plurals: Vec<String> =
            lists.map(|list| path(list).rsplit('/').next().unwrap_or_default().to_owned()).collect();
        plurals.sort();
        plurals
    };
    let ready_is = |status: &str, reason: &str| {
        wait_until(&format!("DataplanesReady is {status}/{reason}"), CAP, || {
            let settings = world.cluster.admin().get("interlock", "default").ok_or("no Interlock")?;
            let found = condition(&settings, "DataplanesReady");
            let is = found["status"] == status && found["reason"] == reason;
            if is { Ok(()) } else { Err(found.to_string()) }
        });
    };
    world.await_state("dataplanes", "Disabled");
    ready_is("False", "Disabled");
    assert_eq!(listed(), [] as [&str; 0]);

    world.install("dataplanes");
    let options = InstallOptions { data_planes: true, ..world.interlock.options(&[]) };
    process::apply(&world.cluster.admin(), install::objects(Part::Rbac, &options).unwrap());
    world.set("{capabilities: {dataplanes: {mode: auto}}}");
    world.await_state("dataplanes", "Running");
    ready_is("True", "Running");
    if world.cluster.ready().is_some() {
        assert_eq!(listed(), CHILDREN, "each is listed once");
    }

    world.set(r#"{capabilities: {dataplanes: {mode: "off"}}}"#);
    world.await_state("dataplanes", "Disabled");
    ready_is("False", "Disabled");
    world.assert_same_process();
}
