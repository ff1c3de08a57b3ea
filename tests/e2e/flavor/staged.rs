//! Changes that are staged: judged by what is live, which the stamp tells.

use std::time::Duration;

use interlock_core::api::revision;
use interlock_core::api::stamp::SpecHash;
use serde_json::{Value, json};

use super::{TC, data_plane, define_data_planes, env, goldens, meets};
use crate::support::{Interlock, wait_until};

fn plane(name: &str, flavor: &str, staged: bool) -> Value {
    data_plane(name, &env("kong:3.9", flavor), staged)
}

fn stopped(mut plane: Value) -> Value {
    plane["spec"]["deployment"]["replicas"] = json!(0);
    plane
}

/// A change after others that were accepted.
#[test]
fn what_is_staged_is_nothing_to_go_on_from() {
    let (cluster, _) = Interlock::shared();
    define_data_planes(cluster);
    let ns = cluster.namespace("flavor");
    let user = ns.user("alice");
    let (t, ex) = ("traditional", "expressions");
    let sequences = [
        ("RF06", vec![plane("rf06", t, true), plane("rf06", TC, true)], plane("rf06", ex, true)),
        ("RF07", vec![plane("rf07", t, true), plane("rf07", TC, true)], plane("rf07", TC, false)),
        ("restored", vec![plane("back", t, true), plane("back", TC, true)], plane("back", t, true)),
        (
            "RF03 after it",
            vec![plane("after", t, true), plane("after", TC, true), plane("after", t, true)],
            plane("after", ex, true),
        ),
        ("RF19", vec![stopped(plane("rf19", ex, false))], stopped(plane("rf19", t, false))),
    ];
    let mut met = Vec::new();
    for (title, before, after) in sequences {
        before.iter().for_each(|object| user.apply(&object.to_string()));
        met.push((title.to_owned(), meets(&user, ns.name(), &after)));
    }
    goldens("flavor-staged.txt", ns.name(), &met);
}

/// A pod template of 40 KB, to which the stamp only refers: judged by the live one all the same,
/// which a ControllerRevision keeps.
#[test]
fn a_large_spec_is_kept_and_judged_as_a_small_one() {
    let (cluster, _) = Interlock::shared();
    define_data_planes(cluster);
    let ns = cluster.namespace("flavor");
    let user = ns.user("alice");
    let large = |flavor: &str, staged: bool| {
        let mut plane = plane("large", flavor, staged);
        plane["spec"]["deployment"]["podTemplateSpec"]["metadata"] =
            json!({"annotations": {"filler": "x".repeat(40 * 1024)}});
        plane
    };
    user.apply(&large("traditional", true).to_string());
    let stored = user.get("dataplane", "large").expect("the DataPlane");
    let stamp =
        stored["metadata"]["annotations"]["interlock.dev/last-applied-spec"].as_str().expect("a stamp");
    let stamp: Value = serde_json::from_str(stamp).expect("JSON");
    assert_eq!((&stamp["ref"], &stamp["flavor"]), (&json!("ControllerRevision"), &json!("traditional")));
    let kept = wait_until("its live spec is kept", Duration::from_secs(60), || {
        let found = user.read(&ns.path("apps/v1", "controllerrevisions", "")).ok();
        let own = |part: &&Value| part["metadata"]["ownerReferences"][0]["uid"] == stored["metadata"]["uid"];
        let parts: Vec<_> = found["items"].as_array().into_iter().flatten().filter(own).cloned().collect();
        if parts.is_empty() { Err("no ControllerRevision".to_owned()) } else { Ok(parts) }
    });
    let data: Vec<_> = kept.iter().map(|part| revision::data(part).expect("its data")).collect();
    let text = revision::unpack(&data).expect("gzipped JSON");
    assert_eq!(stamp["hash"], json!(SpecHash::of(&text)));
    user.apply(&large(TC, true).to_string());
    let met = meets(&user, ns.name(), &large("expressions", true));
    assert!(met.kubectl.contains("[RF06]") && met.check.contains("[RF06]"), "{}\n{}", met.kubectl, met.check);
}
