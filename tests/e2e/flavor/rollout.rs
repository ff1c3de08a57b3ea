//! `interlock rollout` on DataPlanes whose status is written by hand, and what admission says of rollouts.

use std::time::Duration;

use interlock_core::api::meta;
use interlock_kong::data_plane::rollout::staged_hash;
use regex::Regex;
use serde_json::{Value, json};

use super::{TC, data_plane, define_data_planes, env, held, meets};
use crate::support::interlock::interlock;
use crate::support::{Client, Interlock, Namespace, Output, wait_until};

const CAP: Duration = Duration::from_secs(60);
const API: &str = "gateway-operator.konghq.com/v1beta1";
const BLUE: &str = "11111111-0000-4000-8000-000000000000";
const GREEN: &str = "22222222-0000-4000-8000-000000000000";
const NEXT: &str = "33333333-0000-4000-8000-000000000000";

fn plane(image: &str, staged: bool) -> Value {
    data_plane("edge", &env(image, TC), staged)
}

/// A DataPlane of a namespace, its user, and what the commands printed.
struct Scene<'s> {
    ns: &'s Namespace<'s>,
    user: Client,
    transcript: String,
}

impl Scene<'_> {
    fn get(&self) -> Value {
        self.user.get("dataplane", "edge").expect("the DataPlane")
    }

    fn apply(&self, object: &Value) {
        self.user.apply(&object.to_string());
    }

    /// The status that a controller writes for the spec that is stored, as Kong's operator does: each preview
    /// has a selector of its own.
    fn report(&self, selector: &str, reason: &str, message: &str) {
        let generation = self.get()["metadata"]["generation"].clone();
        let condition = json!({
            "type": "RolledOut", "status": "False", "reason": reason, "message": message,
            "observedGeneration": generation, "lastTransitionTime": "2026-01-02T03:04:05Z",
        });
        let preview = if selector == BLUE { GREEN } else { NEXT };
        let status = json!({
            "selector": selector, "replicas": 3, "readyReplicas": 3, "service": "dataplane-ingress-edge",
            "rollout": {"deployment": {"selector": preview}, "conditions": [condition]},
        });
        let path = format!("{}/status", self.ns.path(API, "dataplanes", "edge"));
        self.ns.admin().merge_patch(&path, &json!({ "status": status })).ok();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        interlock(&self.user, &[&["rollout"], arguments, &["-n", self.ns.name()]].concat(), "")
    }

    /// The same, which is kept.
    fn shows(&mut self, arguments: &[&str], code: i32) -> Output {
        let out = self.run(arguments);
        self.keep(arguments, &out, code);
        out
    }

    #[track_caller]
    fn keep(&mut self, arguments: &[&str], out: &Output, code: i32) {
        assert_eq!(out.code, code, "{out}");
        let line = arguments.join(" ");
        self.transcript += &format!("$ interlock rollout {line} -n NAMESPACE\n{}{}", out.stdout, out.stderr);
        self.transcript += &format!("(exit code {code})\n\n");
    }

    fn request(&self) -> Option<String> {
        let object = self.get();
        object["metadata"]["annotations"][meta::PROMOTE_WHEN_READY].as_str().map(str::to_owned)
    }

    /// Runs a command beside something that waits for its request.
    fn beside(&mut self, arguments: &[&str], code: i32, then: impl FnOnce(&Self)) {
        let user = self.user.clone();
        let words = [&["rollout"], arguments, &["-n", self.ns.name()]].concat();
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let command = std::thread::spawn(move || {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let out = interlock(&user, &words, "");
            // Where what was waited for does not come, this is why.
            eprintln!("{out}");
            out
        });
        then(self);
        let out = command.join().expect("the command ends");
        self.keep(arguments, &out, code);
    }

    fn await_request(&self) {
        wait_until("a promotion is requested", CAP, || match self.request() {
            Some(_) => Ok(()),
            None => Err("no annotation".to_owned()),
        });
    }

    fn replicas(&self) -> Value {
        self.get()["spec"]["deployment"]["replicas"].clone()
    }

    fn image(&self) -> Value {
        self.get()["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["image"].clone()
    }
}

#[test]
fn a_rollout_is_shown_promoted_and_aborted() {
    let (cluster, _) = Interlock::shared();
    define_data_planes(cluster);
    let ns = cluster.namespace("rollout");
    let mut scene = Scene { user: ns.user("alice"), ns: &ns, transcript: String::new() };
    scene.apply(&plane("kong:3.8", true));
    scene.shows(&["status", "edgy"], 3);
    scene.report(BLUE, "WaitingForChange", "");
    nothing_is_staged(&mut scene);
    scene.apply(&plane("kong:3.9", true));
    a_request_is_for_what_is_staged(&mut scene);
    an_abort_keeps_what_is_live_at_once(&mut scene);
    promotions_are_followed(&mut scene);
    let hash = Regex::new("spec [0-9a-f]{12}").expect("a pattern");
    let text = scene.transcript.replace(ns.name(), "NAMESPACE");
    held("cli", "rollout.txt", &hash.replace_all(&text, "spec HASH"));
}

fn nothing_is_staged(scene: &mut Scene<'_>) {
    scene.shows(&["status", "edge"], 0);
    scene.shows(&["promote", "edge"], 1);
    scene.shows(&["abort", "dataplane/edge"], 1);
    scene.shows(&["status", "edge", "--watch"], 0);
    assert_eq!(scene.request(), None);
}

fn a_request_is_for_what_is_staged(scene: &mut Scene<'_>) {
    scene.report(BLUE, "Progressing", "Preview Deployment not yet ready");
    scene.shows(&["status", "edge"], 0);
    scene.shows(&["promote", "edge"], 0);
    let asked = scene.get();
    assert_eq!(scene.request(), Some(staged_hash(&asked["spec"]).to_string()));
    scene.shows(&["promote", "edge"], 0);
    assert_eq!(scene.get()["metadata"]["annotations"], asked["metadata"]["annotations"]);
    scene.report(BLUE, "AwaitingPromotion", "");
    let found: Value =
        serde_json::from_str(&scene.run(&["status", "edge", "-o", "json"]).ok()).expect("JSON");
    assert_eq!((&found["phase"], &found["promotion"]), (&json!("AwaitingPromotion"), &json!("thisSpec")));
    assert_eq!(found["staged"]["fields"][0]["staged"], "kong:3.9");
    // Another edit is not what was asked for, and is not promoted.
    let mut edited = plane("kong:3.9.1", true);
    edited["spec"]["deployment"]["replicas"] = json!(5);
    let out = scene.user.kubectl_in(&["apply", "-f", "-"], &edited.to_string());
    assert!(out.code == 0 && out.stderr.contains("is for another spec"), "{out}");
    scene.shows(&["status", "edge"], 0);
    scene.report(BLUE, "Failed", "failed to ensure preview Deployment");
    scene.shows(&["status", "edge", "--watch"], 1);
    // The rollout is not removed from under it, and its Services are not taken away.
    let met = meets(&scene.user, scene.ns.name(), &plane("kong:3.9.1", false));
    for said in [&met.kubectl, &met.check] {
        assert!(said.contains("[dataplane-staged]"), "{said}");
    }
    let mut overridden = plane("kong:3.9.1", true);
    overridden["metadata"]["annotations"] = json!({meta::SERVICE_SELECTOR_OVERRIDE: "app=edge"});
    let met = meets(&scene.user, scene.ns.name(), &overridden);
    assert!(met.kubectl.contains("[dataplane-selector]"), "{}", met.kubectl);
}

fn an_abort_keeps_what_is_live_at_once(scene: &mut Scene<'_>) {
    scene.beside(&["abort", "edge", "--wait"], 0, |scene| {
        wait_until("the spec is set back", CAP, || match scene.image() {
            Value::String(image) if image == "kong:3.8" => Ok(()),
            other => Err(other.to_string()),
        });
        scene.report(BLUE, "WaitingForChange", "");
    });
    assert_eq!((scene.request(), scene.replicas()), (None, json!(5)));
    assert!(scene.run(&["status", "edge"]).ok().contains("staged: nothing"));
    assert_eq!(scene.run(&["abort", "edge"]).code, 1);
}

fn promotions_are_followed(scene: &mut Scene<'_>) {
    scene.apply(&plane("kong:3.9", true));
    scene.report(BLUE, "AwaitingPromotion", "");
    // Somebody edits the spec meanwhile.
    scene.beside(&["promote", "edge", "--wait"], 1, |scene| {
        scene.await_request();
        scene.apply(&plane("kong:3.9.2", true));
    });
    scene.apply(&plane("kong:3.9", true));
    scene.report(BLUE, "AwaitingPromotion", "");
    scene.user.kubectl(&["annotate", "dataplane", "edge", &format!("{}-", meta::PROMOTE_WHEN_READY)]).ok();
    scene.shows(&["promote", "edge", "--wait", "--timeout=1s"], 3);
    scene.user.kubectl(&["annotate", "dataplane", "edge", &format!("{}-", meta::PROMOTE_WHEN_READY)]).ok();
    scene.beside(&["promote", "edge", "--wait"], 0, |scene| {
        scene.await_request();
        scene.report(GREEN, "PromotionDone", "");
    });
    scene.shows(&["status", "edge"], 0);
}
