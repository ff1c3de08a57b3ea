//! The last-applied annotation (design section 6), and a spec with an unseen edit (section 7, end).

use interlock_core::admission::WebhookEndpoint;
use interlock_core::admission::size_budget::{ANNOTATIONS_LIMIT, OBJECT_LIMIT, SPEC_LIMIT};
use interlock_core::api::meta;
use interlock_core::api::stamp::{Envelope, SpecChanges};
use rstest::rstest;
use serde_json::{Value, json};

use super::{
    World, basis_of, ended, hash_of, idle, kafka, manifest, ours, review, running, scheduled, stamp_of,
};
use crate::instance::change::baseline::PendingPlan;

const KEY: &str = meta::LAST_APPLIED_SPEC;

fn base() -> Value {
    idle(json!({"NODES": "3", "PASSWORD": "s3cret"}))
}

/// A user's change of the annotation is reverted with a warning; a PUT without it keeps it.
#[rstest]
#[case::changed(json!({"metadata": {"annotations": {KEY: "{\"v\":1,\"hash\":\"sha256:0\"}"}}}), 1)]
#[case::emptied(json!({"metadata": {"annotations": {KEY: ""}}}), 1)]
#[case::removed(json!({"metadata": {"annotations": {KEY: null}}}), 0)]
#[case::all_removed(json!({"metadata": {"annotations": null}}), 0)]
fn the_annotation_is_ours(#[case] patch: Value, #[case] warnings: usize) {
    for old in [base(), running("deploy"), scheduled("deploy"), ended("deploy", "COMPLETE")] {
        let said = World::strict().merge(&old, patch.clone());
        said.assert_allowed();
        assert_eq!(said.object["metadata"]["annotations"][KEY], old["metadata"]["annotations"][KEY]);
        assert_eq!(said.warnings().len(), warnings);
    }
}

#[test]
fn a_stamp_that_a_user_adds_is_taken_away() {
    let mut old = base();
    old["metadata"].as_object_mut().unwrap().remove("annotations");
    let patch = json!({"metadata": {"annotations": {KEY: stamp_of(&old["spec"]).to_string(), "a": "b"}}});
    let said = World::strict().merge(&old, patch);
    said.assert_allowed();
    assert_eq!(said.object["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(said.warnings().len(), 1);
}

/// Validation recomputes it.
#[rstest]
#[case::hash(json!("hash"), json!("sha256:0000"))]
#[case::uid(json!("uid"), json!("another"))]
#[case::previous(json!("previous"), json!({"hash": "sha256:0000", "ref": "ControllerRevision"}))]
fn validation_refuses_another_stamp(#[case] key: Value, #[case] value: Value) {
    let world = World::strict();
    let old = base();
    let mut object = world.merge(&old, json!({"spec": {"parameters": {"NODES": "5"}}})).object;
    let mut stamp: Value =
        serde_json::from_str(object["metadata"]["annotations"][KEY].as_str().unwrap()).unwrap();
    stamp[key.as_str().unwrap()] = value;
    object["metadata"]["annotations"][KEY] = json!(stamp.to_string());
    let said = world.ask(WebhookEndpoint::Validate, &review("UPDATE", "Instance", object, old));
    said.assert_refused("stamp-mismatch", "is not as Interlock's mutating webhook makes it");
}

#[test]
fn validation_refuses_an_inline_spec_that_is_not_what_its_hash_says() {
    let world = World::strict();
    let old = base();
    let mut object = world.merge(&old, json!({"spec": {"parameters": {"NODES": "5"}}})).object;
    let text = object["metadata"]["annotations"][KEY].as_str().unwrap().replacen("\"5\"", "\"6\"", 1);
    object["metadata"]["annotations"][KEY] = json!(text);
    world
        .ask(WebhookEndpoint::Validate, &review("UPDATE", "Instance", object, old))
        .assert_refused("stamp-mismatch", "");
}

/// `previous`: the last spec that was carried out in full, while it differs.
#[rstest]
#[case::nothing_owed_is_the_stamp(&[], None, Some("base"))]
#[case::failed_keeps_what_was_before(&[("deploy", PendingPlan::Failed)], Some("older"), Some("older"))]
#[case::queued_keeps_what_was_before(&[("update", PendingPlan::Queued)], Some("older"), Some("older"))]
#[case::never_done_in_full(&[("deploy", PendingPlan::Failed)], None, None)]
#[case::left_over_is_replaced_when_nothing_is_owed(&[], Some("older"), Some("base"))]
#[case::going_back_to_it(&[("update", PendingPlan::Failed)], Some("new"), None)]
fn previous(#[case] owed: &[(&str, PendingPlan)], #[case] before: Option<&str>, #[case] after: Option<&str>) {
    let mut old = base();
    let spec = |name: &str| match name {
        "older" => manifest(json!({"NODES": "1"}))["spec"].clone(),
        "base" => base()["spec"].clone(),
        _ => manifest(json!({"NODES": "5", "PASSWORD": "s3cret"}))["spec"].clone(),
    };
    let mut stamp = stamp_of(&old["spec"]);
    if let Some(name) = before {
        let changes = SpecChanges::between(&super::applied(&old["spec"]), &super::applied(&spec(name)));
        stamp["previous"] = json!({"hash": hash_of(&spec(name)), "changes": changes});
    }
    old["metadata"]["annotations"][KEY] = json!(stamp.to_string());
    old["status"]["lastApplied"] = json!(basis_of(&old["spec"], owed));
    let said = World::strict().merge(&old, json!({"spec": {"parameters": {"NODES": "5"}}}));
    said.assert_allowed();
    let want = after.map_or(Value::Null, |name| json!(hash_of(&spec(name))));
    assert_eq!(said.stamp()["previous"]["hash"], want);
    if after.is_some() {
        assert!(said.stamp()["previous"]["changes"].is_object());
    }
    let text = said.object["metadata"]["annotations"][KEY].as_str().unwrap();
    assert_eq!(Envelope::parse(text).unwrap().to_json(), text, "the reconciler writes it as admission does");
}

/// With same-plan, a restart before the first start keeps the last spec that was carried out in full.
#[test]
fn previous_survives_a_restart_before_the_start() {
    let world = World::same_plan();
    let old = base();
    let first = world.merge(&old, json!({"spec": {"parameters": {"PASSWORD": "n3w"}}})).object;
    let second = world.merge(&first, json!({"spec": {"parameters": {"PASSWORD": "n3wer"}}}));
    second.assert_allowed();
    assert_eq!(second.stamp()["previous"]["hash"], json!(hash_of(&old["spec"])));
}

/// A first annotation, on an Instance created by KUDO.
#[test]
fn what_was_never_stamped_has_no_previous() {
    let mut old = base();
    old["metadata"].as_object_mut().unwrap().remove("annotations");
    old["status"]["lastApplied"] = Value::Null;
    let said = World::strict().merge(&old, json!({"spec": {"parameters": {"NODES": "5"}}}));
    said.assert_allowed();
    assert_eq!(said.stamp()["hash"], json!(hash_of(&said.object["spec"])));
    assert_eq!(said.stamp().get("previous"), None);
}

fn filler(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// The annotation never makes a legal write fail: (spec, other annotations, other bytes) -> inline.
#[rstest]
#[case::small(1024, 0, 0, true)]
#[case::spec_at_the_limit(SPEC_LIMIT - 300, 0, 0, true)]
#[case::spec_over_the_limit(SPEC_LIMIT, 0, 0, false)]
#[case::annotations_leave_room(1024, ANNOTATIONS_LIMIT - 4096, 0, true)]
#[case::annotations_full(1024, ANNOTATIONS_LIMIT - 512, 0, false)]
#[case::annotations_near_the_servers_limit(1024, 256 * 1024 - 1024, 0, false)]
#[case::object_leaves_room(1024, 0, OBJECT_LIMIT - 16 * 1024, true)]
#[case::object_too_large(1024, 0, OBJECT_LIMIT, false)]
#[case::object_of_1400_kb(1024, 0, 1_400_000, false)]
fn thresholds(
    #[case] spec: usize,
    #[case] annotations: usize,
    #[case] rest: usize,
    #[case] inline: bool,
    #[values(true, false)] update: bool,
) {
    let world = World::strict();
    let mut object = if update { base() } else { manifest(json!({"NODES": "3"})) };
    object["metadata"]["annotations"]["other"] = json!(filler(annotations));
    object["metadata"]["managedFields"] = json!([filler(rest)]);
    let said = if update {
        // The same size before and after: the old annotation counts as little as possible.
        world.merge(&object, json!({"spec": {"parameters": {"MEMORY": filler(spec)}}}))
    } else {
        object["spec"]["parameters"]["MEMORY"] = json!(filler(spec));
        world.create(object)
    };
    said.assert_allowed();
    let stamp = said.stamp();
    assert_eq!(stamp["spec"].is_object(), inline);
    assert_eq!(stamp["ref"].is_string(), !inline);
    assert_eq!(stamp["hash"], json!(hash_of(&said.object["spec"])));
    let total: usize = said.object["metadata"]["annotations"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| key.len() + value.as_str().unwrap().len())
        .sum();
    assert!(total <= 256 * 1024);
}

/// Escapes of another annotation do not count: client-side apply keeps JSON there.
#[test]
fn annotations_are_counted_as_the_server_counts_them() {
    let mut object = manifest(json!({"NODES": "3"}));
    object["metadata"]["annotations"] = json!({"copy": "\"".repeat(ANNOTATIONS_LIMIT - 4096)});
    assert!(World::strict().create(object).stamp()["spec"].is_object());
}

/// If not even a hash fits there is no annotation, and the write is allowed.
#[test]
fn no_room_at_all() {
    let mut object = manifest(json!({"NODES": "3"}));
    object["metadata"]["annotations"] = json!({"full": filler(256 * 1024 - 20)});
    let said = World::strict().create(object);
    said.assert_allowed();
    assert_eq!(said.stamp(), Value::Null);
    assert_eq!(said.execution()["planName"], "deploy");
}

/// Our annotations yield to others that need the space: the history first, then the inline spec, then
/// the last-applied annotation. (bytes left) -> history, spec, annotation stay.
#[rstest]
#[case::room_for_all(4096, [true, true, true])]
#[case::room_for_the_stamp(1024, [false, true, true])]
#[case::room_for_a_hash(300, [false, false, true])]
#[case::room_for_nothing(20, [false, false, false])]
fn what_is_ours_gives_way(#[case] left: usize, #[case] stays: [bool; 3], #[values(true, false)] edit: bool) {
    let world = World::strict();
    let mut old = idle(json!({"NODES": "3", "MEMORY": filler(512)}));
    old["metadata"]["annotations"][meta::HISTORY] = json!(filler(1024));
    let mut patch =
        json!({"metadata": {"annotations": {"other": filler(256 * 1024 - left - "other".len())}}});
    patch["spec"] = if edit { json!({"planExecution": {"planName": "backup"}}) } else { json!({}) };
    let said = world.merge(&old, patch);
    said.assert_allowed();
    assert!(said.warnings().is_empty());
    let annotations = &said.object["metadata"]["annotations"];
    let found = [
        annotations[meta::HISTORY].is_string(),
        said.stamp()["spec"].is_object(),
        annotations[KEY].is_string(),
    ];
    assert_eq!(found, stays);
    if stays[2] {
        assert_eq!(said.stamp()["hash"], json!(hash_of(&old["spec"])));
    }
}

/// An inline `previous` exists only in the annotation; the new spec also in the object.
#[test]
fn previous_stays_inline_where_only_one_fits() {
    let old = idle(json!({"MEMORY": filler(20 * 1024)}));
    let mut object = old.clone();
    object["metadata"]["annotations"]["other"] = json!(filler(ANNOTATIONS_LIMIT - 30 * 1024));
    object["spec"]["parameters"]["MEMORY"] = json!(filler(19 * 1024));
    let said = World::strict().update(&old, object);
    said.assert_allowed();
    assert_eq!(said.stamp()["ref"], "ControllerRevision");
    assert_eq!(said.stamp()["previous"]["hash"], json!(hash_of(&old["spec"])));
    assert!(said.stamp()["previous"]["spec"].is_object());
}

/// A PUT without annotations, as `kubectl replace` sends it.
fn replacement(size: usize, beside: usize) -> Value {
    let mut object = manifest(json!({"MEMORY": filler(size)}));
    object["metadata"]["resourceVersion"] = json!(super::RESOURCE_VERSION);
    if beside > 0 {
        object["status"] = base()["status"].clone();
        object["metadata"]["managedFields"] = json!([filler(beside)]);
    }
    object
}

/// Validation accepts the result of mutation, even if the annotation takes the last of the space.
#[rstest]
fn an_object_of_any_size_is_validated_as_it_was_mutated(#[values(0, 5_000)] beside: usize) {
    let world = World::strict();
    let old = idle(json!({"MEMORY": filler(20 * 1024)}));
    let around = [(900_000, 1_100_000, 40_000), (1_011_000, 1_029_000, 6_000), (1_490_000, 1_494_000, 1_000)];
    for size in around.into_iter().flat_map(|(from, to, step)| (from..=to).step_by(step)) {
        let review = |object| review("UPDATE", "Instance", object, old.clone());
        let mutated = world.ask(WebhookEndpoint::Mutate, &review(replacement(size, beside)));
        mutated.assert_allowed();
        let validated = world.ask(WebhookEndpoint::Validate, &review(mutated.object));
        assert!(validated.allowed(), "{size}: {}", validated.message());
    }
}

/// An object that outgrew an inline `previous` since mutation may still carry it, and no other.
#[test]
fn a_previous_that_no_longer_fits_is_compared_all_the_same() {
    let world = World::strict();
    let old = idle(json!({"MEMORY": filler(20 * 1024)}));
    let review = |object| review("UPDATE", "Instance", object, old.clone());
    let mut object = world.ask(WebhookEndpoint::Mutate, &review(replacement(1_015_000, 0))).object;
    let text = object["metadata"]["annotations"][KEY].as_str().unwrap().to_owned();
    let stamp: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(stamp["previous"]["hash"], json!(hash_of(&old["spec"])));
    assert!(stamp["previous"]["spec"].is_object() && stamp["ref"].is_string());
    object["metadata"]["managedFields"] = json!([filler(30_000)]);
    world.ask(WebhookEndpoint::Validate, &review(object.clone())).assert_allowed();
    let other = manifest(json!({"NODES": "1"}))["spec"].clone();
    let forged = [
        json!({"hash": hash_of(&other), "spec": super::applied(&other)}),
        json!({"hash": hash_of(&other), "ref": "Secret"}),
        json!({"hash": hash_of(&old["spec"]), "spec": super::applied(&other)}),
    ];
    for previous in forged {
        let mut stamp = stamp.clone();
        stamp["previous"] = previous;
        object["metadata"]["annotations"][KEY] = json!(stamp.to_string());
        world.ask(WebhookEndpoint::Validate, &review(object.clone())).assert_refused("stamp-mismatch", "");
    }
}

/// The spec of `base` was edited unseen; its baseline differs.
pub(super) fn drifted(parameters: Value, stamped: bool) -> Value {
    drifted_spec(json!({"parameters": parameters}), stamped)
}

fn drifted_spec(unseen: Value, stamped: bool) -> Value {
    let mut old = base();
    let before = old["spec"].clone();
    json_patch::merge(&mut old["spec"], &unseen);
    assert_ne!(old["spec"], before);
    if !stamped {
        old["metadata"]["annotations"] = json!({});
    }
    old
}

/// Validated against the baseline, neither scheduled nor recorded as last applied.
#[rstest]
fn a_change_of_a_drifted_spec_is_left_to_the_reconciler(#[values(true, false)] stamped: bool) {
    let old = drifted(json!({"MEMORY": "9Gi"}), stamped);
    let said = World::strict().merge(&old, json!({"spec": {"parameters": {"NODES": "5"}}}));
    said.assert_allowed();
    assert_eq!(said.patch, Value::Null);
}

#[rstest]
fn mending_a_drifted_spec_is_allowed_without_a_plan(#[values(true, false)] stamped: bool) {
    // The unseen edit would have been denied; undoing it is allowed.
    let old = drifted(json!({"ID": "8"}), stamped);
    let said = World::strict().merge(&old, json!({"spec": {"parameters": {"ID": null}}}));
    said.assert_allowed();
    assert_eq!(said.patch, Value::Null);
}

#[rstest]
#[case::changed_by_the_unseen_edit(
    json!({"ID": "8"}),
    json!({"NODES": "5"}),
    "parameter-immutable",
    "parameter 'ID' is immutable"
)]
#[case::unknown_from_the_unseen_edit(
    json!({"NODS": "8"}),
    json!({"NODES": "5"}),
    "parameter-unknown",
    "failed to find parameter \"NODS\""
)]
#[case::cleanup_by_the_unseen_edit(json!({"CLEAN": "1"}), json!({"NODES": "5"}), "plan-cleanup", "")]
#[case::own_change(json!({"MEMORY": "9Gi"}), json!({"NODES": "many"}), "parameter-invalid", "")]
#[case::own_triggers(json!({"MEMORY": "9Gi"}), json!({"BACKUP_FILE": "a", "RESTORE_FILE": "b"}), "plan-multiple", "")]
fn a_change_of_a_drifted_spec_is_judged_with_it(
    #[case] unseen: Value,
    #[case] change: Value,
    #[case] rule: &str,
    #[case] sentence: &str,
    #[values(true, false)] stamped: bool,
) {
    let old = drifted(unseen, stamped);
    let said = World::strict().merge(&old, json!({"spec": {"parameters": change}}));
    said.assert_refused(rule, sentence);
}

/// An upgrade is validated from the spec that was carried out; if the annotation is lost, from the
/// present reference, unless it goes back.
#[rstest]
#[case::down(json!({"parameters": {"MEMORY": "9Gi"}}), "kafka-0", [Some("0.9.0 is lower than 1.0.0"); 2])]
#[case::up(json!({"parameters": {"MEMORY": "9Gi"}}), "kafka-2", [None; 2])]
#[case::not_as_far_as_unseen(
    json!({"operatorVersion": {"name": "kafka-3"}}),
    "kafka-2",
    [None, Some("2.0.0 is lower than 3.0.0")]
)]
#[case::back_to_the_basis(
    json!({"operatorVersion": {"name": "kafka-3"}, "parameters": {"MEMORY": "9Gi"}}),
    "kafka-1",
    [None; 2]
)]
fn an_upgrade_of_a_drifted_spec_goes_where_it_may(
    #[case] unseen: Value,
    #[case] to: &str,
    #[case] refused: [Option<&str>; 2],
) {
    let world = World::strict()
        .with(kafka("kafka-0", "0.9.0"))
        .with(kafka("kafka-2", "2.0.0"))
        .with(kafka("kafka-3", "3.0.0"));
    for (stamped, refused) in [true, false].into_iter().zip(refused) {
        let old = drifted_spec(unseen.clone(), stamped);
        let said = world.merge(&old, json!({"spec": {"operatorVersion": {"name": to}}}));
        match refused {
            Some(sentence) => said.assert_refused("upgrade-path", sentence),
            None => said.assert_allowed(),
        }
    }
}

/// Several triggers, one of them unseen, are no reason to deny: the reconciler runs them in turn.
#[test]
fn an_unseen_trigger_does_not_count_against_a_seen_one() {
    let old = drifted(json!({"RESTORE_FILE": "r"}), true);
    World::strict().merge(&old, json!({"spec": {"parameters": {"BACKUP_FILE": "b"}}})).assert_allowed();
}

/// A direct trigger runs on the last-applied spec; without one it would run an unvalidated spec.
#[test]
fn a_trigger_on_a_drifted_spec() {
    let patch = json!({"spec": {"planExecution": {"planName": "backup", "uid": "u"}}});
    let old = drifted(json!({"MEMORY": "9Gi"}), true);
    let said = World::strict().merge(&old, patch.clone());
    said.assert_allowed();
    assert_eq!(said.execution()["uid"], json!(ours("backup", &old["spec"])));
    assert_eq!(said.object["metadata"]["annotations"], old["metadata"]["annotations"]);
    World::strict()
        .merge(&drifted(json!({"MEMORY": "9Gi"}), false), patch)
        .assert_refused("spec-drift", "an edit that was never admitted has to be judged");
}

/// Only the bare hash is known: the present spec is validated by itself.
#[test]
fn a_drifted_spec_with_a_bare_hash() {
    let mut old = drifted(json!({"MEMORY": "9Gi"}), false);
    let mut basis = basis_of(&base()["spec"], &[]);
    basis.detail = None;
    old["status"]["lastApplied"] = json!(basis);
    let world = World::strict();
    let said = world.merge(&old, json!({"spec": {"parameters": {"NODES": "5"}}}));
    said.assert_allowed();
    assert_eq!(said.patch, Value::Null);
    world
        .merge(&old, json!({"spec": {"parameters": {"NODES": "many"}}}))
        .assert_refused("parameter-invalid", "");
}
