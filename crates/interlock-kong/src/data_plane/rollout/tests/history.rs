//! The history of a DataPlane on the small cluster: what is recorded, what is kept, and the way back.

use interlock_core::api::meta;
use interlock_core::api::object::{ObjectKey, annotation, meta_str};
use rstest::rstest;
use serde_json::{Value, json};

use super::scenarios::{BLUE, GREEN, INGRESS, image, replicas, running, settle};
use super::world::{PassEnd, World, data_plane, spec};
use crate::api::labels;
use crate::data_plane::rollout::history::History;
use crate::data_plane::rollout::history::summary::{RevisionState, summaries};
use crate::data_plane::rollout::history::undo::{UndoOutcome, UndoRefusal, undo};

fn kept(world: &World) -> Vec<&Value> {
    world
        .objects
        .values()
        .map(|stored| &**stored)
        .filter(|object| object["kind"] == "ControllerRevision")
        .collect()
}

/// Number and image of each revision, the newest first.
fn recorded(world: &World) -> Vec<(i64, String)> {
    let kept = kept(world);
    let history = History::of(kept.iter().copied(), "u-1");
    let image = |spec: Value| {
        let container = &spec["deployment"]["podTemplateSpec"]["spec"]["containers"][0];
        container["image"].as_str().unwrap().to_owned()
    };
    history.revisions.iter().map(|revision| (revision.number, image(revision.spec().unwrap()))).collect()
}

fn numbered(listed: &[(i64, &str)]) -> Vec<(i64, String)> {
    listed.iter().map(|(number, image)| (*number, (*image).to_owned())).collect()
}

fn promote(world: &mut World, spec: Value) {
    world.edit(spec);
    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    settle(world);
    world.wait(31);
    settle(world);
    assert_eq!(world.rolled_out(), "WaitingForChange");
}

fn go_back(world: &mut World, to: Option<i64>) -> Result<UndoOutcome, UndoRefusal> {
    let listed = kept(world);
    let undo = undo(world.get(), None, &History::of(listed, "u-1"), to)?;
    world.edit(undo.spec);
    Ok(undo.outcome)
}

#[test]
fn each_promotion_is_a_revision() {
    let mut world = running();
    assert_eq!(recorded(&world), numbered(&[(1, "kong:3.8")]));
    world.edit(spec("kong:3.9"));
    settle(&mut world);
    assert_eq!(recorded(&world).len(), 1, "what is staged is none");
    world.annotate(meta::CHANGE_CAUSE, "a better Kong");
    promote(&mut world, spec("kong:3.9"));
    assert_eq!(recorded(&world), numbered(&[(2, "kong:3.9"), (1, "kong:3.8")]));
    let listed = kept(&world);
    let found = summaries(world.get(), None, &History::of(listed, "u-1"));
    let states: Vec<RevisionState> = found.iter().map(|revision| revision.state).collect();
    assert_eq!(states, [RevisionState::Former, RevisionState::Live]);
    assert_eq!((&*found[1].change(), &*found[0].change()), ("a better Kong", "<none>"));
    assert_eq!(found[1].changes.as_ref().unwrap().fields[0].staged.as_deref(), Some("kong:3.9"));
}

#[test]
fn a_spec_that_is_live_again_has_a_new_number() {
    let mut world = running();
    promote(&mut world, spec("kong:3.9"));
    promote(&mut world, spec("kong:3.8"));
    assert_eq!(recorded(&world), numbered(&[(3, "kong:3.8"), (2, "kong:3.9")]));
    let listed = kept(&world);
    let history = History::of(listed, "u-1");
    assert_eq!(history.revisions[0].live_since(), Some("1970-01-01T00:00:31Z"), "since the promotion");
}

#[test]
fn scaling_is_no_revision_and_a_change_in_place_is_one() {
    let mut plain = spec("kong:3.8");
    plain["deployment"].as_object_mut().unwrap().remove("rollout");
    let mut world = World::with(plain.clone());
    settle(&mut world);
    plain["deployment"]["replicas"] = json!(3);
    world.edit(plain.clone());
    settle(&mut world);
    assert_eq!(recorded(&world), numbered(&[(1, "kong:3.8")]));
    plain["deployment"]["podTemplateSpec"]["spec"]["containers"][0]["image"] = json!("kong:3.9");
    world.edit(plain);
    settle(&mut world);
    assert_eq!(recorded(&world), numbered(&[(2, "kong:3.9"), (1, "kong:3.8")]));
    assert_eq!(go_back(&mut world, None), Ok(UndoOutcome::InPlace));
    settle(&mut world);
    assert_eq!((image(&world, BLUE), replicas(&world, BLUE)), ("kong:3.8", 3));
}

#[test]
fn what_was_never_ready_is_no_revision() {
    let mut world = World::with(spec("kong:none"));
    assert_eq!(world.reconcile(usize::MAX), PassEnd::Waits);
    assert_eq!(recorded(&world), []);
    world.edit(spec("kong:3.9"));
    settle(&mut world);
    assert_eq!(recorded(&world), numbered(&[(1, "kong:3.9")]));
}

#[rstest]
#[case::default(None, 11)]
#[case::one("1", 2)]
#[case::none("0", 1)]
#[case::nonsense("many", 11)]
fn a_history_has_a_limit(#[case] limit: impl Into<Option<&'static str>>, #[case] count: usize) {
    let mut world = running();
    if let Some(limit) = limit.into() {
        world.annotate(meta::REVISION_HISTORY_LIMIT, limit);
    }
    for minor in 10..=22 {
        promote(&mut world, spec(&format!("kong:3.{minor}")));
    }
    let found = recorded(&world);
    assert_eq!((found.len(), &found[0]), (count, &(14, "kong:3.22".to_owned())));
}

/// Killed between any two writes of a promotion, the history is the same in the end.
#[test]
fn a_kill_between_two_writes_leaves_no_gap_and_no_duplicate() {
    let mut first = running();
    first.annotate(meta::REVISION_HISTORY_LIMIT, "1");
    promote(&mut first, spec("kong:3.9"));
    for next in ["kong:3.10", "kong:3.8"] {
        let mut whole = first.clone();
        promote(&mut whole, spec(next));
        let mut kills = 0;
        for writes in 1.. {
            let mut world = first.clone();
            world.edit(spec(next));
            world.annotate(meta::PROMOTE_WHEN_READY, "true");
            // Each pass is killed after so many writes, until one ends.
            let mut passes = 0;
            while world.reconcile(writes) == PassEnd::Killed {
                world.settle_deployments();
                passes += 1;
            }
            kills += passes;
            settle(&mut world);
            world.wait(31);
            settle(&mut world);
            assert_eq!(recorded(&world), recorded(&whole), "killed after {writes} writes:\n{:#?}", world.log);
            assert_eq!(kept(&world).len(), 2);
            if passes == 0 {
                break;
            }
        }
        assert!(kills > 10, "{kills}");
    }
}

/// The former side has its pods during the grace period: the way back stages what they run, and starts none.
#[test]
fn the_way_back_during_the_grace_period_starts_no_pods() {
    let mut world = running();
    world.edit(spec("kong:3.9"));
    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    settle(&mut world);
    assert_eq!(world.rolled_out(), "PromotionDone");
    let before = world.child("Deployment", BLUE).unwrap()["spec"].clone();
    assert_eq!(go_back(&mut world, None), Ok(UndoOutcome::Staged));
    assert_eq!(world.reconcile(usize::MAX), PassEnd::Waits);
    assert_eq!(world.rolled_out(), "AwaitingPromotion", "no kubelet has done anything");
    assert_eq!(world.child("Deployment", BLUE).unwrap()["spec"], before);
    world.annotate(meta::PROMOTE_WHEN_READY, "true");
    assert_eq!(world.reconcile(usize::MAX), PassEnd::Waits);
    assert_eq!((world.rolled_out(), image(&world, GREEN)), ("PromotionDone", "kong:3.9"));
    assert_eq!(recorded(&world), numbered(&[(3, "kong:3.8"), (2, "kong:3.9")]));
}

#[test]
fn the_way_back_names_a_revision() {
    let mut world = running();
    promote(&mut world, spec("kong:3.9"));
    promote(&mut world, spec("kong:3.10"));
    assert_eq!(go_back(&mut world, Some(1)), Ok(UndoOutcome::Staged));
    settle(&mut world);
    assert_eq!((world.rolled_out(), image(&world, BLUE)), ("AwaitingPromotion", "kong:3.10"));
    assert_eq!(image(&world, GREEN), "kong:3.8");
    assert_eq!(go_back(&mut world, Some(1)), Err(UndoRefusal::Written(1)));
    assert_eq!(go_back(&mut world, Some(3)), Ok(UndoOutcome::Unstaged), "the live one");
    let unknown = UndoRefusal::Unknown { number: 7, listed: "3, 2, 1".to_owned() };
    assert_eq!(go_back(&mut world, Some(7)), Err(unknown));
    assert_eq!(go_back(&mut running(), None), Err(UndoRefusal::NoFormer));
    assert_eq!(go_back(&mut World::with(spec("kong:3.8")), None), Err(UndoRefusal::NoHistory));
    let part =
        kept(&world).into_iter().find(|part| part["revision"] == 1).map(ObjectKey::of).unwrap().unwrap();
    world.objects.get_mut(&part).unwrap()["data"]["gzip"] = json!("AAAA");
    assert_eq!(go_back(&mut world, Some(1)), Err(UndoRefusal::Unreadable(1)));
}

/// An object of another that has the name of a revision is left alone, and nothing is asked again and again.
#[test]
fn a_revision_of_another_is_left_alone() {
    let mut world = running();
    let key = kept(&world).into_iter().map(ObjectKey::of).next().unwrap().unwrap();
    world.objects.get_mut(&key).unwrap()["metadata"]["ownerReferences"][0]["uid"] = json!("another");
    world.annotate(meta::LIVE_REVISION, "");
    let before = world.objects.clone();
    settle(&mut world);
    assert_eq!(world.objects, before);
}

fn named(image: &str, name: &str) -> Value {
    let mut spec = spec(image);
    spec["network"]["services"]["ingress"]["name"] = json!(name);
    spec
}

fn services(world: &World) -> Vec<&str> {
    let all = world.objects.values().filter(|object| object["kind"] == "Service");
    let ingress =
        all.filter(|service| service["metadata"]["labels"][labels::SERVICE_TYPE] == labels::INGRESS);
    ingress.filter_map(|service| meta_str(service, "name")).collect()
}

#[test]
fn a_service_under_its_former_name_goes_after_the_promotion() {
    let mut world = running();
    world.edit(named("kong:3.8", "edge-in"));
    settle(&mut world);
    assert_eq!(services(&world), [INGRESS, "dataplane-ingress-edge-preview", "edge-in-preview"]);
    // Others have Services with our labels, too.
    let ours = world.child("Service", INGRESS).unwrap().clone();
    for (name, change) in [
        ("theirs", json!({"metadata": {"ownerReferences": [{"uid": "another", "controller": true}]}})),
        ("copied", json!({"metadata": {"managedFields": null}})),
    ] {
        let mut service = ours.clone();
        service["metadata"]["name"] = json!(name);
        json_patch::merge(&mut service, &change);
        world.objects.insert(ObjectKey::of(&service).unwrap(), service.into());
    }
    promote(&mut world, named("kong:3.8", "edge-in"));
    assert_eq!(services(&world), ["copied", "edge-in", "edge-in-preview", "theirs"]);
    assert!(world.log.contains(&format!("delete Service {INGRESS}")), "{:#?}", world.log);
}

#[test]
fn a_service_under_its_former_name_goes_after_a_change_in_place() {
    let in_place = |name: &str| {
        let mut spec = named("kong:3.8", name);
        spec["deployment"].as_object_mut().unwrap().remove("rollout");
        spec
    };
    let mut world = World::with(in_place("edge-in"));
    settle(&mut world);
    world.edit(in_place("edge-out"));
    settle(&mut world);
    assert_eq!(services(&world), ["edge-out"]);
}

/// Without its annotation, as after a replacement of the object, the history stays as it is.
#[test]
fn a_lost_annotation_is_written_again() {
    let mut world = running();
    promote(&mut world, spec("kong:3.9"));
    let name = annotation(world.get(), meta::LIVE_REVISION).unwrap().to_owned();
    let before = recorded(&world);
    world.objects.get_mut(&data_plane()).unwrap()["metadata"]["annotations"]
        .as_object_mut()
        .unwrap()
        .remove(meta::LIVE_REVISION);
    settle(&mut world);
    assert_eq!(annotation(world.get(), meta::LIVE_REVISION), Some(&*name));
    assert_eq!(recorded(&world), before);
}
