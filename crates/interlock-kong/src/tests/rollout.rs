//! Rollouts of DataPlanes: what is refused and warned about, through both webhooks.

use interlock_core::admission::WebhookEndpoint;
use interlock_core::api::meta;
use interlock_core::api::stamp::SpecHash;
use interlock_core::testing::Said;
use rstest::rstest;
use serde_json::{Value, json};

use super::data_plane::{T, TC, ask, edit, plane, refused, set_flavor, stamp, write};
use crate::data_plane::live_spec;
use crate::data_plane::rollout::staged_hash;

const OVERRIDE: &str = meta::SERVICE_SELECTOR_OVERRIDE;
const PROMOTE: &str = meta::PROMOTE_WHEN_READY;

fn annotated(mut object: Value, key: &str, value: &str) -> Value {
    object["metadata"]["annotations"][key] = json!(value);
    object
}

fn set_image(object: &mut Value, image: &str) {
    object["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"][1]["image"] = json!(image);
}

fn loose(object: &mut Value) {
    object["spec"]["deployment"].as_object_mut().unwrap().remove("rollout");
}

/// A DataPlane with an image that is staged.
fn staged() -> Value {
    let stored = write(&plane(TC, true), &Value::Null).unwrap();
    edit(&stored, |object| set_image(object, "kong:3.9.1")).unwrap()
}

/// What both webhooks say of a write.
fn said(object: &Value, old: &Value) -> Said {
    let mutated = ask(WebhookEndpoint::Mutate, object, old);
    ask(WebhookEndpoint::Validate, &mutated.object, old)
}

/// A refusal for the goldens.
pub(super) fn beside_an_override() -> Said {
    said(&annotated(plane(TC, true), OVERRIDE, "app=edge"), &Value::Null)
}

pub(super) fn unstaged() -> Said {
    let old = staged();
    let mut object = old.clone();
    loose(&mut object);
    said(&object, &old)
}

#[rstest]
#[case::in_place(annotated(plane(TC, false), OVERRIDE, "app=edge,tier=x"), true)]
#[case::malformed(annotated(plane(TC, false), OVERRIDE, "app"), false)]
#[case::empty(annotated(plane(TC, false), OVERRIDE, ""), false)]
#[case::beside_blue_green(annotated(plane(TC, true), OVERRIDE, "app=edge"), false)]
fn an_override_of_selectors(#[case] object: Value, #[case] allowed: bool) {
    let created = write(&object, &Value::Null);
    let before =
        write(&plane(TC, object["spec"]["deployment"]["rollout"].is_object()), &Value::Null).unwrap();
    let updated = edit(&before, |after| {
        after["metadata"]["annotations"][OVERRIDE] = object["metadata"]["annotations"][OVERRIDE].clone();
    });
    for written in [created, updated] {
        match allowed {
            true => drop(written.unwrap()),
            false => refused(written, "dataplane-selector"),
        }
    }
}

/// An object from before these rules stays editable, and blueGreen cannot be added to it.
#[test]
fn an_override_that_stands_is_not_said_again() {
    let mut malformed = annotated(plane(TC, false), OVERRIDE, "app");
    malformed["metadata"]["uid"] = json!("uid-1");
    let scaled = edit(&malformed, |object| object["spec"]["deployment"]["replicas"] = json!(1)).unwrap();
    refused(edit(&scaled, |object| object["spec"] = plane(TC, true)["spec"].clone()), "dataplane-selector");
    let mut beside = annotated(plane(TC, true), OVERRIDE, "app=edge");
    beside["metadata"]["uid"] = json!("uid-1");
    edit(&beside, |object| set_image(object, "kong:3.9.1")).unwrap();
}

#[test]
fn what_is_staged_does_not_reach_the_live_pods_by_removing_the_rollout() {
    let staged = staged();
    refused(edit(&staged, loose), "dataplane-staged");
    let set = |object: &mut Value, image: &str| {
        loose(object);
        set_image(object, image);
    };
    refused(edit(&staged, |object| set(object, "kong:3.9.2")), "dataplane-staged");
    refused(edit(&staged, |object| object["spec"]["deployment"]["rollout"] = json!({})), "dataplane-staged");
    // With the live spec, also scaled at the same time, it may go.
    edit(&staged, |object| set(object, "kong:3.9")).unwrap();
    edit(&staged, |object| {
        set(object, "kong:3.9");
        object["spec"]["deployment"]["replicas"] = json!(7);
    })
    .unwrap();
    // Nothing is staged.
    let back = edit(&staged, |object| set_image(object, "kong:3.9")).unwrap();
    edit(&back, loose).unwrap();
    edit(&back, |object| set(object, "kong:3.9.2")).unwrap();
    // The metadata may change in any case.
    edit(&staged, |object| object["metadata"]["annotations"]["a"] = json!("b")).unwrap();
}

#[test]
fn a_large_spec_is_kept_from_the_live_pods_as_well() {
    let large = |mut object: Value| {
        object["spec"]["deployment"]["podTemplateSpec"]["metadata"] =
            json!({"annotations": {"filler": "x".repeat(40 * 1024)}});
        object
    };
    let stored = write(&large(plane(TC, true)), &Value::Null).unwrap();
    let staged = edit(&stored, |object| set_image(object, "kong:3.9.1")).unwrap();
    refused(edit(&staged, loose), "dataplane-staged");
    edit(&staged, |object| object["spec"] = large(plane(TC, false))["spec"].clone()).unwrap();
    edit(&stored, loose).unwrap();
    // Of a change beside the proxy the stamp does not tell.
    let beside = edit(&stored, |object| object["spec"]["extensions"] = json!([{"name": "x"}])).unwrap();
    let mut object = beside.clone();
    loose(&mut object);
    let found = said(&object, &beside);
    assert!(found.allowed() && found.warnings()[0].ends_with("[dataplane-staged]"), "{found:?}");
}

/// The number of pods of a large spec is live at once, and so is part of what the stamp refers to.
#[test]
fn a_scaled_large_spec_stages_nothing() {
    let mut object = plane(TC, true);
    object["spec"]["deployment"]["podTemplateSpec"]["metadata"] =
        json!({"annotations": {"filler": "x".repeat(40 * 1024)}});
    let stored = write(&object, &Value::Null).unwrap();
    let scaled = edit(&stored, |object| object["spec"]["deployment"]["replicas"] = json!(7)).unwrap();
    assert_eq!(stamp(&scaled)["hash"], json!(live_spec::hash(&scaled["spec"])));
    let staged = edit(&scaled, |object| set_image(object, "kong:3.9.1")).unwrap();
    assert_eq!(stamp(&staged)["hash"], stamp(&scaled)["hash"]);
}

/// The rule about flavors says more of a staged flavor.
#[test]
fn a_staged_flavor_is_refused_by_its_own_rule() {
    let stored = write(&plane(T, true), &Value::Null).unwrap();
    let staged = edit(&stored, |object| set_flavor(object, TC)).unwrap();
    let mut object = staged.clone();
    loose(&mut object);
    let said = said(&object, &staged);
    said.assert_refused("RF07", "removing spec.deployment.rollout now");
    assert!(said.message().contains("`interlock rollout promote edge -n kong`"), "{}", said.message());
}

const NONSENSE: &str = "is neither true nor a hash";
const NOTHING: &str = "nothing is staged";
const ANOTHER: &str = "is for another spec";

#[rstest]
#[case::kong("true", None)]
#[case::this(&staged_hash(&staged()["spec"]).to_string(), None)]
#[case::another(&SpecHash::of("x").to_string(), Some(ANOTHER))]
#[case::nonsense("yes", Some(NONSENSE))]
fn requests_for_a_promotion(#[case] value: &str, #[case] warning: Option<&str>) {
    let staged = staged();
    let asked = annotated(staged.clone(), PROMOTE, value);
    let first = said(&asked, &staged);
    assert!(first.allowed(), "{first:?}");
    match warning {
        None => assert_eq!(first.warnings(), Vec::<&str>::new()),
        Some(part) => {
            assert!(first.warnings()[0].contains(part), "{first:?}");
            assert!(first.warnings()[0].ends_with("[dataplane-promotion]"), "{first:?}");
        }
    }
    // What stands is not said again.
    let labelled = annotated(asked.clone(), "a", "b");
    assert_eq!(said(&labelled, &asked).warnings(), Vec::<&str>::new());
    // Of an edit it is said what becomes of the request.
    let mut edited = asked.clone();
    set_image(&mut edited, "kong:3.9.2");
    let expected = match value {
        "true" => Some("is true: this change is promoted as soon as it is ready"),
        "yes" => None,
        _ if warning.is_none() => Some(ANOTHER),
        _ => None,
    };
    let said = said(&edited, &asked);
    assert_eq!(said.warnings().len(), usize::from(expected.is_some()), "{said:?}");
    assert!(expected.is_none_or(|part| said.warnings()[0].contains(part)), "{said:?}");
}

#[rstest]
#[case::idle(write(&plane(TC, true), &Value::Null).unwrap(), "true")]
#[case::in_place(write(&plane(TC, false), &Value::Null).unwrap(), "true")]
#[case::hash(write(&plane(TC, true), &Value::Null).unwrap(), &SpecHash::of("x").to_string())]
fn a_request_with_nothing_staged(#[case] stored: Value, #[case] value: &str) {
    let found = said(&annotated(stored.clone(), PROMOTE, value), &stored);
    assert!(found.warnings()[0].contains(NOTHING), "{found:?}");
    let created = said(&annotated(plane(TC, true), PROMOTE, value), &Value::Null);
    assert!(created.warnings()[0].contains(NOTHING), "{created:?}");
}

#[test]
fn a_fixed_name_of_the_service_beside_blue_green() {
    let named = |staged: bool| {
        let mut object = plane(TC, staged);
        object["spec"]["network"] = json!({"services": {"ingress": {"name": "edge"}}});
        object
    };
    let found = said(&named(true), &Value::Null);
    assert!(found.warnings()[0].ends_with("[dataplane-service-name]"), "{found:?}");
    assert_eq!(said(&named(false), &Value::Null).warnings(), Vec::<&str>::new());
    let stored = write(&named(true), &Value::Null).unwrap();
    let mut scaled = stored.clone();
    scaled["spec"]["deployment"]["replicas"] = json!(5);
    assert_eq!(said(&scaled, &stored).warnings(), Vec::<&str>::new());
    let before = write(&named(false), &Value::Null).unwrap();
    let found = said(&named(true), &before);
    assert!(
        found.warnings()[0].contains("Kong's operator gives the preview's Service the same name"),
        "{found:?}"
    );
}

#[rstest]
#[case::number("3", false)]
#[case::text("ten", true)]
#[case::negative("-1", true)]
#[case::too_many("51", true)]
fn a_limit_of_the_history(#[case] value: &str, #[case] warned: bool) {
    let stored = write(&plane(TC, true), &Value::Null).unwrap();
    let limited = annotated(stored.clone(), meta::REVISION_HISTORY_LIMIT, value);
    let found = said(&limited, &stored);
    assert!(found.allowed(), "{found:?}");
    let expected = format!(
        "annotation interlock.dev/revision-history-limit is \"{value}\": write a number from 0 to 50; 10 revisions are kept \
         until then [dataplane-history-limit]"
    );
    assert_eq!(found.warnings(), if warned { vec![expected.as_str()] } else { vec![] });
    let labelled = annotated(limited.clone(), "a", "b");
    assert_eq!(said(&labelled, &limited).warnings(), Vec::<&str>::new(), "what stands is not said again");
}

#[rstest]
#[case::time("10m", false)]
#[case::word("soon", true)]
#[case::negative("-1m", true)]
fn the_time_that_the_former_side_is_kept(#[case] value: &str, #[case] warned: bool) {
    let stored = write(&plane(TC, true), &Value::Null).unwrap();
    let found = said(&annotated(stored.clone(), meta::PROMOTION_GRACE_PERIOD, value), &stored);
    assert!(found.allowed(), "{found:?}");
    let expected = format!(
        "annotation interlock.dev/promotion-grace-period is \"{value}\": write a time such as 10m; the former side is kept \
         for 30 s until then [dataplane-promotion]"
    );
    assert_eq!(found.warnings(), if warned { vec![expected.as_str()] } else { vec![] });
}

#[test]
fn an_automatic_promotion_is_warned_of_where_it_is_written() {
    let automatic = |object: &mut Value| {
        object["spec"]["deployment"]["rollout"]["strategy"]["blueGreen"] =
            json!({"promotion": {"strategy": "AutomaticPromotion"}});
    };
    let mut made = plane(TC, true);
    automatic(&mut made);
    let first = said(&made, &Value::Null);
    assert!(first.allowed() && first.warnings()[0].contains("Kong's own definition"), "{first:?}");
    let stored = write(&made, &Value::Null).unwrap();
    let mut next = stored.clone();
    set_image(&mut next, "kong:3.9.1");
    assert_eq!(said(&next, &stored).warnings(), Vec::<&str>::new(), "what stands is not said again");
}
