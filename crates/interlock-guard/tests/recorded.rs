//! The presets on objects as real controllers left them, recorded by the tests of Argo CD's health checks. What differs
//! from what Argo CD expects of them is a list here, with a reason each.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use std::collections::BTreeSet;
use std::path::Path;

use interlock_core::api::object::Gvk;
use interlock_guard::judgement::Guard;
use serde_json::Value;

/// Progressing there, with a status, and not busy.
const AT_REST: &[(&str, &str)] = &[
    (
        "apps.kruise.io/DaemonSet no-update-strategy-partition",
        "generation observed, no node wants a pod (all counts 0): nothing is carried out",
    ),
    (
        "cluster.x-k8s.io/MachineDeployment progressing_ScalingUp",
        "5 of 5 machines are up to date, 4 are ready: scaling or a lost machine",
    ),
    (
        "controlplane.cluster.x-k8s.io/AWSManagedControlPlane progressing_ready_true",
        "only the summary Ready is False; creating, updating and generation say nothing",
    ),
    (
        "core.gardener.cloud/Shoot progressing",
        "last operation Succeeded; an API server that does not answer is not a change",
    ),
    (
        "core.humio.com/HumioCluster pending",
        "Pending waits for resources (its own comment); upgrades are Upgrading and Restarting",
    ),
    (
        "elasticsearch.k8s.elastic.co/Elasticsearch ready_yellow",
        "health yellow is lost shards; the phase is Ready",
    ),
    ("k8s.mariadb.com/MariaDB no_status", "its status is `revision: 0`: never looked at"),
    ("k8s.mariadb.com/MariaDB statefulset_not_ready", "pods not ready; updates are seen in Updated=False"),
    ("minio.min.io/Tenant no_status", "its status is `revision: 0`: never looked at"),
    ("minio.min.io/Tenant waiting", "waits for pods: a start or lost pods"),
    ("promoter.argoproj.io/GitRepository no-ready-condition", "no condition Ready: never looked at"),
    ("services.cloud.sap.com/ServiceBinding deleting", "being deleted: never held"),
    ("services.cloud.sap.com/ServiceInstance deleting", "being deleted: never held; its last update failed"),
    (
        "zookeeper.pravega.io/ZookeeperCluster progressing",
        "0 of 1 pods ready, no Upgrading: a start or lost pods",
    ),
];

/// Degraded, Healthy or Suspended there, and busy.
const BUSY: &[(&str, &str)] = &[
    ("argoproj.io/Rollout suspended_controllerPause", "1 of 5 pods is new: paused in the middle of a change"),
    (
        "rollouts.kruise.io/Rollout suspended",
        "step 1 of 3 waits for an approval: paused in the middle of a change",
    ),
    (
        "beat.k8s.elastic.co/Beat ready_green",
        "asks for 8.8.8 while 8.8.1 runs: an upgrade that Argo CD's check does not look at",
    ),
];

/// A recorded object of a kind with a preset.
struct Recorded {
    name: String,
    health: String,
    has_status: bool,
    is_busy: bool,
}

/// The recorded objects; none where they are not beside the project.
fn recorded() -> Vec<Recorded> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/objects/health.jsonl");
    #[allow(clippy::disallowed_methods, reason = "a test reads what it is given")]
    let Ok(text) = std::fs::read_to_string(file) else { return Vec::new() };
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    rows.filter_map(|row: Value| {
        let object = &row["object"];
        let preset = interlock_guard::of_kind(&Gvk::of(object)?.group, object["kind"].as_str()?)?;
        let guard = Guard::of_preset(preset).unwrap();
        let text = |field: &str| row[field].as_str().unwrap();
        let found = guard.busy(object);
        assert!(found.failures.is_empty(), "{} {}: {:?}", text("kind"), text("case"), found.failures);
        Some(Recorded {
            name: format!("{} {}", text("kind"), text("case").trim_end_matches(".yaml")),
            health: text("health").to_owned(),
            has_status: object["status"].as_object().is_some_and(|own| !own.is_empty()),
            is_busy: !found.busy.is_empty(),
        })
    })
    .collect()
}

#[test]
fn what_controllers_carry_out_is_busy_and_what_failed_is_not() {
    let recorded = recorded();
    if recorded.is_empty() {
        return;
    }
    let of = |departures: &[(&str, &str)]| -> BTreeSet<String> {
        departures
            .iter()
            .map(|(name, reason)| {
                assert!(!reason.is_empty());
                (*name).to_owned()
            })
            .collect()
    };
    let share = |own: &[&Recorded], busy: bool, departures: &[(&str, &str)]| {
        let differ: BTreeSet<String> =
            own.iter().filter(|own| own.is_busy == busy).map(|own| own.name.clone()).collect();
        assert_eq!(differ, of(departures));
        (differ.len() * 1000).div_ceil(own.len())
    };
    let changed: Vec<&Recorded> =
        recorded.iter().filter(|own| own.health == "Progressing" && own.has_status).collect();
    let at_rest = ["Degraded", "Healthy", "Suspended"];
    let at_rest: Vec<&Recorded> =
        recorded.iter().filter(|own| at_rest.contains(&own.health.as_str())).collect();
    assert!(changed.len() > 90 && at_rest.len() > 200, "{} {}", changed.len(), at_rest.len());
    let (missed, held) = (share(&changed, false, AT_REST), share(&at_rest, true, BUSY));
    assert!(missed <= 150 && held <= 20, "not busy: {missed} of 1,000; busy: {held} of 1,000");
}
