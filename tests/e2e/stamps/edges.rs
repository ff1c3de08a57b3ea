//! Annotations up to the last byte that the API server takes: what is ours gives way.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Ground, KB, Way, noise};
use crate::support::{Interlock, announce};

/// Text around an object of our own making, so that all annotations together have this size.
pub fn crowd(object: &mut Value, total: usize) {
    let found = object["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
    let others: usize = found
        .iter()
        .filter(|(key, _)| *key != "example.com/crowd")
        .map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len())
        .sum();
    let key = "example.com/crowd";
    object["metadata"]["annotations"][key] = json!(noise(total - others - key.len(), 7));
}

/// The largest annotations that the API server takes.
pub const ANNOTATIONS_MAX: usize = 256 * KB;

/// A user may use the room of the annotations up to the last byte, before and after a run of
/// ours: what is ours gives way.
#[rstest]
#[case::small(1)]
#[case::inline(31)]
#[case::kept_elsewhere(33)]
fn annotations_that_fill_the_room_are_taken(#[case] kb: usize) {
    let (cluster, _) = Interlock::shared();
    let ground = Ground::new(cluster);
    let blob = noise(kb * KB - 200, 1);
    let path = ground.path("full");
    let mut object = ground.manifest("full", &blob, false);
    object["metadata"]["annotations"] = json!({});
    crowd(&mut object, ANNOTATIONS_MAX);
    ground.send(&ground.bare, Way::CreateAndPut, &object, None, true).expect("the API server alone takes it");
    ground.user.post(&ground.path(""), &object).ok();
    ground.await_carried_out("full", "deploy", &blob);
    // One byte more is too much for the API server, and one byte less for nobody.
    let mut more = object.clone();
    crowd(&mut more, ANNOTATIONS_MAX + 1);
    let crowded = json!({"metadata": {"annotations": more["metadata"]["annotations"]}});
    assert!(ground.user.merge_patch(&path, &crowded).message().contains("Too long"));

    // Room again: an edit runs, and is stamped.
    let blob = noise(kb * KB - 200, 2);
    let fewer = json!({
        "metadata": {"annotations": {"example.com/crowd": null}},
        "spec": {"parameters": {"BLOB": blob}},
    });
    ground.user.merge_patch(&path, &fewer).ok();
    let done = ground.await_carried_out("full", "update", &blob);
    assert_eq!(ground.assert_stamped(&done, kb * KB), kb < 32);

    // Full again, by an annotation alone, and by an edit beside it.
    ground
        .user
        .merge_patch(&path, &json!({"metadata": {"annotations": object["metadata"]["annotations"]}}))
        .ok();
    let blob = noise(kb * KB - 200, 3);
    let done = ground.user.read(&path).ok();
    let kept = &object["metadata"]["annotations"];
    assert_eq!(done["metadata"]["annotations"]["example.com/crowd"], kept["example.com/crowd"]);
    ground.user.merge_patch(&path, &json!({"spec": {"parameters": {"BLOB": blob}}})).ok();
    ground.await_carried_out("full", "update", &blob);
}

/// The largest manifest that client-side apply takes without us, to a few bytes, it takes with us.
#[test]
fn the_largest_client_side_apply_is_taken() {
    let (cluster, _) = Interlock::shared();
    let ground = Ground::new(cluster);
    let fits = |length: usize| {
        let object = ground.manifest("edge", &noise(length, 1), false);
        ground.send(&ground.bare, Way::Apply, &object, None, true).is_ok()
    };
    let (mut below, mut above) = (250_000, 262_144);
    assert!(fits(below) && !fits(above));
    while above - below > 1 {
        let middle = usize::midpoint(below, above);
        if fits(middle) { below = middle } else { above = middle }
    }
    let mut found = None;
    for (seed, plan) in [(1, "deploy"), (2, "update"), (3, "update")] {
        let blob = noise(below, seed);
        let object = ground.manifest("edge", &blob, false);
        let sent = ground.send(&ground.user, Way::Apply, &object, found.as_ref(), false);
        sent.unwrap_or_else(|why| panic!("{below} bytes, only because of us: {why}"));
        found = Some(ground.await_carried_out("edge", plan, &blob));
    }
    announce(&format!("client-side apply takes a parameter of {below} bytes, with and without us"));
}
