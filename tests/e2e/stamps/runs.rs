//! A run goes on from its stamp, inline or kept in ControllerRevisions, whatever the spec says by then.

use interlock_core::api::meta;
use serde_json::{Value, json};

use super::edges::{ANNOTATIONS_MAX, crowd};
use super::{CAP, Ground, KB, noise, sha256, summary};
use crate::support::{Cluster, Interlock, announce, wait_until};

/// An Instance of which plan deploy waits at its gate.
fn gated(ground: &Ground<'_>, name: &str, blob: &str) -> Value {
    ground.user.post(&ground.path(""), &ground.manifest(name, blob, true)).ok();
    ground.await_gate(name)
}

/// An edit that admission does not see, and would refuse: the bookkeeping user is skipped.
fn edit_unseen(ground: &Ground<'_>, name: &str) {
    let edit = json!({"spec": {"parameters": {"BLOB": "unseen", "NONE": "unknown"}}});
    ground.bare.merge_patch(&ground.path(name), &edit).ok();
}

/// The run ended on what it was started with; the edit is told of, and carried out once it is
/// mended.
fn assert_stamp_was_carried_out(ground: &Ground<'_>, name: &str, before: &Value, blob: &str) {
    let done = ground.await_carried_out(name, "deploy", blob);
    let run = |found: &Value| found["status"]["planStatus"]["deploy"]["uid"].clone();
    assert_eq!(run(&done), run(before), "one run");
    wait_until("the edit is told of", CAP, || {
        let found = ground.user.read(&ground.path(name)).ok();
        let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let drift = conditions.into_iter().find(|c| c["type"] == "SpecDrift").unwrap_or_default();
        let told = drift["status"] == "True" && drift["reason"] == "ParameterUnknown";
        if told { Ok(()) } else { Err(summary(&found)) }
    });
    let mended = json!({"spec": {"parameters": {"NONE": null}}});
    ground.user.merge_patch(&ground.path(name), &mended).ok();
    ground.await_carried_out(name, "update", "unseen");
}

#[test]
fn an_edit_past_admission_leaves_a_run_on_its_stamp() {
    let (cluster, _) = Interlock::shared();
    let ground = Ground::new(cluster);
    for kb in [20, 40] {
        let (name, blob) = (format!("unseen{kb}"), noise(kb * KB, 1));
        let before = gated(&ground, &name, &blob);
        edit_unseen(&ground, &name);
        ground.open_gate(&name);
        assert_stamp_was_carried_out(&ground, &name, &before, &blob);
    }
}

/// A stamp that gave way to somebody's annotation in mid-run: a ControllerRevision takes its place.
#[test]
fn a_stamp_that_gives_way_in_mid_run_is_kept_in_a_controller_revision() {
    let (cluster, _) = Interlock::shared();
    let ground = Ground::new(cluster);
    let blob = noise(20 * KB, 1);
    let before = gated(&ground, "crowded", &blob);
    let mut crowded = json!({"metadata": {"annotations": {}}});
    crowd(&mut crowded, ANNOTATIONS_MAX - 2 * KB);
    ground.user.merge_patch(&ground.path("crowded"), &crowded).ok();
    wait_until("the spec is kept", CAP, || {
        let parts = ground.revisions(&before).len();
        if parts == 1 { Ok(()) } else { Err(format!("{parts} ControllerRevisions")) }
    });
    edit_unseen(&ground, "crowded");
    ground.open_gate("crowded");
    assert_stamp_was_carried_out(&ground, "crowded", &before, &blob);
}

/// Killed in mid-run, with the spec edited before it is back.
#[test]
fn a_successor_goes_on_from_the_stamp() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    let ground = Ground::new(&cluster);
    let sizes: &[usize] = match std::env::var_os("INTERLOCK_SOAK") {
        None => &[20, 40, 400],
        Some(_) => &[1, 20, 31, 33, 64, 128, 400, 700, 1000, 1400],
    };
    for &kb in sizes {
        let (name, blob) = (format!("killed{kb}"), noise(kb * KB, 1));
        let before = gated(&ground, &name, &blob);
        assert_eq!(ground.revisions(&before).is_empty(), kb < 32);
        process.kill();
        edit_unseen(&ground, &name);
        ground.open_gate(&name);
        process.start();
        process.await_ready();
        assert_stamp_was_carried_out(&ground, &name, &before, &blob);
        let after = ground.user.read(&ground.ns.path("v1", "configmaps", &format!("{name}-before"))).ok();
        let owner = &after["metadata"]["ownerReferences"][0];
        assert_eq!(owner["uid"], before["metadata"]["uid"]);
        assert_eq!(owner["apiVersion"], meta::KUDO_API_VERSION);
        assert_eq!(after["data"]["digest"], sha256("unseen"));
    }
    announce(&format!("{} runs were taken over by a successor, each on its stamp", sizes.len()));
}
