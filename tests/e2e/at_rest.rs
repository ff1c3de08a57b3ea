//! After all kinds of work there is rest: nothing is written any more.

use std::time::Duration;

use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::support::audit::await_rest;
use crate::support::ground::Ground;
use crate::support::instances::{await_run, run_of};
use crate::support::{Cluster, Interlock, wait_until};

const CAP: Duration = Duration::from_secs(90);
const PACKAGE: &str = include_str!("verbs/operatorversion.yaml");

/// A gateway, and the ConfigMap that its router flavor comes from.
const GATEWAY: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: router}
data: {flavor: traditional_compatible}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, labels: {interlock.dev/guard: kong-router-flavor}}
spec:
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers:
      - name: proxy
        image: kong:3.6
        env:
        - {name: KONG_ROUTER_FLAVOR, valueFrom: {configMapKeyRef: {name: router, key: flavor}}}
"#;

/// A control plane of its own, whose audit log tells of this test alone.
struct World<'a> {
    cluster: &'a Cluster,
    ground: Ground<'a>,
}

impl World<'_> {
    fn plans(&self) {
        let ground = &self.ground;
        ground.create("demo", "held-0.1.0", &json!({}));
        let run = run_of(&ground.await_plan("demo", "deploy", "COMPLETE"), "deploy");
        ground.edit("demo", &json!({"SIZE": "large"}));
        let run = run_of(&await_run(&ground.user, "demo", "deploy", &run), "deploy");
        let newer = json!({"spec": {"operatorVersion": {"name": "held-0.2.0"}}});
        ground.user.merge_patch(&ground.path("demo"), &newer).ok();
        await_run(&ground.user, "demo", "deploy", &run);
        ground.create("gone", "held-0.1.0", &json!({}));
        ground.await_plan("gone", "deploy", "COMPLETE");
        ground.user.kubectl(&["delete", "instance", "gone", "--timeout=90s"]).ok();
    }

    /// One run is aborted and retried, one is aborted and failed for good, one waits for ever.
    fn verbs(&self) {
        let ground = &self.ground;
        for name in ["retried", "failed", "waiting"] {
            ground.create(name, "held-0.1.0", &json!({"GATED": "true"}));
        }
        for name in ["retried", "failed"] {
            let run = self.ask(name, "abort", "IN_PROGRESS");
            ground.await_plan(name, "deploy", "FATAL_ERROR");
            if name == "retried" {
                ground.open(name);
                self.ask(name, "retry", "FATAL_ERROR");
                await_run(&ground.user, name, "deploy", &run);
            }
        }
        ground.await_step("waiting", "deploy", 1, "IN_PROGRESS");
    }

    /// Asks for a verb about the run that stands so at its gate; which run that is.
    fn ask(&self, name: &str, verb: &str, stands: &str) -> String {
        let run = run_of(&self.ground.await_step(name, "deploy", 1, stands), "deploy");
        let request = format!("{verb}/{run}/nonce-{verb}-1");
        let annotations = json!({meta::REQUEST: request, meta::REASON: "as the test goes"});
        let path = self.ground.path(name);
        self.ground.user.merge_patch(&path, &json!({"metadata": {"annotations": annotations}})).ok();
        run
    }

    /// Two gateways are rolled out anew, and one goes.
    fn gateways(&self) {
        let user = &self.ground.user;
        for name in ["edge", "inner"] {
            user.apply(&GATEWAY.replace("NAME", name));
            wait_until("the source of the flavor is labelled", CAP, || {
                let found = user.get("configmap", "router").ok_or("no ConfigMap")?;
                let label = &found["metadata"]["labels"][meta::FLAVOR_SOURCE];
                if label.is_string() { Ok(()) } else { Err(format!("{found:#}")) }
            });
            let deployment = format!("deployment/{name}");
            user.kubectl(&["set", "image", &deployment, "proxy=kong:3.7"]).ok();
            user.kubectl(&["rollout", "status", &deployment, "--timeout=120s"]).ok();
        }
        user.kubectl(&["delete", "deployment", "inner"]).ok();
    }

    fn settings(&self) {
        let admin = self.cluster.admin();
        admin.apply(
            "apiVersion: interlock.dev/v1alpha1\nkind: Interlock\nmetadata: {name: default}\nspec:\n  \
             rules: [{group: parameters, action: Warn}, {group: freeze, action: Warn}]\n",
        );
        admin.kubectl(&["wait", "--for=condition=Ready", "interlock/default", "--timeout=90s"]).ok();
    }

    /// An edit that admission does not see, as it is not asked any more, is found and carried out.
    fn drift(&self) {
        let (ground, admin) = (&self.ground, self.cluster.admin());
        let run = run_of(&ground.get("demo"), "deploy");
        for kind in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
            admin.kubectl(&["delete", kind, "-l", "app.kubernetes.io/name=interlock"]).ok();
        }
        wait_until("an edit is not stamped any more", CAP, || {
            let edit = json!({"spec": {"parameters": {"SIZE": "huge"}}});
            let path = format!("{}?dryRun=All", ground.path("demo"));
            let tried = ground.user.merge_patch(&path, &edit);
            let scheduled = tried.body["spec"]["planExecution"]["planName"].as_str().unwrap_or_default();
            if tried.code == 200 && scheduled.is_empty() { Ok(()) } else { Err(tried.to_string()) }
        });
        ground.edit("demo", &json!({"SIZE": "huge"}));
        let found = await_run(&ground.user, "demo", "deploy", &run);
        assert_eq!(found["spec"]["parameters"]["SIZE"], Value::from("huge"));
    }
}

#[test]
fn nothing_is_written_a_while_after_all_kinds_of_work() {
    let cluster = Cluster::own(&["--audit"]);
    if !cluster.has_workloads() {
        return;
    }
    let interlock = Interlock::install(&cluster, &[]);
    interlock.await_requests_count(&cluster);
    let ground = Ground::new(&cluster, "rest", PACKAGE);
    let newer = PACKAGE.replace("0.1.0", "0.2.0");
    ground.user.create_package(ground.ns.name(), &newer);
    let world = World { cluster: &cluster, ground };
    world.plans();
    world.verbs();
    world.gateways();
    world.settings();
    world.drift();
    await_rest(&cluster, "all kinds of work");
}
