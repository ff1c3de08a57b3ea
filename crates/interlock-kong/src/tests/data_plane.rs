//! DataPlanes: the last-applied annotation, and changes validated against it, through the webhook's own
//! paths.

use interlock_core::admission::lister::CacheState;
use interlock_core::admission::{Config, Freeze, WebhookEndpoint};
use interlock_core::api::meta;
use interlock_core::api::object::NamespacedName;
use interlock_core::api::revision::{RevisionOwner, parts};
use interlock_core::api::stamp::SpecHash;
use interlock_core::kinds::static_lister::StaticLister;
use interlock_core::testing;
use interlock_core::testing::{Cached, Said};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

use crate::data_plane::flavor::gateway::sources_of;
use crate::data_plane::rollout::side::Colour;

pub(super) const T: &str = "traditional";
pub(super) const TC: &str = "traditional_compatible";
pub(super) const EX: &str = "expressions";

pub(super) fn plane(flavor: &str, staged: bool) -> Value {
    let mut plane = json!({
        "apiVersion": "gateway-operator.konghq.com/v1beta1", "kind": "DataPlane",
        "metadata": {"name": "edge", "namespace": "kong"},
        "spec": {"deployment": {"replicas": 3, "podTemplateSpec": {"spec": {"containers": [
            {"name": "sidecar", "image": "x"},
            {"name": "proxy", "image": "kong:3.9", "env": [{"name": "KONG_ROUTER_FLAVOR", "value": flavor}]},
        ]}}}},
    });
    if staged {
        plane["spec"]["deployment"]["rollout"] = json!({"strategy": {"blueGreen": {}}});
    }
    plane
}

pub(super) fn ask(door: WebhookEndpoint, object: &Value, old: &Value) -> Said {
    ask_with(StaticLister::of(crate::all()), door, object, old)
}

pub(super) fn ask_with(view: StaticLister, door: WebhookEndpoint, object: &Value, old: &Value) -> Said {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "kind": {"group": "gateway-operator.konghq.com", "version": "v1beta1", "kind": "DataPlane"},
            "name": object["metadata"]["name"], "namespace": "kong", "operation": if old.is_null() { "CREATE" } else { "UPDATE" },
            "userInfo": {"username": "alice"}, "object": object, "oldObject": old,
        },
    });
    let config = Config { controller_user: String::new(), freeze: Freeze::Strict, docs: None };
    testing::ask(crate::all(), &Cached(&view, CacheState::Synced), &config, door, &review)
}

/// The stored object after a write, as the API server carries it out; or the denial.
pub(super) fn write(object: &Value, old: &Value) -> Result<Value, String> {
    let mutated = ask(WebhookEndpoint::Mutate, object, old);
    assert!(mutated.allowed(), "{mutated:?}");
    let again = ask(WebhookEndpoint::Mutate, &mutated.object, old);
    assert_eq!(again.patch, Value::Null, "a call that is made again patches again");
    let said = ask(WebhookEndpoint::Validate, &mutated.object, old);
    let mut stored = mutated.object;
    let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
    stored["metadata"]["uid"] = json!("uid-1");
    stored["metadata"]["generation"] = json!(generation + i64::from(stored["spec"] != old["spec"]));
    if said.allowed() { Ok(stored) } else { Err(said.message().to_owned()) }
}

pub(super) fn stamp(object: &Value) -> Value {
    let text = object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC].as_str().expect("a stamp");
    serde_json::from_str(text).expect("a stamp is JSON")
}

/// A stored object after an edit by a client that sends all of it.
pub(super) fn edit(stored: &Value, edit: impl FnOnce(&mut Value)) -> Result<Value, String> {
    let mut object = stored.clone();
    edit(&mut object);
    write(&object, stored)
}

pub(super) fn set_flavor(object: &mut Value, flavor: &str) {
    object["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"][1]["env"][0]["value"] =
        json!(flavor);
}

#[track_caller]
pub(super) fn refused(written: Result<Value, String>, rule: &str) {
    let said = written.expect_err("this had to be refused");
    assert!(said.contains(&format!("[{rule}]")), "{said}");
}

#[test]
fn a_new_object_is_stamped_with_what_it_says() {
    let stored = write(&plane(EX, true), &Value::Null).unwrap();
    let stamp = stamp(&stored);
    let mut live = plane(EX, false)["spec"].clone();
    assert_eq!(stamp["spec"], live);
    assert_eq!(stamp["flavor"], EX);
    assert_eq!(stamp["hash"], json!(SpecHash::of(&live.take().to_string())));
    assert_eq!((&stamp["uid"], &stamp["selector"]), (&Value::Null, &Value::Null));
}

#[test]
fn without_a_strategy_a_change_is_live_at_once() {
    let stored = write(&plane(T, false), &Value::Null).unwrap();
    let changed = edit(&stored, |object| set_flavor(object, TC)).unwrap();
    assert_eq!(stamp(&changed)["spec"], changed["spec"]);
    assert_eq!((&stamp(&changed)["flavor"], &stamp(&changed)["uid"]), (&json!(TC), &json!("uid-1")));
}

/// The bypass of the two hops: stage one, and start the next from there.
#[test]
fn a_staged_flavor_is_nothing_to_go_on_from() {
    let stored = write(&plane(T, true), &Value::Null).unwrap();
    let staged = edit(&stored, |object| set_flavor(object, TC)).unwrap();
    assert_eq!(stamp(&staged)["flavor"], T);
    assert_eq!(stamp(&staged)["spec"], plane(T, false)["spec"]);
    refused(edit(&staged, |object| set_flavor(object, EX)), "RF06");
    let loose =
        |object: &mut Value| drop(object["spec"]["deployment"].as_object_mut().unwrap().remove("rollout"));
    refused(edit(&staged, loose), "RF07");
    // Other fields stay editable; those that do not concern the pods are live at once.
    let scaled = edit(&staged, |object| object["spec"]["deployment"]["replicas"] = json!(5)).unwrap();
    assert_eq!(stamp(&scaled)["spec"]["deployment"]["replicas"], 5);
    assert_eq!(stamp(&scaled)["flavor"], T);
    // Going back is always allowed, and the next hop starts from the live spec.
    let back = edit(&scaled, |object| set_flavor(object, T)).unwrap();
    refused(edit(&back, |object| set_flavor(object, EX)), "RF03");
    edit(&edit(&back, |object| set_flavor(object, TC)).unwrap(), loose).unwrap_err();
}

/// A pod template too large for the last-applied annotation.
fn large(mut plane: Value) -> Value {
    plane["spec"]["deployment"]["podTemplateSpec"]["metadata"] =
        json!({"annotations": {"filler": "x".repeat(40 * 1024)}});
    plane
}

/// The same with a large spec, to which the annotation only refers.
#[test]
fn a_staged_flavor_is_nothing_to_go_on_from_either_where_the_spec_is_large() {
    let stored = write(&large(plane(T, true)), &Value::Null).unwrap();
    let mut live = large(plane(T, false))["spec"].take();
    assert_eq!(
        (&stamp(&stored)["spec"], &stamp(&stored)["ref"]),
        (&Value::Null, &json!("ControllerRevision"))
    );
    assert_eq!(stamp(&stored)["hash"], json!(SpecHash::of(&live.take().to_string())));
    let staged = edit(&stored, |object| set_flavor(object, TC)).unwrap();
    assert_eq!((&stamp(&staged)["flavor"], &stamp(&staged)["hash"]), (&json!(T), &stamp(&stored)["hash"]));
    refused(edit(&staged, |object| set_flavor(object, EX)), "RF06");
    let loose =
        |object: &mut Value| drop(object["spec"]["deployment"].as_object_mut().unwrap().remove("rollout"));
    refused(edit(&staged, loose), "RF07");
    let scaled = edit(&staged, |object| object["spec"]["deployment"]["replicas"] = json!(5)).unwrap();
    refused(edit(&scaled, |object| set_flavor(object, EX)), "RF06");
    let back = edit(&scaled, |object| set_flavor(object, T)).unwrap();
    refused(edit(&back, |object| set_flavor(object, EX)), "RF03");
    // A spec that shrinks is inline again once it is live.
    let small = edit(&back, |object| object["spec"] = plane(T, false)["spec"].clone()).unwrap();
    assert_eq!(stamp(&small)["spec"], plane(T, false)["spec"]);
}

/// Annotations of others may leave no space even for a small spec.
#[test]
fn nor_where_the_annotations_leave_no_room_for_the_spec() {
    let mut object = plane(T, true);
    object["metadata"]["annotations"] = json!({"crowd": "x".repeat(192 * 1024)});
    let stored = write(&object, &Value::Null).unwrap();
    assert_eq!(stamp(&stored)["ref"], "ControllerRevision");
    let staged = edit(&stored, |object| set_flavor(object, TC)).unwrap();
    refused(edit(&staged, |object| set_flavor(object, EX)), "RF06");
}

/// A DataPlane with a large spec, a staged flavor, and these annotation members beside the hash.
fn staged_with(members: &[&str]) -> Value {
    let stored = write(&large(plane(T, true)), &Value::Null).unwrap();
    let mut staged = edit(&stored, |object| set_flavor(object, TC)).unwrap();
    let mut text = stamp(&staged);
    text.as_object_mut().unwrap().retain(|member, _| {
        ["v", "hash", "ref", "uid", "selector"].contains(&member.as_str())
            || members.contains(&member.as_str())
    });
    staged["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(text.to_string());
    staged
}

/// Changes the staged flavor to `expressions`, given further known objects.
fn next_hop(staged: &Value, objects: &[Value]) -> Said {
    let mut object = staged.clone();
    set_flavor(&mut object, EX);
    let view = || {
        let mut view = StaticLister::of(crate::all());
        objects.iter().for_each(|object| view.add(object, "kong").unwrap());
        view
    };
    let object = ask_with(view(), WebhookEndpoint::Mutate, &object, staged).object;
    ask_with(view(), WebhookEndpoint::Validate, &object, staged)
}

/// Where what the flavor is read from is too large, there is only the flavor.
#[rstest]
#[case::by_the_excerpt(&["flavorSpec"])]
#[case::by_the_flavor(&["flavor"])]
fn a_reference_tells_what_is_live(#[case] members: &[&str]) {
    let said = next_hop(&staged_with(members), &[]);
    assert!(said.message().contains("[RF06]"), "{said:?}");
}

const UNKNOWN: &str = "cannot determine what the pods of DataPlane kong/edge run with: the live spec is kept in ControllerRevision kong/edge-uid-1-HASH-0, which is not seen here; ask them (`interlock flavor diagnose`) [RF10]";

/// If neither is known, the change is not compared with the staged spec, and a warning says so.
#[test]
fn a_bare_reference_is_unknown_until_its_revision_is_given() {
    let staged = staged_with(&[]);
    let said = next_hop(&staged, &[]);
    assert!(said.allowed(), "{said:?}");
    let live = large(plane(T, false))["spec"].to_string();
    let hash = SpecHash::of(&live);
    let warned = said.warnings().into_iter().any(|text| text.replace(hash.short(), "HASH").contains(UNKNOWN));
    assert!(warned, "{said:?}");
    let key = NamespacedName::new("kong", "edge");
    let owner = RevisionOwner {
        api_version: "gateway-operator.konghq.com/v1beta1",
        kind: "DataPlane",
        key: &key,
        uid: "uid-1",
        revision: 1,
    };
    let revisions = parts(&owner, &hash, &live).unwrap();
    let said = next_hop(&staged, &revisions);
    assert!(said.message().contains("[RF06]"), "{said:?}");
}

/// The sources of the live pods stay known while something else is staged.
#[test]
fn the_sources_of_live_pods_are_known_of_a_reference() {
    let mut object = large(plane(T, true));
    let env = &mut object["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"][1]["env"][0];
    *env =
        json!({"name": "KONG_ROUTER_FLAVOR", "valueFrom": {"configMapKeyRef": {"name": "live", "key": "f"}}});
    let stored = write(&object, &Value::Null).unwrap();
    let staged = edit(&stored, |object| object["spec"] = large(plane(TC, true))["spec"].clone()).unwrap();
    let sources: Vec<String> = sources_of(&staged).iter().map(ToString::to_string).collect();
    assert_eq!(sources, ["ConfigMap kong/live"]);
}

/// A write of something else does not take up what the source has become: the live pods do not, either.
#[rstest]
#[case::staged(true, T)]
#[case::in_place(false, EX)]
fn the_flavor_of_a_source_stays_what_is_live(#[case] staged: bool, #[case] flavor: &str) {
    let mut stored = plane(T, staged);
    let env = &mut stored["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"][1]["env"][0];
    *env =
        json!({"name": "KONG_ROUTER_FLAVOR", "valueFrom": {"configMapKeyRef": {"name": "live", "key": "f"}}});
    let mut stored = write(&stored, &Value::Null).unwrap();
    let selector = Colour::Blue.selector("uid-1");
    stored["status"] = json!({"selector": selector});
    let mut recorded = stamp(&stored);
    (recorded["selector"], recorded["flavor"]) = (json!(selector), json!(T));
    recorded["uid"] = json!("uid-1");
    stored["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(recorded.to_string());
    let mut view = StaticLister::of(crate::all());
    let metadata = json!({"name": "live", "namespace": "kong"});
    view.add(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"f": EX}}), "")
        .unwrap();
    let mut scaled = stored.clone();
    scaled["spec"]["deployment"]["replicas"] = json!(5);
    let said = ask_with(view, WebhookEndpoint::Mutate, &scaled, &stored);
    assert_eq!(stamp(&said.object)["spec"]["deployment"]["replicas"], 5);
    assert_eq!(stamp(&said.object)["flavor"], flavor);
}

/// Kong's operator changes `status.selector` on each promotion.
#[test]
fn a_promotion_makes_what_is_stored_live() {
    let mut stored = write(&plane(T, true), &Value::Null).unwrap();
    stored["status"] = json!({"selector": "blue-1"});
    let mut staged = edit(&stored, |object| set_flavor(object, TC)).unwrap();
    assert_eq!((&stamp(&staged)["flavor"], &stamp(&staged)["selector"]), (&json!(T), &json!("blue-1")));
    refused(edit(&staged, |object| set_flavor(object, EX)), "RF06");
    staged["status"] = json!({"selector": "green-2"});
    let next = edit(&staged, |object| set_flavor(object, EX)).unwrap();
    assert_eq!((&stamp(&next)["flavor"], &stamp(&next)["selector"]), (&json!(TC), &json!("green-2")));
}

/// Interlock writes the stamp with the preview's selector first, and the status follows: a user's write
/// between any two of these writes keeps what is live.
#[test]
fn a_promotion_of_interlocks_is_kept_between_its_writes() {
    let status = |selector: &str, preview: &str| json!({"selector": selector, "rollout": {"deployment": {"selector": preview}}});
    let mut stored = write(&plane(T, true), &Value::Null).unwrap();
    stored["status"] = status("blue-111", "green-22");
    let staged = edit(&stored, |object| set_flavor(object, TC)).unwrap();
    assert_eq!(stamp(&staged)["selector"], "blue-111");
    // The commit.
    let mut committed = staged;
    let mut text = stamp(&committed);
    text["selector"] = json!("green-22");
    text["flavor"] = json!(TC);
    text["spec"] = plane(TC, false)["spec"].clone();
    text["hash"] = json!(SpecHash::of(&text["spec"].to_string()));
    committed["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(text.to_string());
    for (selector, preview) in [("blue-111", "green-22"), ("green-22", "green-22"), ("green-22", "blue-111")]
    {
        committed["status"] = status(selector, preview);
        let labelled =
            edit(&committed, |object| object["metadata"]["annotations"]["a"] = json!("b")).unwrap();
        assert_eq!(stamp(&labelled), text, "{selector}");
        let next = edit(&committed, |object| set_flavor(object, EX)).unwrap();
        assert_eq!((&stamp(&next)["selector"], &stamp(&next)["flavor"]), (&json!("green-22"), &json!(TC)));
        refused(edit(&next, |object| set_flavor(object, T)), "RF06");
    }
    // Another operator has promoted since.
    committed["status"] = status("another-1", "green-33");
    let next = edit(&committed, |object| object["metadata"]["annotations"]["a"] = json!("b")).unwrap();
    assert_eq!(stamp(&next)["selector"], "another-1");
}

#[rstest]
#[case::forged(Some(json!({"v": 1, "hash": SpecHash::of("{}"), "spec": {}, "flavor": EX}).to_string()), 1)]
#[case::nonsense(Some("x".to_owned()), 1)]
#[case::left_out(None, 0)]
fn nobody_writes_the_stamp(#[case] text: Option<String>, #[case] warnings: usize) {
    let stored = write(&plane(T, true), &Value::Null).unwrap();
    let mut object = stored.clone();
    match &text {
        Some(text) => object["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(text),
        None => drop(object["metadata"].as_object_mut().unwrap().remove("annotations")),
    }
    let said = ask(WebhookEndpoint::Mutate, &object, &stored);
    assert_eq!(stamp(&said.object)["spec"], stamp(&stored)["spec"]);
    assert_eq!(said.warnings().len(), warnings, "{said:?}");
    // The mutating webhook was not called, or another one ran after it.
    let said = ask(WebhookEndpoint::Validate, &object, &stored);
    assert!(said.message().contains("[stamp-mismatch]"), "{said:?}");
    // A new object copied with the annotation of another gets its own.
    let copied = write(&object, &Value::Null).unwrap();
    assert_eq!(stamp(&copied)["flavor"], T);
}

/// An annotation of another object, or with another hash, is invalid: the stored spec is live.
#[rstest]
#[case::of_another_object(|stamp: &mut Value| stamp["uid"] = json!("uid-2"))]
#[case::of_another_spec(|stamp: &mut Value| stamp["hash"] = json!(SpecHash::of("{}")))]
#[case::of_another_format(|stamp: &mut Value| stamp["v"] = json!(2))]
fn a_stamp_that_does_not_fit_is_made_anew(#[case] spoil: fn(&mut Value)) {
    let stored = write(&plane(TC, true), &Value::Null).unwrap();
    let mut spoiled = stamp(&stored);
    spoiled["spec"] = plane(T, false)["spec"].clone();
    spoiled["flavor"] = json!(T);
    spoiled["hash"] = json!(SpecHash::of(&spoiled["spec"].to_string()));
    spoil(&mut spoiled);
    let mut old = stored.clone();
    old["metadata"]["annotations"][meta::LAST_APPLIED_SPEC] = json!(spoiled.to_string());
    let next = edit(&old, |object| set_flavor(object, EX)).unwrap();
    assert_eq!(stamp(&next)["flavor"], TC);
}

#[test]
fn an_object_from_before_stays_editable() {
    let mut old = plane("atc", false);
    old["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"][1]["env"] = json!([
        {"name": "KONG_ROUTER_FLAVOR", "value": "atc"}, {"name": "KONG_DATABASE", "value": "postgres"}]);
    old["metadata"]["uid"] = json!("uid-1");
    let scaled = edit(&old, |object| object["spec"]["deployment"]["replicas"] = json!(1)).unwrap();
    assert_eq!(stamp(&scaled)["flavor"], Value::Null);
    refused(write(&old, &Value::Null), "dataplane-database");
    refused(edit(&scaled, |object| object["spec"] = json!({})), "dataplane-image");
}

#[test]
fn an_override_holds_for_one_change_and_once() {
    let key = meta::ALLOW_FLAVOR;
    let stored = write(&plane(EX, false), &Value::Null).unwrap();
    let asked = |text: &str| {
        let mut object = stored.clone();
        set_flavor(&mut object, T);
        object["metadata"]["annotations"][key] = json!(text);
        ask(WebhookEndpoint::Mutate, &object, &stored).object
    };
    let said = ask(WebhookEndpoint::Validate, &asked("expressions->traditional"), &stored);
    let hint = said.warnings().into_iter().find(|w| w.contains(key)).expect("what to write").to_owned();
    let exact = hint.split('"').nth(1).expect("the exact text");
    let said = ask(WebhookEndpoint::Validate, &asked(exact), &stored);
    assert!(said.allowed(), "{said:?}");
    assert!(said.record.rules.contains(&"RF19"), "{:?}", said.record.rules);
    let mut used = asked(exact);
    used["metadata"]["generation"] = json!(2);
    // Back in two hops, and the same change again, with the annotation still present.
    let back = ["traditional_compatible", EX]
        .into_iter()
        .fold(used, |stored, flavor| edit(&stored, |object| set_flavor(object, flavor)).unwrap());
    assert_eq!(back["spec"], stored["spec"]);
    refused(edit(&back, |object| set_flavor(object, T)), "RF03");
}

fn specs() -> impl Strategy<Value = Value> {
    let flavor = prop::sample::select(vec![T, TC, EX, "atc", ""]);
    let selector = || prop::option::of(prop::sample::select(vec!["blue-1", "green-2"]));
    let large = prop::sample::select(vec![0_usize, 0, 40_000]);
    (flavor, any::<bool>(), 0..3_i32, selector(), selector(), large, any::<bool>()).prop_map(
        |(flavor, staged, replicas, selector, preview, large, annotated)| {
            let mut object = plane(flavor, staged);
            object["spec"]["deployment"]["replicas"] = json!(replicas);
            object["spec"]["deployment"]["podTemplateSpec"]["metadata"] =
                json!({"annotations": {"filler": "x".repeat(large)}});
            object["status"] =
                json!({"selector": selector, "rollout": {"deployment": {"selector": preview}}});
            if annotated {
                object["metadata"]["annotations"] = json!({"a": "b"});
            }
            object
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After any writes, a repeated mutation changes nothing, and validation accepts its annotation.
    #[test]
    fn mutation_is_idempotent(writes in prop::collection::vec(specs(), 1..5)) {
        let mut stored = Value::Null;
        for mut object in writes {
            if let Some(status) = stored.get("status") {
                object["status"] = status.clone();
            }
            let mutated = ask(WebhookEndpoint::Mutate, &object, &stored).object;
            let again = ask(WebhookEndpoint::Mutate, &mutated, &stored);
            prop_assert_eq!(&again.patch, &Value::Null);
            let said = ask(WebhookEndpoint::Validate, &mutated, &stored);
            prop_assert!(!said.message().contains("[stamp-mismatch]"), "{:?}", said);
            if said.allowed() {
                stored = mutated;
                stored["metadata"]["uid"] = json!("uid-1");
            }
        }
    }
}
