//! `interlock flavor change` on a real control plane: from `traditional` to `expressions`, with everything that can be
//! killed killed and continued.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use super::{CAP, Ground, INGRESS, NAMESPACE, Probe, definition, spec};
use crate::support::{Output, interlock, process, service_path, wait_until};

const TC: &str = "traditional_compatible";
const PRODUCER: &str = "deploy/gateways/kic";
const TEMPLATE: &str = "/spec/deployment/podTemplateSpec/spec/containers/0/env/0/value";

/// A command under way, which ends with the test.
struct Running(Child);

impl Running {
    fn kill(mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Ground {
    fn change_line(wait: &[&'static str]) -> Vec<&'static str> {
        let line = ["flavor", "change", "edge", "--to", "expressions", "-n", NAMESPACE];
        [&line[..], wait].concat()
    }

    /// Carries the change out, and is killed by the test.
    fn begin_change(&self) -> Running {
        let mut command = Command::new(interlock::binary());
        command.args(Self::change_line(&["--wait", "--producer", PRODUCER]));
        command.env("KUBECONFIG", self.admin.kubeconfig()).stdin(Stdio::null()).stdout(Stdio::null());
        Running(process::spawn(command).expect("the command"))
    }

    fn change(&self, flags: &[&'static str]) -> Output {
        self.admin.command(&interlock::binary(), &Self::change_line(flags), "")
    }

    /// Configures the pods of the gateway, those with `expressions` when that is allowed only.
    fn produce_unless_expressions(&self) -> Arc<AtomicBool> {
        let (admin, kong, stop) = (self.admin.clone(), self.kong.clone(), self.stop.clone());
        let allowed = Arc::new(AtomicBool::new(false));
        let told = allowed.clone();
        std::thread::spawn(move || {
            while !stop.load(Ordering::SeqCst) {
                let list = admin.read(&format!("/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app=edge"));
                for pod in list.body["items"].as_array().into_iter().flatten() {
                    let waits =
                        pod["spec"].to_string().contains("\"expressions\"") && !told.load(Ordering::SeqCst);
                    if let Some(address) = pod["status"]["podIP"].as_str().filter(|_| !waits) {
                        kong.offer(address, &json!([{"paths": ["/a"]}]));
                    }
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        allowed
    }

    fn create_producer(&self) {
        let labels = json!({"app": "kic"});
        let container = json!({"name": "ingress-controller", "image": "kong/kubernetes-ingress-controller:3.4",
            "env": [{"name": "CONTROLLER_KONG_ADMIN_SVC", "value": "gateways/dataplane-admin-edge"}]});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "kic"},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [container]}}},
        });
        self.admin.post(&self.path("deployments", ""), &deployment).ok();
        self.await_child("deployments", "kic", "is ready", |found| found["status"]["availableReplicas"] == 2);
    }

    fn producer(&self) -> Value {
        self.admin.read(&self.path("deployments", "kic")).ok()
    }

    /// Waits until a flavor is written, and what else is seen of the DataPlane.
    #[track_caller]
    fn await_staged(&self, flavor: &str, holds: impl Fn(&Value) -> bool) {
        // A hop before it may have to end first.
        wait_until(&format!("{flavor} is staged"), CAP * 2, || {
            let found = self.data_plane();
            let is_written = found.pointer(TEMPLATE).is_some_and(|value| value == flavor);
            if is_written && holds(&found) { Ok(()) } else { Err(found.to_string()) }
        });
    }

    fn live_flavor(&self) -> String {
        let object = self.data_plane();
        let stamp = object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC].as_str().expect("a stamp");
        let stamp: Value = serde_json::from_str(stamp).expect("JSON");
        stamp["flavor"].as_str().expect("a flavor").to_owned()
    }

    fn restart(&self) {
        self.interlock.kill();
        self.start();
    }

    /// Starts the process, and waits until the API server reaches its webhook.
    #[track_caller]
    fn start(&self) {
        self.interlock.start();
        let path = format!("{}?dryRun=All", self.path("dataplanes", "edge"));
        wait_until("writes of DataPlanes are admitted", CAP, || {
            let answer = self.admin.merge_patch(&path, &json!({"spec": {"deployment": {"replicas": 3}}}));
            if answer.code == 200 { Ok(()) } else { Err(answer.to_string()) }
        });
    }
}

fn message(object: &Value) -> &str {
    object["status"]["rollout"]["conditions"][0]["message"].as_str().unwrap_or_default()
}

fn traditional() -> Value {
    let mut spec = spec("kong:3.9");
    let env = json!([{"name": "KONG_ROUTER_FLAVOR", "value": "traditional"}]);
    spec["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["env"] = env;
    spec
}

/// From the first hop, which needs no hand, to the preview of the second one, which waits for a configuration.
fn to_the_boundary(ground: &Ground) {
    let first = ground.begin_change();
    wait_until("the first hop is staged", CAP, || {
        let found = ground.data_plane();
        // It may be over already.
        let is_written = found.pointer(TEMPLATE).is_some_and(|value| value != "traditional");
        if is_written { Ok(()) } else { Err(found.to_string()) }
    });
    first.kill();
    ground.restart();
    let second = ground.begin_change();
    ground.await_staged("expressions", |found| message(found).contains("/status/ready"));
    assert_eq!(ground.live_flavor(), TC);
    second.kill();
    ground.restart();
    // As long as a pod has no configuration, nothing is done about the producer.
    assert_eq!(ground.producer()["spec"]["replicas"], 2);
}

/// A promotion that cannot be requested leaves the producer as it was.
fn a_failure_starts_the_producer_again(ground: &Ground) {
    ground.interlock.kill();
    let failed = ground.change(&["--wait", "--producer", PRODUCER]);
    assert_ne!(failed.code, 0, "{failed}");
    assert!(failed.stdout.contains("deployment gateways/kic: scaled to 0"), "{failed}");
    assert!(failed.stdout.contains("deployment gateways/kic: scaled back to 2 replicas"), "{failed}");
    let producer = ground.producer();
    assert_eq!(producer["spec"]["replicas"], 2);
    assert!(producer["metadata"]["annotations"][meta::STOPPED_FOR_PROMOTION].is_null(), "{producer}");
    ground.start();
}

/// What a command leaves that was killed after it stopped the producer.
fn leave_the_producer_stopped(ground: &Ground) {
    let left = json!({
        "metadata": {"annotations": {meta::STOPPED_FOR_PROMOTION: format!("{NAMESPACE}/edge:2")}},
        "spec": {"replicas": 0},
    });
    ground.admin.merge_patch(&ground.path("deployments", "kic"), &left).ok();
}

#[test]
fn a_flavor_is_changed_hop_by_hop_whatever_is_killed() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    let allowed = ground.produce_unless_expressions();
    ground.create_producer();
    ground.create(traditional());
    ground.await_rolled_out("WaitingForChange");
    let probe = Probe::start(&ground);
    to_the_boundary(&ground);

    allowed.store(true, Ordering::SeqCst);
    ground.await_rolled_out("AwaitingPromotion");
    let unstaged = json!({"spec": {"deployment": {"rollout": null}}});
    let refused = ground.admin.merge_patch(&ground.path("dataplanes", "edge"), &unstaged).refused(422);
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("RF07")), "{refused}");
    a_failure_starts_the_producer_again(&ground);
    ground.await_rolled_out("AwaitingPromotion");
    leave_the_producer_stopped(&ground);

    let done = ground.change(&["--wait", "--producer", PRODUCER]);
    assert_eq!(done.code, 0, "{done}");
    let order = ["is requested", "router flavor expressions is live", "kic: scaled back to 2 replicas"];
    let found: Vec<Option<usize>> = order.iter().map(|part| done.stdout.find(part)).collect();
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{done}");
    assert_eq!(ground.live_flavor(), "expressions");
    let producer = ground.producer();
    assert_eq!(
        (&producer["spec"]["replicas"], &producer["status"]["availableReplicas"]),
        (&json!(2), &json!(2))
    );
    assert!(producer["metadata"]["annotations"][meta::STOPPED_FOR_PROMOTION].is_null(), "{producer}");
    let restarted = "/spec/template/metadata/annotations/kubectl.kubernetes.io~1restartedAt";
    assert!(producer.pointer(restarted).is_some(), "{producer}");
    probe.end(&format!("two hops, with the endpoints of {INGRESS}"));

    ground.await_rolled_out("WaitingForChange");
    let before = ground.data_plane()["spec"].clone();
    let again = ground.change(&[]);
    assert_eq!(
        (again.code, again.stdout.as_str()),
        (0, "dataplane gateways/edge: router flavor expressions is live\n"),
        "{again}"
    );
    assert_eq!(ground.data_plane()["spec"], before);
}

/// Waits until two pods of the present spec are ready.
#[track_caller]
fn await_two_pods(ground: &Ground) {
    wait_until("two pods are ready", CAP, || {
        let found = ground.data_plane();
        let ready = &found["status"]["conditions"];
        let is_current = ready.as_array().is_some_and(|all| {
            all.iter().any(|it| {
                it["type"] == "Ready"
                    && it["status"] == "True"
                    && it["observedGeneration"] == found["metadata"]["generation"]
            })
        });
        if is_current && found["status"]["readyReplicas"] == 2 {
            Ok(())
        } else {
            Err(found["status"].to_string())
        }
    });
}

/// Without `blueGreen`: there and, from where an interrupted command has left it, back.
#[test]
fn without_blue_green_the_flavor_is_changed_through_an_outage() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    ground.produce();
    ground.create_producer();
    let mut in_place = traditional();
    in_place["deployment"].as_object_mut().expect("an object").remove("rollout");
    ground.create(in_place);
    await_two_pods(&ground);
    let staged = ground.change(&["--wait"]);
    assert_eq!(staged.code, 1, "{staged}");
    let unconfirmed = ground.change(&["--outage", "--producer", PRODUCER]);
    assert_eq!(unconfirmed.code, 2, "{unconfirmed}");
    assert!(unconfirmed.stderr.contains("--yes"), "{unconfirmed}");
    assert_eq!(ground.producer()["spec"]["replicas"], 2);

    let done = ground.change(&["--outage", "--yes", "--producer", PRODUCER]);
    assert_eq!(done.code, 0, "{done}");
    let order = [
        "all of its 2 pods are stopped",
        "kic: scaled to 0",
        "edge: scaled to 0",
        "router flavor traditional -> expressions is written",
        "edge: scaled back to 2 replicas",
        "kic: scaled back to 2 replicas",
        "edge: router flavor expressions is live",
    ];
    let found: Vec<Option<usize>> = order.iter().map(|part| done.stdout.find(part)).collect();
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{done}");
    assert_eq!(ground.live_flavor(), "expressions");
    assert_eq!(ground.data_plane()["status"]["readyReplicas"], 2);

    leave_the_producer_stopped(&ground);
    let left = json!({
        "metadata": {"annotations": {meta::REPLICAS_BEFORE_OUTAGE: "2"}}, "spec": {"deployment": {"replicas": 0}},
    });
    ground.admin.merge_patch(&ground.path("dataplanes", "edge"), &left).ok();
    let line = [
        "flavor",
        "change",
        "edge",
        "--to",
        "traditional",
        "-n",
        NAMESPACE,
        "--outage",
        "--producer",
        PRODUCER,
    ];
    let back = ground.admin.command(&interlock::binary(), &line, "");
    assert_eq!(back.code, 0, "{back}");
    assert_eq!(ground.live_flavor(), "traditional");
    let found = ground.data_plane();
    assert_eq!(
        (&found["spec"]["deployment"]["replicas"], &found["status"]["readyReplicas"]),
        (&json!(2), &json!(2))
    );
    assert!(found["metadata"]["annotations"][meta::REPLICAS_BEFORE_OUTAGE].is_null(), "{found}");
    assert_eq!(ground.producer()["status"]["availableReplicas"], 2);
}
