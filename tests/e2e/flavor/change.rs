//! `interlock flavor change` step by step, on a DataPlane whose status is written by hand.

use std::time::Duration;

use interlock_core::api::meta;
use regex::Regex;
use serde_json::{Value, json};

use super::{TC, data_plane, define_data_planes, env, held, with_env};
use crate::support::gate::Gate;
use crate::support::interlock::interlock;
use crate::support::{Client, Interlock, Namespace, Output, remedy, wait_for};

const API: &str = "gateway-operator.konghq.com/v1beta1";
const BLUE: &str = "11111111-0000-4000-8000-000000000000";
const GREEN: &str = "22222222-0000-4000-8000-000000000000";
const CAP: Duration = Duration::from_secs(60);

struct Scene<'s> {
    ns: &'s Namespace<'s>,
    user: Client,
    transcript: String,
}

impl Scene<'_> {
    /// Runs the command, and keeps what it prints.
    #[track_caller]
    fn change(&mut self, arguments: &[&str], code: i32) -> Output {
        let line = [&["flavor", "change"], arguments].concat();
        let out = interlock(&self.user, &[&line[..], &["-n", self.ns.name()]].concat(), "");
        assert_eq!(out.code, code, "{out}");
        self.transcript +=
            &format!("$ interlock {} -n NAMESPACE\n{}{}", line.join(" "), out.stdout, out.stderr);
        self.transcript += &format!("(exit code {code})\n\n");
        out
    }

    fn get(&self, name: &str) -> Value {
        self.user.get("dataplane", name).expect("the DataPlane")
    }

    /// The status that a controller writes for the spec that is stored.
    fn report(&self, name: &str, selector: &str, reason: &str, message: &str) {
        let generation = self.get(name)["metadata"]["generation"].clone();
        let condition = json!({
            "type": "RolledOut", "status": "False", "reason": reason, "message": message,
            "observedGeneration": generation, "lastTransitionTime": "2026-01-02T03:04:05Z",
        });
        let status = json!({"selector": selector, "rollout": {"conditions": [condition]}});
        let path = format!("{}/status", self.ns.path(API, "dataplanes", name));
        self.ns.admin().merge_patch(&path, &json!({ "status": status })).ok();
    }

    fn flavor(&self, name: &str) -> Value {
        self.get(name)["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["env"][0]["value"]
            .clone()
    }
}

fn scene<'s>(ns: &'s Namespace<'s>) -> Scene<'s> {
    Scene { user: ns.user("alice"), ns, transcript: String::new() }
}

const TO_EXPRESSIONS: [&str; 3] = ["edge", "--to", "expressions"];

#[test]
fn each_call_takes_the_next_step() {
    let (cluster, _) = Interlock::shared();
    define_data_planes(cluster);
    let ns = cluster.namespace("change");
    let mut scene = scene(&ns);
    scene.change(&["edgy", "--to", "expressions"], 3);
    scene.user.apply(&data_plane("edge", &env("kong:3.9", "traditional"), false).to_string());
    scene.change(&TO_EXPRESSIONS, 1);
    scene.user.apply(&data_plane("edge", &env("kong:3.9", "traditional"), true).to_string());
    scene.report("edge", BLUE, "WaitingForChange", "");
    the_first_hop(&mut scene);
    scene.report("edge", GREEN, "WaitingForChange", "");
    the_boundary(&mut scene);
    what_others_stage_is_named(&mut scene);
    let hash = Regex::new("spec [0-9a-f]{12}").expect("a pattern");
    let text = scene.transcript.replace(ns.name(), "NAMESPACE");
    held("cli", "flavor-change.txt", &hash.replace_all(&text, "spec HASH"));
}

fn the_first_hop(scene: &mut Scene<'_>) {
    scene.change(&TO_EXPRESSIONS, 0);
    assert_eq!(scene.flavor("edge"), TC, "one hop at a time:\n{}", scene.transcript);
    scene.report("edge", BLUE, "Progressing", "Preview Deployment not yet ready");
    scene.change(&TO_EXPRESSIONS, 0);
    scene.change(&["edge", "--to", "expressions", "--wait", "--timeout=1s"], 3);
    scene.report("edge", BLUE, "AwaitingPromotion", "");
    scene.change(&TO_EXPRESSIONS, 0);
    let asked = scene.get("edge")["metadata"]["annotations"][meta::PROMOTE_WHEN_READY].clone();
    assert!(asked.as_str().is_some_and(|hash| hash.starts_with("sha256:")), "{asked}");
    scene.change(&TO_EXPRESSIONS, 0);
    scene.report("edge", BLUE, "PromotionInProgress", "");
    scene.change(&TO_EXPRESSIONS, 0);
}

/// Of the producer that the DataPlane names a copy is made by the command that is printed.
fn the_boundary(scene: &mut Scene<'_>) {
    scene.change(&TO_EXPRESSIONS, 0);
    assert_eq!(scene.flavor("edge"), "expressions");
    scene.report("edge", GREEN, "Progressing", "no pod is ready");
    scene.change(&TO_EXPRESSIONS, 0);
    let labels = json!({"app": "kic"});
    let env =
        json!([{"name": "CONTROLLER_KONG_ADMIN_SVC", "value": "live"}, {"name": "TOKEN", "value": "s3cret"}]);
    let producer = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "kic"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "ingress-controller", "image": "kic:3.4", "env": env}]}}},
    });
    scene.user.apply(&producer.to_string());
    let named = json!({"metadata": {"annotations": {meta::CONFIG_PRODUCER: "kic"}}});
    scene.ns.admin().merge_patch(&scene.ns.path(API, "dataplanes", "edge"), &named).ok();
    let out = scene.change(&TO_EXPRESSIONS, 0);
    assert!(!out.stdout.contains("s3cret"), "{out}");
    let command = out.stdout.lines().find_map(|line| line.strip_prefix("  kubectl ")).expect("a command");
    remedy::run(&scene.user, &format!("kubectl {command}")).ok();
    let copy = scene.user.get("deployment", "kic-preview").expect("the copy");
    let env = &copy["spec"]["template"]["spec"]["containers"][0]["env"];
    let service = format!("{}/dataplane-admin-edge-preview", scene.ns.name());
    assert_eq!((&env[0]["value"], &env[1]["value"]), (&json!(service), &json!("s3cret")));
    let selector = copy["spec"]["selector"]["matchLabels"].clone();
    assert_eq!(selector, json!({"interlock.dev/preview-producer-of": "edge"}));
    // The copy of a hop before has to take up the flavor.
    let out = scene.change(&TO_EXPRESSIONS, 0);
    let command = out.stdout.lines().find_map(|line| line.strip_prefix("  kubectl ")).expect("a command");
    remedy::run(&scene.user, &format!("kubectl {command}")).ok();
}

fn what_others_stage_is_named(scene: &mut Scene<'_>) {
    let mut other = data_plane("edge", &env("kong:3.9.1", "expressions"), true);
    other["metadata"]["annotations"] = json!({meta::CONFIG_PRODUCER: "kic"});
    scene.user.apply(&other.to_string());
    scene.change(&TO_EXPRESSIONS, 1);
    scene.change(&["edge", "--to", TC], 1);
    scene.user.apply(&data_plane("edge", &env("kong:3.9", "expressions"), true).to_string());
    scene.change(&["edge", "--to", "traditional"], 1);
}

/// What is written between the look and the write is looked at, and the step is taken all the same.
#[test]
fn a_step_that_another_write_came_before_is_taken() {
    let (cluster, _) = Interlock::shared();
    define_data_planes(cluster);
    let ns = cluster.namespace("change-late");
    let mut scene = scene(&ns);
    scene.user.apply(&data_plane("edge", &env("kong:3.9", "traditional"), true).to_string());
    scene.report("edge", BLUE, "WaitingForChange", "");
    let gate = Gate::start(cluster, &ns.admin());
    gate.close("PATCH /apis/gateway-operator.konghq.com/");
    let labelled = json!({"metadata": {"labels": {"team": "edge"}}});
    let (admin, path) = (ns.admin(), ns.path(API, "dataplanes", "edge"));
    let out = std::thread::scope(|threads| {
        let namespace = format!("-n={}", ns.name());
        let flags = [gate.flag(), namespace];
        let change = threads.spawn(move || {
            let flags = flags.each_ref().map(String::as_str);
            interlock(&admin, &[&["flavor", "change"], &TO_EXPRESSIONS[..], &flags].concat(), "")
        });
        wait_for("the command is about to write", CAP, || gate.waiting() > 0 || change.is_finished());
        ns.admin().merge_patch(&path, &labelled).ok();
        gate.open();
        change.join().expect("the command")
    });
    assert_eq!((out.code, scene.flavor("edge")), (0, json!(TC)), "{out}");
    let staged = "router flavor traditional -> traditional_compatible is staged";
    assert!(out.stdout.contains(staged), "{out}");
    scene.report("edge", BLUE, "Progressing", "Preview Deployment not yet ready");
    scene.change(&TO_EXPRESSIONS, 0);
}

/// What an interrupted command has left stopped is named by one that is called without it.
#[test]
fn a_producer_that_was_left_stopped_is_named() {
    let (cluster, _) = Interlock::shared();
    define_data_planes(cluster);
    let ns = cluster.namespace("change-left");
    let mut scene = scene(&ns);
    let labels = json!({"app": "kic"});
    let container = json!({"name": "ingress-controller", "image": "kic:3.4"});
    let stopped = format!("{}/edge:2", ns.name());
    let producer = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "kic", "annotations": {meta::STOPPED_FOR_PROMOTION: stopped}},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [container]}}},
    });
    scene.user.apply(&producer.to_string());
    let mut plane = data_plane("edge", &env("kong:3.9", "expressions"), true);
    plane["metadata"]["annotations"] = json!({meta::CONFIG_PRODUCER: "kic"});
    scene.user.apply(&plane.to_string());
    scene.report("edge", BLUE, "WaitingForChange", "");
    let out = scene.change(&TO_EXPRESSIONS, 0);
    let next = format!("--wait --producer deploy/{}/kic`: that Deployment is still scaled to 0", ns.name());
    assert!(out.stdout.contains(&next), "{out}");
}

/// A flavor that a ConfigMap holds is written into the DataPlane by the command of the remedy.
#[test]
fn a_flavor_of_a_config_map_is_refused_with_the_patch_to_write() {
    let (cluster, _) = Interlock::shared();
    define_data_planes(cluster);
    let ns = cluster.namespace("change-map");
    let mut scene = scene(&ns);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "router"}, "data": {"flavor": TC}});
    scene.user.apply(&map.to_string());
    let from = json!({"configMapKeyRef": {"name": "router", "key": "flavor"}});
    let mapped = with_env("kong:3.9", json!([{"name": "KONG_ROUTER_FLAVOR", "valueFrom": from}]));
    scene.user.apply(&data_plane("edge", &mapped, true).to_string());
    scene.report("edge", BLUE, "WaitingForChange", "");
    let refused = scene.change(&TO_EXPRESSIONS, 1);
    let command = refused.stderr.split('`').nth(1).expect("a command");
    let (patch, promote) = command.split_once(" && ").expect("two commands");
    remedy::run(&scene.user, patch).ok();
    assert_eq!(scene.flavor("edge"), TC);
    assert!(promote.starts_with("interlock rollout promote edge -n "), "{refused}");
    // That has to be promoted before anything else.
    scene.report("edge", BLUE, "AwaitingPromotion", "");
    scene.change(&TO_EXPRESSIONS, 1);
    held("cli", "flavor-change-map.txt", &scene.transcript.replace(ns.name(), "NAMESPACE"));
}
