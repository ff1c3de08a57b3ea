//! Whole rollouts on the small cluster.

use interlock_core::api::meta;
use rstest::rstest;
use serde_json::{Value, json};

use super::world::{PassEnd, World, data_plane, selected, spec};
use crate::data_plane::rollout::side::Colour;

pub(super) const BLUE: &str = "dataplane-edge-blue";
pub(super) const GREEN: &str = "dataplane-edge-green";
pub(super) const INGRESS: &str = "dataplane-ingress-edge";

pub(super) fn running() -> World {
    let mut world = World::with(spec("kong:3.8"));
    settle(&mut world);
    world
}

/// Runs controllers until nothing changes any more.
pub(super) fn settle(world: &mut World) {
    for _ in 0..20 {
        let before = world.objects.clone();
        assert_eq!(world.reconcile(usize::MAX), PassEnd::Waits);
        world.settle_deployments();
        if world.objects == before {
            return;
        }
    }
    panic!("it does not come to rest:\n{}", world.log.join("\n"));
}

pub(super) fn image<'w>(world: &'w World, deployment: &str) -> &'w str {
    let found = world.child("Deployment", deployment).expect("the Deployment");
    found["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap()
}

pub(super) fn replicas(world: &World, deployment: &str) -> i64 {
    world.child("Deployment", deployment).expect("the Deployment")["spec"]["replicas"].as_i64().unwrap()
}

fn live(world: &World) -> &str {
    selected(world.child("Service", INGRESS).expect("the Service"))
}

#[test]
fn a_data_plane_runs_and_waits_for_a_change() {
    let world = running();
    assert_eq!(world.rolled_out(), "WaitingForChange");
    assert_eq!((image(&world, BLUE), replicas(&world, BLUE)), ("kong:3.8", 1));
    assert_eq!(replicas(&world, GREEN), 0);
    assert_eq!(live(&world), Colour::Blue.selector("u-1"));
    let status = &world.get()["status"];
    assert_eq!(status["selector"], live(&world));
    assert_eq!((&status["service"], &status["readyReplicas"]), (&json!(INGRESS), &json!(1)));
    let ready = status["conditions"].as_array().unwrap().iter().find(|c| c["type"] == "Ready").unwrap();
    assert_eq!((&ready["status"], &ready["observedGeneration"]), (&json!("True"), &json!(1)));
}

/// `GatesPassed` names the closed gate while a change is on its way, after Kong's condition.
#[test]
fn the_closed_gate_is_reported() {
    let gates = |world: &World| -> Vec<(Value, Value)> {
        let all = world.get()["status"]["rollout"]["conditions"].as_array().unwrap();
        all.iter().map(|found| (found["type"].clone(), found["reason"].clone())).collect()
    };
    let is = |rolled_out: &str, gate: &str| {
        vec![(json!("RolledOut"), json!(rolled_out)), (json!("GatesPassed"), json!(gate))]
    };
    let mut world = running();
    assert_eq!(gates(&world), [(json!("RolledOut"), json!("WaitingForChange"))]);
    world.edit(spec("kong:3.9"));
    world.reconcile(usize::MAX);
    assert_eq!(gates(&world), is("Progressing", "Pods"));
    settle(&mut world);
    assert_eq!(gates(&world), is("AwaitingPromotion", "Promotion"));
    world.edit(spec("kong:3.8"));
    settle(&mut world);
    assert_eq!(gates(&world), [(json!("RolledOut"), json!("WaitingForChange"))]);
}

/// A status that reported the preview before that is made would be written a second time.
#[test]
fn a_status_tells_of_a_preview_that_is_made() {
    let mut world = World::with(spec("kong:3.8"));
    let first = (0..100).find_map(|_| {
        match world.decide() {
            Some(effects) => world.carry_out(effects),
            None => world.settle_deployments(),
        }
        Some(world.get()["status"]["rollout"].clone()).filter(|rollout| !rollout.is_null())
    });
    let services = &first.expect("a status of the rollout")["services"];
    assert_eq!(services["ingress"]["name"], "dataplane-ingress-edge-preview");
    assert_eq!(services["adminAPI"]["name"], "dataplane-admin-edge-preview");
}

/// Another process that took itself for the leader writes late what it decided when both sides had pods; the side
/// that it would give the traffic to was deleted by hand meanwhile, and made again.
#[test]
fn the_traffic_is_not_given_to_a_side_by_a_decision_on_pods_that_are_gone() {
    let mut world = running();
    world.edit(spec("kong:3.9"));
    settle(&mut world);
    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    while world.stamp()["selector"] != Colour::Green.selector("u-1").as_str() {
        world.reconcile(1);
    }
    let decided = world.decide().expect("the traffic is given to the new side");
    assert_eq!(live(&world), Colour::Blue.selector("u-1"));
    world.delete("Deployment", GREEN);
    world.reconcile(usize::MAX);
    world.carry_out(decided);
    assert_eq!(live(&world), Colour::Blue.selector("u-1"), "the new side has no pods yet");
    settle(&mut world);
    assert_eq!(live(&world), Colour::Green.selector("u-1"));
    assert_eq!(image(&world, GREEN), "kong:3.9");
}

#[test]
fn what_is_staged_is_promoted_when_it_is_asked_for() {
    let mut world = running();
    world.edit(spec("kong:3.9"));
    settle(&mut world);
    assert_eq!(world.rolled_out(), "AwaitingPromotion");
    assert_eq!(
        (image(&world, BLUE), image(&world, GREEN), replicas(&world, GREEN)),
        ("kong:3.8", "kong:3.9", 1)
    );
    assert_eq!(live(&world), Colour::Blue.selector("u-1"), "the traffic stays");
    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    settle(&mut world);
    assert_eq!(world.rolled_out(), "PromotionDone");
    assert_eq!(live(&world), Colour::Green.selector("u-1"));
    assert_eq!((replicas(&world, BLUE), image(&world, BLUE)), (1, "kong:3.8"), "it can still go back");
    assert!(world.get()["metadata"]["annotations"][meta::PROMOTE_WHEN_READY].is_null(), "it is used up");
    assert_eq!(world.stamp()["selector"], live(&world));
    world.wait(30);
    settle(&mut world);
    assert_eq!(world.rolled_out(), "WaitingForChange");
    assert_eq!((replicas(&world, BLUE), replicas(&world, GREEN)), (0, 1));
    // And back again, on the colour that is free.
    world.edit(spec("kong:3.10"));
    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    settle(&mut world);
    assert_eq!((image(&world, BLUE), live(&world)), ("kong:3.10", &*Colour::Blue.selector("u-1")));
}

const QUOTA: &str =
    "deployments.apps \"x\" is forbidden: exceeded quota: none, requested: 1, used: 1, limited: 1";

#[test]
fn nothing_is_promoted_without_proof_of_the_preview() {
    let mut world = running();
    world.edit(spec("kong:3.9"));
    settle(&mut world);
    world.refuses = Some(("Deployment", QUOTA));
    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    settle(&mut world);
    settle(&mut world);
    assert_eq!(live(&world), Colour::Blue.selector("u-1"), "the traffic stays");
    assert_eq!(world.stamp()["selector"], live(&world));
    let said = condition(&world, meta::condition::STALLED);
    assert_eq!(said["reason"], "QuotaExceeded", "{said}");
    assert!(said["message"].as_str().unwrap().contains("dataplane-edge-green is not changed: "), "{said}");
    world.take_all();
    settle(&mut world);
    assert_eq!((world.rolled_out(), live(&world)), ("PromotionDone", &*Colour::Green.selector("u-1")));
    assert_eq!(condition(&world, meta::condition::STALLED), Value::Null);
}

#[test]
fn a_history_that_is_refused_is_not_said_to_be_written() {
    let mut world = World::with(spec("kong:3.8"));
    world.refuses = Some(("ControllerRevision", QUOTA));
    settle(&mut world);
    settle(&mut world);
    let revision = |world: &World| world.get()["metadata"]["annotations"][meta::LIVE_REVISION].clone();
    assert_eq!(revision(&world), Value::Null);
    let said = condition(&world, meta::condition::STALLED);
    assert!(said["message"].as_str().unwrap_or_default().contains(" is not created: "), "{said}");
    world.take_all();
    settle(&mut world);
    let name = revision(&world);
    assert!(world.child("ControllerRevision", name.as_str().expect("a revision")).is_some());
    assert_eq!(condition(&world, meta::condition::STALLED), Value::Null);
}

fn condition(world: &World, type_: &str) -> Value {
    let all = world.get()["status"]["conditions"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|found| found["type"] == type_).unwrap_or_default()
}

#[test]
fn a_change_taken_back_needs_no_promotion() {
    let mut world = running();
    world.edit(spec("kong:3.9"));
    settle(&mut world);
    world.edit(spec("kong:3.8"));
    settle(&mut world);
    assert_eq!(world.rolled_out(), "WaitingForChange");
    assert_eq!((replicas(&world, GREEN), image(&world, BLUE)), (0, "kong:3.8"));
    let ready = &world.get()["status"]["conditions"][0];
    assert_eq!(ready["observedGeneration"], 3, "the generation that is live");
}

#[test]
fn scaling_is_immediate_and_stages_nothing() {
    let mut world = running();
    let mut scaled = spec("kong:3.8");
    scaled["deployment"]["replicas"] = json!(3);
    world.edit(scaled);
    settle(&mut world);
    assert_eq!((replicas(&world, BLUE), replicas(&world, GREEN)), (3, 0));
    assert_eq!(world.rolled_out(), "WaitingForChange");
}

#[test]
fn a_preview_has_as_many_pods_as_are_live() {
    let mut world = running();
    let mut scaled = spec("kong:3.8");
    scaled["deployment"]["scaling"] = json!({"horizontal": {"minReplicas": 2, "maxReplicas": 10}});
    world.edit(scaled.clone());
    settle(&mut world);
    let key =
        world.objects.keys().find(|key| key.gvk.kind == "Deployment" && key.name == BLUE).unwrap().clone();
    world.objects.get_mut(&key).unwrap()["spec"]["replicas"] = json!(7);
    let scaler = json!({"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}});
    world.objects.get_mut(&key).unwrap()["metadata"]["managedFields"].as_array_mut().unwrap().push(scaler);
    scaled["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["image"] = json!("kong:3.9");
    world.edit(scaled);
    settle(&mut world);
    assert_eq!((replicas(&world, BLUE), replicas(&world, GREEN)), (7, 7));
    let target = |world: &World| {
        world.child("HorizontalPodAutoscaler", "edge").unwrap()["spec"]["scaleTargetRef"]["name"].clone()
    };
    assert_eq!(target(&world), BLUE);
    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    settle(&mut world);
    assert_eq!((target(&world), replicas(&world, GREEN)), (json!(GREEN), 7));
}

/// Its pods serve what is in the cluster: a change is staged beside them.
#[test]
fn a_load_balancer_without_an_address_leaves_changes_staged() {
    let with = |image| {
        let mut spec = spec(image);
        spec["network"]["services"]["ingress"]["type"] = json!("LoadBalancer");
        spec
    };
    let mut world = World::with(with("kong:3.8"));
    settle(&mut world);
    assert_eq!(world.get()["status"]["conditions"][0]["status"], "False", "Kong's rule");
    world.edit(with("kong:3.9"));
    settle(&mut world);
    assert_eq!((image(&world, BLUE), world.rolled_out()), ("kong:3.8", "AwaitingPromotion"));
}

#[test]
fn what_was_never_ready_is_corrected_in_place() {
    let mut world = World::with(spec("kong:none"));
    assert_eq!(world.reconcile(usize::MAX), PassEnd::Waits);
    world.edit(spec("kong:3.9"));
    settle(&mut world);
    assert_eq!((image(&world, BLUE), world.rolled_out()), ("kong:3.9", "WaitingForChange"));
}

#[test]
fn without_a_strategy_a_change_goes_live_and_the_preview_goes() {
    let mut world = running();
    let mut plain = spec("kong:3.9");
    plain["deployment"].as_object_mut().unwrap().remove("rollout");
    world.edit(plain);
    settle(&mut world);
    assert_eq!(image(&world, BLUE), "kong:3.9");
    assert!(world.child("Deployment", GREEN).is_none());
    assert!(world.child("Service", "dataplane-ingress-edge-preview").is_none());
    assert!(world.get()["status"].get("rollout").is_none());
}

fn with_flavor(flavor: &str) -> Value {
    let mut plain = spec("kong:3.9");
    plain["deployment"].as_object_mut().unwrap().remove("rollout");
    let env = json!([{"name": "KONG_ROUTER_FLAVOR", "value": flavor}]);
    plain["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["env"] = env;
    plain
}

fn stalled(world: &World) -> String {
    let conditions = world.get()["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let stalled = conditions.iter().find(|condition| condition["type"] == meta::condition::STALLED);
    stalled.map(|condition| format!("{}: {}", condition["reason"], condition["message"])).unwrap_or_default()
}

/// What admission would have refused reaches no pod, whichever user wrote it.
#[test]
fn an_edit_past_admission_that_skips_a_step_is_not_carried_out() {
    let mut world = World::with(with_flavor("traditional"));
    settle(&mut world);
    let pods = |world: &World| world.child("Deployment", BLUE).unwrap()["spec"]["template"].clone();
    let before = pods(&world);

    world.edit(with_flavor("expressions"));
    settle(&mut world);
    assert_eq!(pods(&world), before);
    let said = stalled(&world);
    assert!(said.starts_with("\"SpecDrift\"") && said.contains("[RF03]"), "{said}");
    // It heals from what is live.
    world.delete("Deployment", BLUE);
    settle(&mut world);
    assert_eq!(pods(&world), before);

    // The next step is carried out, also past admission.
    world.edit(with_flavor("traditional_compatible"));
    settle(&mut world);
    assert!(pods(&world).to_string().contains("traditional_compatible"));
    assert_eq!(stalled(&world), "");
}

/// While no pod runs every flavor may come, however soon after the last pod has gone.
#[test]
fn a_flavor_changes_while_no_pod_runs() {
    let scaled = |flavor: &str, replicas: u32| {
        let mut spec = with_flavor(flavor);
        spec["deployment"]["replicas"] = json!(replicas);
        spec
    };
    let mut world = World::with(scaled("traditional", 2));
    settle(&mut world);
    world.edit(scaled("traditional", 0));
    while world.get()["status"]["replicas"] != 0 {
        world.reconcile(1);
        world.settle_deployments();
    }
    world.edit(scaled("expressions", 0));
    settle(&mut world);
    assert_eq!(stalled(&world), "");
    let pods = world.child("Deployment", BLUE).unwrap();
    assert_eq!(pods["spec"]["replicas"], 0);
    assert!(pods.to_string().contains("expressions"), "{pods}");
    assert_eq!(previous(&world), None);
}

/// The last spec that was accepted whole, as the annotation has it.
fn previous(world: &World) -> Option<Value> {
    let object = world.get();
    let text = object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC].as_str()?;
    let stamp: Value = serde_json::from_str(text).unwrap();
    stamp.get("previous").cloned()
}

/// It is let go where what differs takes effect at once, too, as what the condition vouches for is the same.
#[rstest]
#[case::replicas(json!({"replicas": 3}))]
#[case::labels(json!({"labels": {"team": "edge"}}))]
fn a_previous_spec_is_let_go_once_a_change_is_taken(#[case] change: Value) {
    let mut world = World::with(with_flavor("traditional"));
    settle(&mut world);
    let mut spec = with_flavor("traditional");
    json_patch::merge(&mut spec["deployment"], &change);
    world.edit(spec);
    settle(&mut world);
    assert_eq!(previous(&world), None);
}

/// A Deployment made anew from the previous spec has as many pods as are wanted now.
#[test]
fn a_refused_spec_is_scaled() {
    let mut world = World::with(with_flavor("traditional"));
    settle(&mut world);
    let mut refused = with_flavor("traditional_compatible");
    refused["deployment"]["replicas"] = json!(0);
    world.edit(refused);
    world.reconcile(1);
    assert!(previous(&world).is_some());
    world.delete("Deployment", BLUE);
    world.reconcile(1);
    let pods = world.child("Deployment", BLUE).unwrap();
    assert!(!pods.to_string().contains("traditional_compatible"), "{pods}");
    assert_eq!(pods["spec"]["replicas"], 0);
}

/// In every phase the live side comes back as it was, and the preview as it is staged.
#[rstest]
fn a_child_that_is_gone_comes_back(
    #[values("idle", "staging", "awaiting", "grace")] phase: &str,
    #[values(
        ("Deployment", BLUE),
        ("Deployment", GREEN),
        ("Service", INGRESS),
        ("Service", "dataplane-admin-edge"),
        ("Service", "dataplane-ingress-edge-preview"),
        ("Service", "dataplane-admin-edge-preview")
    )]
    child: (&str, &str),
) {
    let mut world = running();
    if phase != "idle" {
        world.edit(spec("kong:3.9"));
        assert_eq!(world.reconcile(usize::MAX), PassEnd::Waits);
    }
    if matches!(phase, "awaiting" | "grace") {
        settle(&mut world);
    }
    if phase == "grace" {
        world.annotate(meta::PROMOTE_WHEN_READY, "true");
        settle(&mut world);
    }
    let before = world.child(child.0, child.1).map(|found| found["spec"].clone());
    let before = before.unwrap_or_else(|| panic!("no {child:?} in {phase}"));
    world.delete(child.0, child.1);
    world.log.clear();
    settle(&mut world);
    let after = world.child(child.0, child.1);
    let kept = phase == "grace" && child == ("Deployment", BLUE);
    assert!(after.is_some_and(|after| after["spec"] == before) || kept, "{phase} {child:?}: {after:?}");
    let is_live = !child.1.ends_with("-preview") && child.1 != if phase == "grace" { BLUE } else { GREEN };
    let told = world.log.iter().any(|line| line.starts_with("event LiveChildRecreated"));
    assert_eq!(told, is_live, "{:?}", world.log);
    let counted = format!("healed {}, deleted", child.0);
    assert_eq!(world.log.contains(&counted), is_live, "{:?}", world.log);
}

/// Kong's definition has neither field: nothing is written again and again for them.
#[test]
fn what_a_definition_drops_is_not_written_again() {
    let mut world = running();
    assert_eq!(world.get()["status"]["routerFlavor"], "traditional_compatible");
    let status = world.objects.get_mut(&data_plane()).unwrap()["status"].as_object_mut().unwrap();
    status.remove("routerFlavor");
    assert!(world.decide().is_some(), "ours keeps both");
    let status = world.objects.get_mut(&data_plane()).unwrap()["status"].as_object_mut().unwrap();
    status.remove("podSelector");
    assert_eq!(world.decide(), None);
    // The flavor that is staged is not that of the live pods.
    let mut world = running();
    let mut staged = spec("kong:3.8");
    staged["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["env"] =
        json!([{"name": "KONG_ROUTER_FLAVOR", "value": "traditional"}]);
    world.edit(staged);
    settle(&mut world);
    assert_eq!(world.get()["status"]["routerFlavor"], "traditional_compatible");
    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    settle(&mut world);
    assert_eq!(world.get()["status"]["routerFlavor"], "traditional");
}

/// A state has its own time, which an alert about one that lasts too long needs.
#[test]
fn each_state_of_a_rollout_says_since_when_it_lasts() {
    let mut world = running();
    let since = |world: &World| {
        let condition = world.get().pointer("/status/rollout/conditions/0/lastTransitionTime").unwrap();
        condition.as_str().unwrap().parse::<jiff::Timestamp>().unwrap()
    };
    let started = since(&world);
    world.wait(60);
    settle(&mut world);
    assert_eq!(since(&world), started, "it is the same state");
    world.edit(spec("kong:3.9"));
    assert_eq!(world.reconcile(usize::MAX), PassEnd::Waits);
    assert_eq!((world.rolled_out(), since(&world)), ("Progressing", world.now));
    world.wait(60);
    settle(&mut world);
    assert_eq!((world.rolled_out(), since(&world)), ("AwaitingPromotion", world.now));
}

#[test]
fn what_was_edited_by_hand_is_set_back_and_told() {
    let mut world = running();
    world.edit(spec("kong:3.9"));
    settle(&mut world);
    let key =
        world.objects.keys().find(|key| key.gvk.kind == "Service" && key.name == INGRESS).unwrap().clone();
    let service = world.objects.get_mut(&key).unwrap();
    service["spec"]["selector"] = json!({"app": "other"});
    let editor = json!({"manager": "kubectl-edit", "operation": "Update", "time": "2026-01-01T00:00:00Z"});
    service["metadata"]["managedFields"].as_array_mut().unwrap().push(editor);
    settle(&mut world);
    assert_eq!(live(&world), Colour::Blue.selector("u-1"));
    let told = world.log.iter().find(|line| line.starts_with("event LiveChildRestored")).expect("an Event");
    assert!(told.contains("by kubectl-edit") && told.contains(INGRESS), "{told}");
    assert!(world.log.contains(&"healed Service, edited".to_owned()), "{:?}", world.log);
}

#[test]
fn a_variable_that_was_added_by_hand_is_taken_away() {
    let mut world = running();
    world.edit(spec("kong:3.9"));
    settle(&mut world);
    let key =
        world.objects.keys().find(|key| key.gvk.kind == "Deployment" && key.name == BLUE).unwrap().clone();
    let container = &mut world.objects.get_mut(&key).unwrap()["spec"]["template"]["spec"]["containers"][0];
    let added = json!({"name": "KONG_ROUTER_FLAVOR", "value": "expressions"});
    container["env"].as_array_mut().unwrap().push(added);
    settle(&mut world);
    let found = world.child("Deployment", BLUE).unwrap();
    assert!(!found.to_string().contains("KONG_ROUTER_FLAVOR"));
    assert!(world.log.contains(&"healed Deployment, added".to_owned()), "{:?}", world.log);
    assert!(
        world.log.iter().any(|line| line.contains("was given the variable KONG_ROUTER_FLAVOR")),
        "{:?}",
        world.log
    );
}

#[test]
fn an_annotation_that_others_wrote_heals_nothing() {
    let mut world = running();
    world.edit(spec("kong:3.9"));
    settle(&mut world);
    let mut stamp = world.stamp();
    stamp["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["image"] = json!("evil");
    stamp["hash"] = json!(interlock_core::api::stamp::SpecHash::of(&stamp["spec"].to_string()));
    world.annotate(meta::LAST_APPLIED_SPEC, &stamp.to_string());
    settle(&mut world);
    assert_eq!(image(&world, BLUE), "kong:3.8", "the live side stays");
    let stalled = |world: &World| {
        let all = world.get()["status"]["conditions"].as_array().unwrap().clone();
        all.into_iter()
            .find(|condition| condition["type"] == "Stalled")
            .map(|condition| condition["reason"].clone())
    };
    assert_eq!(stalled(&world), Some(json!("LastAppliedSpecMismatch")));
    // A promotion makes live what the spec says.
    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    settle(&mut world);
    assert_eq!((stalled(&world), image(&world, GREEN)), (None, "kong:3.9"));
}

#[test]
fn an_annotation_that_is_gone_comes_back_where_nothing_is_staged() {
    let mut world = running();
    world.annotate(meta::LAST_APPLIED_SPEC, "");
    settle(&mut world);
    assert_eq!(world.stamp()["selector"], live(&world));
    assert_eq!(
        world.objects[&data_plane()]["status"]["conditions"].as_array().unwrap().len(),
        2,
        "{:#}",
        world.get()
    );
}

#[test]
fn an_object_of_another_is_not_taken() {
    let mut world = World::with(spec("kong:3.8"));
    let foreign = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": "kong", "name": INGRESS, "resourceVersion": "1", "generation": 1},
        "spec": {"selector": {"app": "theirs"}},
    });
    let key = interlock_core::api::object::ObjectKey::of(&foreign).unwrap();
    world.objects.insert(key, foreign.clone().into());
    settle(&mut world);
    assert_eq!(world.child("Service", INGRESS), Some(&foreign));
    let conditions: &Value = &world.get()["status"]["conditions"];
    let stalled = conditions.as_array().unwrap().iter().find(|c| c["type"] == "Stalled").expect("it is told");
    assert_eq!(stalled["reason"], "NameTaken");
}

#[rstest]
#[case::of_a_gateway(json!({"metadata": {"ownerReferences": [{"kind": "Gateway", "controller": true}]}}), "OwnedByAnother")]
#[case::of_kongs_operator(json!({"status": {"selector": "8f1e9a5c-0000-4000-8000-000000000000"}}), "AnotherOperator")]
fn what_another_operator_reconciles_is_left_alone(#[case] made: Value, #[case] reason: &str) {
    let mut world = World::with(spec("kong:3.8"));
    json_patch::merge(world.objects.get_mut(&data_plane()).unwrap(), &made);
    settle(&mut world);
    assert_eq!(world.objects.len(), 1, "nothing is made");
    assert_eq!(world.get()["status"]["conditions"][0]["reason"], reason);
}
