//! A router flavor that comes from a ConfigMap: a change of it is staged, and reaches no live pod before its promotion.

use std::collections::BTreeSet;

use interlock_core::api::meta;
use interlock_kong::data_plane::rollout::side::Colour;
use regex::Regex;
use serde_json::{Value, json};

use super::{BLUE, CAP, GREEN, Ground, NAMESPACE, definition, spec};
use crate::support::fake_kong::ADMIN;
use crate::support::{service_path, wait_until};

const T: &str = "traditional";
const EX: &str = "expressions";

impl Ground {
    fn source(&self) -> Value {
        self.admin.read(&self.path("configmaps", "router")).ok()
    }

    /// What the pods of a colour that are ready report, by name.
    fn reported(&self, colour: Colour) -> Vec<(String, String)> {
        let selector = self.selector(colour);
        let label = format!("gateway-operator.konghq.com/selector={selector}");
        let list = self.admin.read(&format!("{}?labelSelector={label}", self.path("pods", ""))).ok();
        let alive = list["items"].as_array().into_iter().flatten().filter(|pod| {
            let ready = pod["status"]["conditions"].as_array().into_iter().flatten();
            let is_ready = ready.filter(|c| c["type"] == "Ready").any(|c| c["status"] == "True");
            pod["metadata"]["deletionTimestamp"].is_null() && is_ready
        });
        let report = |pod: &Value| {
            let address = pod["status"]["podIP"].as_str()?;
            let (_, root) = self.kong.get(address, ADMIN, "/");
            let name = pod["metadata"]["name"].as_str()?.to_owned();
            Some((name, root["configuration"]["router_flavor"].as_str()?.to_owned()))
        };
        alive.filter_map(report).collect()
    }

    #[track_caller]
    fn await_reported(&self, colour: Colour, flavor: &str, besides: &BTreeSet<String>) -> BTreeSet<String> {
        wait_until(&format!("two pods report {flavor}"), CAP, || {
            let found = self.reported(colour);
            let agree = found.iter().all(|(name, reported)| reported == flavor && !besides.contains(name));
            match agree && found.len() == 2 {
                true => Ok(found.into_iter().map(|(name, _)| name).collect()),
                false => Err(format!("{found:?}")),
            }
        })
    }

    fn staged_flavor(&self) -> Option<String> {
        let conditions = self.data_plane()["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|c| c["type"] == meta::condition::ROUTER_FLAVOR_STAGED)?;
        Some(found["message"].as_str().unwrap_or_default().to_owned())
    }
}

/// Writes a flavor that takes an override, with the one that the refusal names.
fn write_with_override(ground: &Ground, flavor: &str) {
    let patch = |allowed: &str| {
        let annotations = json!({meta::ALLOW_FLAVOR: allowed});
        let patch = json!({"data": {"flavor": flavor}, "metadata": {"annotations": annotations}}).to_string();
        ground.admin.kubectl(&["patch", "configmap", "router", "-n", NAMESPACE, "--type=merge", "-p", &patch])
    };
    let refused = patch(&format!("{T}->{flavor}")).refused();
    assert!(
        refused.contains("is the next router flavor of DataPlane gateways/edge (live: traditional)"),
        "{refused}"
    );
    let exact = Regex::new(&format!("{T}->{flavor}@[0-9a-f]+")).unwrap();
    let exact = exact.find(&refused).unwrap_or_else(|| panic!("{refused}")).as_str();
    patch(exact).ok();
}

#[test]
fn a_changed_source_of_a_flavor_is_promoted_like_any_change() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    ground.produce();
    let source = json!({"metadata": {"name": "router"}, "data": {"flavor": T}});
    ground.admin.post(&ground.path("configmaps", ""), &source).ok();
    let mut sourced = spec("kong:3.9");
    sourced["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["env"] = json!([
        {"name": "KONG_ROUTER_FLAVOR", "valueFrom": {"configMapKeyRef": {"name": "router", "key": "flavor"}}},
    ]);
    ground.create(sourced);
    ground.await_rolled_out("WaitingForChange");
    wait_until("the source is labelled", CAP, || {
        let label = ground.source()["metadata"]["labels"][meta::FLAVOR_SOURCE].clone();
        if label == meta::FLAVOR_SOURCE_OURS { Ok(()) } else { Err(label.to_string()) }
    });
    let live = ground.await_reported(Colour::Blue, T, &BTreeSet::new());
    let before = ground.await_child("deployments", BLUE, "is there", |_| true);

    // One hop is skipped, which takes an override; it is staged all the same.
    write_with_override(&ground, EX);
    ground.await_rolled_out("AwaitingPromotion");
    let staged = format!("router flavor {T} -> {EX}, of ConfigMap {NAMESPACE}/router");
    assert_eq!(ground.staged_flavor(), Some(staged.clone()));
    ground.await_reported(Colour::Green, EX, &BTreeSet::new());
    let after = ground.await_child("deployments", BLUE, "is there", |_| true);
    assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"]);
    // Live pods that start again, and a process that does, find the former value.
    for pod in &live {
        ground.admin.delete(&ground.path("pods", pod)).ok();
    }
    ground.interlock.kill();
    ground.interlock.start();
    ground.await_reported(Colour::Blue, T, &live);
    ground.admin.delete(&ground.path("deployments", BLUE)).ok();
    ground.await_event("LiveChildRecreated", BLUE);
    ground.await_reported(Colour::Blue, T, &live);
    ground.await_rolled_out("AwaitingPromotion");

    let status = ground.rollout(&["status", "edge"]);
    assert!(status.contains(&format!("staged: {staged}")) && status.contains("rollout promote"), "{status}");
    let line = ["rollout", "abort", "edge", "-n", NAMESPACE];
    let abort = ground.admin.command(&crate::support::interlock::binary(), &line, "");
    assert!(abort.code == 1 && abort.stderr.contains("write the former value there"), "{abort}");
    wait_until("a request for the promotion is admitted", CAP, || {
        let line = ["rollout", "promote", "edge", "-n", NAMESPACE, "--wait"];
        let said = ground.admin.command(&crate::support::interlock::binary(), &line, "");
        if said.code == 0 && said.stderr.is_empty() { Ok(()) } else { Err(said.to_string()) }
    });
    let done = ground.await_rolled_out("WaitingForChange");
    assert_eq!(done["status"]["selector"], ground.selector(Colour::Green));
    assert_eq!((done["status"]["routerFlavor"].as_str(), ground.staged_flavor()), (Some(EX), None));
    ground.await_reported(Colour::Green, EX, &BTreeSet::new());
    let history = ground.rollout(&["history", "edge"]);
    assert!(history.contains("live") && history.contains(EX), "{history}");

    // What is set back before its promotion leaves everything as it is.
    let green = ground.await_child("deployments", GREEN, "is there", |_| true);
    let write = |flavor: &str| {
        let patch =
            json!({"data": {"flavor": flavor}, "metadata": {"annotations": {meta::ALLOW_FLAVOR: null}}});
        ground.admin.merge_patch(&ground.path("configmaps", "router"), &patch).ok();
    };
    write("traditional_compatible");
    ground.await_rolled_out("AwaitingPromotion");
    write(EX);
    ground.await_rolled_out("WaitingForChange");
    let still = ground.await_child("deployments", GREEN, "is there", |_| true);
    assert_eq!(still["metadata"]["generation"], green["metadata"]["generation"]);
}
