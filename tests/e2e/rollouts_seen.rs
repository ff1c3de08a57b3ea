//! What people see of rollouts that Interlock carries out: the columns of kubectl, the commands, and the metrics.

use std::fmt::Debug;
use std::ops::RangeBounds;
use std::time::Duration;

use ::interlock::install::{self, InstallOptions, Part};
use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use interlock_kong::api::{API_VERSION, labels};
use interlock_kong::data_plane::flavor::gateway_ref::{GatewayKind, GatewayRef};
use interlock_kong::data_plane::remedy;
use interlock_kong::data_plane::rollout::report::next_step::NextStep;
use regex::Regex;
use serde_json::{Value, json};

use crate::see::{compare, settled};
use crate::support::interlock::{apply, await_definitions, interlock};
use crate::support::remedy::run;
use crate::support::{Client, Cluster, Interlock, Namespace, Output, wait_until};

const CAP: Duration = Duration::from_secs(120);
const BLUE: &str = "dataplane-edge-blue";

/// A DataPlane and its user, on a control plane whose DataPlanes Interlock carries out.
struct Ground<'g> {
    process: &'g Interlock,
    ns: Namespace<'g>,
    user: Client,
}

/// Carries DataPlanes out, by our own definition.
pub fn switch_on(cluster: &Cluster, process: &Interlock) {
    let admin = cluster.admin();
    let options = InstallOptions { data_planes: true, ..process.options(&[]) };
    apply(&admin, install::objects(Part::Rbac, &options).unwrap());
    apply(&admin, install::objects(Part::KongCrds, &options).unwrap());
    await_definitions(&admin);
    let settings = "apiVersion: interlock.dev/v1alpha1\nkind: Interlock\nmetadata: {name: default}\n\
                    spec: {capabilities: {dataplanes: {mode: auto}}}\n";
    admin.kubectl_in(&["apply", "--server-side", "--force-conflicts", "-f", "-"], settings).ok();
    wait_until("DataPlanes are carried out", CAP, || {
        let found = admin.get("interlock", "default").ok_or("no Interlock")?;
        let conditions = found["status"]["conditions"].as_array().into_iter().flatten();
        let is =
            |type_: &str| conditions.clone().any(|found| found["type"] == type_ && found["status"] == "True");
        if is("DataplanesReady") && is("FlavorsReady") { Ok(()) } else { Err(found["status"].to_string()) }
    });
}

impl Ground<'_> {
    fn metrics(&self) -> String {
        self.process.ops("/metrics").map(|(_, text)| text).unwrap_or_default()
    }

    /// Waits until a metric of DataPlanes is one of these values.
    #[track_caller]
    fn await_metric(&self, name: &str, wanted: impl RangeBounds<u64> + Debug) {
        wait_until(&format!("{name} is in {wanted:?}"), CAP, || {
            let text = self.metrics();
            let mut values =
                text.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
            if values.any(|value| wanted.contains(&value)) {
                return Ok(());
            }
            Err(text.lines().filter(|line| line.contains("dataplane")).collect::<Vec<_>>().join("\n"))
        });
    }

    #[track_caller]
    fn await_phase(&self, phase: &str) {
        self.await_metric(&format!("interlock_dataplane_rollouts{{phase=\"{phase}\"}}"), 1..=1);
    }

    fn stage(&self, pod: &Value) {
        let patch = json!({"spec": {"deployment": {"podTemplateSpec": {"spec": pod}}}});
        self.user.merge_patch(&self.ns.path(API_VERSION, "dataplanes", "edge"), &patch).ok();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        interlock(&self.user, &[arguments, &["-n", self.ns.name()]].concat(), "")
    }
}

fn proxy(image: &str) -> Value {
    json!([{"name": "proxy", "image": image}])
}

#[test]
fn a_rollout_is_seen_in_columns_commands_and_metrics() {
    let cluster = Cluster::own(&[]);
    if !cluster.has_workloads() {
        return;
    }
    let process = Interlock::install(&cluster, &[]);
    switch_on(&cluster, &process);
    let ns = cluster.namespace("seen");
    let ground = Ground { process: &process, user: ns.user("alice"), ns };
    let object = json!({
        "apiVersion": API_VERSION, "kind": "DataPlane", "metadata": {"name": "edge"},
        "spec": {
            "deployment": {
                "replicas": 2, "podTemplateSpec": {"spec": {"containers": proxy("kong:3.8")}},
                "rollout": {"strategy": {"blueGreen": {"promotion": {"strategy": "BreakBeforePromotion"}}}},
            },
            "network": {"services": {"ingress": {"type": "ClusterIP"}}},
        },
    });
    ground.user.apply(&object.to_string());
    ground.await_phase("Idle");
    columns(&ground, "WaitingForChange");
    a_preview_that_does_not_start(&ground);
    what_is_healed_is_counted(&ground);
    a_change_that_cannot_be_made(&ground);
    what_is_named_works_as_it_stands(&ground);
}

fn columns(ground: &Ground<'_>, phase: &str) {
    let head = ["NAME", "READY", "FLAVOR", "PHASE", "AGE"];
    let row = ["edge", "True", "traditional_compatible", phase];
    wait_until(&format!("kubectl prints {row:?}"), CAP, || {
        let printed = ground.user.kubectl(&["get", "dataplanes"]).ok();
        let rows: Vec<Vec<&str>> = printed.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[0], head);
        if rows[1].get(..4) == Some(&row[..]) { Ok(()) } else { Err(printed) }
    });
}

/// Without what differs from run to run, or comes and goes: the look at the pods' flavors, and Events.
fn steady(out: &Output, namespace: &str) -> String {
    let text = settled(out, namespace);
    let text = Regex::new(r"(?m)^.*(RouterFlavorConsistent| on (DataPlane|Service) ).*\n")
        .unwrap()
        .replace_all(&text, "")
        .into_owned();
    Regex::new("spec [0-9a-f]{12}").unwrap().replace_all(&text, "spec HASH").into_owned()
}

/// No node has the label that its pods ask for.
fn a_preview_that_does_not_start(ground: &Ground<'_>) {
    ground.stage(&json!({"containers": proxy("kong:3.9"), "nodeSelector": {"never": "there"}}));
    ground.await_phase("Staging");
    ground.await_metric("interlock_dataplane_rollout_oldest_seconds{phase=\"Staging\"}", 1..);
    columns(ground, "Progressing");
    wait_until("the preview is scaled up", CAP, || {
        let found = ground.user.get("deployment", "dataplane-edge-green").ok_or("no preview")?;
        if found["status"]["replicas"] == 2 { Ok(()) } else { Err(found["status"].to_string()) }
    });
    let name = ground.ns.name();
    compare("why-dataplane.txt", &steady(&ground.run(&["why", "dataplane/edge"]), name));
    compare(
        "why-dataplane-service.txt",
        &steady(&ground.run(&["why", "svc", "dataplane-ingress-edge"]), name),
    );
    let root = format!("dataplane/{name}/edge");
    compare("topology-dataplane.txt", &steady(&ground.run(&["topology", "--root", &root]), name));

    let pods = ground.user.kubectl(&["get", "pods", "-o", "json", "-l", labels::SELECTOR]).ok();
    let pods: Value = serde_json::from_str(&pods).expect("JSON");
    let of_the_preview = |pod: &&Value| pod["spec"]["nodeSelector"]["never"] == "there";
    let pod =
        pods["items"].as_array().expect("pods").iter().find(of_the_preview).expect("one of the preview");
    let said = ground.run(&["why", "pod", pod["metadata"]["name"].as_str().expect("a name")]).ok();
    let belongs = format!("part of the preview (green) of DataPlane {name}/edge");
    assert!(said.contains(&belongs) && said.contains("rollout Staging; gate pods: waits for: "), "{said}");

    the_page_says_the_same(ground);
}

fn the_page_says_the_same(ground: &Ground<'_>) {
    wait_until("the page has the rollout with its gates", CAP, || {
        let (_, body) = ground.process.ops("/graph.json").ok_or("no answer")?;
        let page: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
        let rollout = &page["gateways"]["shown"][0]["rollout"];
        let colours = (&rollout["sides"][0]["colour"], &rollout["sides"][1]["colour"]);
        let waits = rollout["gates"][1]["waitsFor"]
            .as_str()
            .is_some_and(|what| what.starts_with("all pods of the preview to be ready (0 of 2 are)"));
        let is = rollout["phase"] == "Staging" && colours == (&json!("blue"), &json!("green")) && waits;
        if is { Ok(()) } else { Err(rollout.to_string()) }
    });
}

fn what_is_healed_is_counted(ground: &Ground<'_>) {
    ground.user.kubectl(&["delete", "deployment", BLUE]).ok();
    ground.await_metric("interlock_dataplane_healed_total{kind=\"Deployment\",cause=\"deleted\"}", 1..);
    let edit = json!({"spec": {"internalTrafficPolicy": "Local"}});
    ground.user.merge_patch(&ground.ns.path("v1", "services", "dataplane-ingress-edge"), &edit).ok();
    ground.await_metric("interlock_dataplane_healed_total{kind=\"Service\",cause=\"edited\"}", 1..);
}

fn a_change_that_cannot_be_made(ground: &Ground<'_>) {
    // Admission refuses it, so it is written by the controller's user, which admission skips.
    ground.ns.bind(meta::CONTROLLER_USER, "ClusterRole", "cluster-admin");
    let patch =
        json!({"spec": {"deployment": {"podTemplateSpec": {"spec": {"volumes": [{"emptyDir": {}}]}}}}});
    let controller = format!("--as={}", meta::CONTROLLER_USER);
    let patch = ["patch", "dataplane", "edge", &controller, "--type=merge", "-p", &patch.to_string()];
    ground.ns.admin().kubectl(&patch).ok();
    ground.await_phase("Failed");
    ground.await_metric("interlock_dataplane_rollouts{phase=\"Staging\"}", 0..=0);
    let said = ground.run(&["why", "dataplane/edge"]).ok();
    let gate = "gate spec: closed: spec.deployment.podTemplateSpec.spec.volumes[0] has no name: set it";
    assert!(said.contains(gate) && said.contains("interlock rollout abort edge"), "{said}");
    ground.run(&["rollout", "abort", "edge", "--wait"]).ok();
    ground.await_phase("Idle");
}

/// The command that each next step and each problem names.
fn what_is_named_works_as_it_stands(ground: &Ground<'_>) {
    let edge = NamespacedName::new(ground.ns.name(), "edge");
    ground.stage(&json!({"containers": proxy("kong:3.9"), "nodeSelector": null}));
    ground.await_phase("Staging");
    // What waits until nothing is staged comes after the abort.
    let commands = NextStep::ALL.map(|step| step.remedy(&edge).command);
    let (later, now): (Vec<_>, Vec<_>) = commands.iter().partition(|command| command.ends_with(" --watch"));
    // A promotion is asked for beforehand, as the fake pods report nothing: service_path carries one out.
    now.into_iter().for_each(|command| _ = run(&ground.user, command).ok());
    run(&ground.user, &format!("interlock rollout abort edge -n {} --wait", ground.ns.name())).ok();
    ground.await_phase("Idle");
    later.into_iter().for_each(|command| _ = run(&ground.user, command).ok());
    run(&ground.user, &remedy::of_stalled(&edge).command).ok();
    let gateway = GatewayRef { kind: GatewayKind::DataPlane, name: edge };
    // The fake pods have no Admin API.
    let said = run(&ground.user, &remedy::of_gateway(&gateway).command);
    assert!(said.code < 2, "{said}");
}
