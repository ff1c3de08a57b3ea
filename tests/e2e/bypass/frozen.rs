//! Every verb that can change the spec of a locked Instance.

use rstest::rstest;
use serde_json::json;

use super::writes::{WRITES, Write, forced_apply, json_patch, merge_patch, put, put_of_a_manifest};
use super::{Layers, essence, manifest, rule};

#[rstest]
#[case::put_is_refused("put", put)]
#[case::put_that_drops_everything_of_ours_is_refused("bare", put_of_a_manifest)]
#[case::json_patch_is_refused("json", json_patch)]
#[case::merge_patch_is_refused("merge", merge_patch)]
#[case::forced_server_side_apply_is_refused("ssa", forced_apply)]
fn a_change_of_a_frozen_spec_by(
    #[values(Layers::Both, Layers::Policies)] layers: Layers,
    #[case] base: &str,
    #[case] write: Write,
) {
    let ground = layers.ground(base);
    let before = ground.running("demo");
    let path = ground.path("demo");
    let values = |size: &str| json!({"GATED": "true", "SIZE": size});
    let answer = write(&ground.user, &path, &before, &values("large"));
    // The policies cannot put planExecution back, and that it is missing is what they tell.
    let dropped = base == "bare" && layers == Layers::Policies;
    let refused_by = if dropped { "plan-override" } else { "plan-running" };
    assert_eq!(rule(&answer), refused_by, "{answer}");
    assert_eq!(rule(&write(&ground.user, &path, &before, &json!({"GATED": "false"}))), refused_by);
    assert_eq!(essence(&ground.get("demo")), essence(&before));

    ground.open("demo");
    let done = ground.await_plan("demo", "deploy", "COMPLETE");
    assert_eq!(
        done["status"]["planStatus"]["deploy"]["uid"],
        before["status"]["planStatus"]["deploy"]["uid"]
    );
    if layers == Layers::Both {
        let answer = write(&ground.user, &path, &done, &values("large"));
        assert_eq!(answer.code, 200, "the same write when nothing runs: {answer}");
        ground.await_that("demo", "the change was carried out", |found| {
            found["status"]["planStatus"]["update"]["status"] == "COMPLETE"
                || found["status"]["planStatus"]["deploy"]["uid"]
                    != before["status"]["planStatus"]["deploy"]["uid"]
        });
    }
}

/// Removing the spec, or pointing it at another package.
#[rstest]
fn a_spec_taken_away_or_an_upgrade_is_refused(#[values(Layers::Both, Layers::Policies)] layers: Layers) {
    let (ground, before) = layers.frozen();
    let path = ground.path("demo");
    for patch in [
        json!({"spec": null}),
        json!({"spec": {"parameters": null}}),
        json!({"spec": {"operatorVersion": {"name": "meddling-0.1.0"}}}),
        json!({"spec": {"operatorVersion": null}}),
    ] {
        let answer = ground.user.merge_patch(&path, &patch);
        let refused_by = match (layers, patch["spec"].is_null()) {
            (Layers::Policies, true) => ["plan-override"].as_slice(),
            _ => &["plan-running", "version-missing"],
        };
        assert!(refused_by.contains(&rule(&answer).as_str()), "{patch}: {answer}");
    }
    assert_eq!(essence(&ground.get("demo")), essence(&before));
}

/// What changes nothing is admitted, whoever sends it and however: a re-sync cancels no plan.
#[test]
fn an_unchanged_manifest_is_admitted_by_every_verb_and_cancels_nothing() {
    let ground = Layers::Both.ground("resync");
    let before = ground.running("demo");
    let path = ground.path("demo");
    let values = before["spec"]["parameters"].clone();
    for write in WRITES {
        let found = ground.get("demo");
        let answer = write(&ground.user, &path, &found, &values);
        assert_eq!(answer.code, 200, "{answer}");
        assert_eq!(essence(&answer.body), essence(&before), "{answer}");
    }
    let text = manifest(&before).to_string();
    for verb in [
        &["apply", "-f", "-"][..],
        &["apply", "--server-side", "--force-conflicts", "-f", "-"],
        &["replace", "-f", "-"],
    ] {
        ground.user.kubectl_in(verb, &text).ok();
        assert_eq!(essence(&ground.get("demo")), essence(&before), "{verb:?}");
    }
    ground.open("demo");
    ground.await_plan("demo", "deploy", "COMPLETE");
}

/// With the webhook gone nothing can be put back: what leaves planExecution out is refused, what
/// keeps it is admitted.
#[test]
fn an_unchanged_manifest_without_plan_execution_is_refused_by_the_policies_alone() {
    let (ground, before) = Layers::Policies.frozen();
    let path = ground.path("demo");
    let values = before["spec"]["parameters"].clone();
    for write in [put, json_patch, merge_patch, forced_apply] {
        let answer = write(&ground.user, &path, &ground.get("demo"), &values);
        assert_eq!(answer.code, 200, "{answer}");
    }
    let answer = put_of_a_manifest(&ground.user, &path, &ground.get("demo"), &values);
    assert_eq!(rule(&answer), "plan-override");
    assert_eq!(essence(&ground.get("demo")), essence(&before));
}

/// CREATE by server-side apply is a CREATE: it schedules, stamps and gets our finalizer.
#[test]
fn creation_by_server_side_apply_is_admitted_as_a_creation() {
    let ground = Layers::Both.ground("ssa-create");
    let manifest = super::instance("demo", &json!({}));
    let path = format!("{}?fieldManager=argocd", ground.path("demo"));
    let made = ground.user.server_side_apply(&path, &manifest).ok();
    assert_eq!(made["spec"]["planExecution"]["planName"], "deploy", "{made:#}");
    assert_eq!(made["metadata"]["finalizers"], json!(["kudo.dev.instance.cleanup"]));
    assert!(made["metadata"]["annotations"]["interlock.dev/last-applied-spec"].is_string());
    ground.await_plan("demo", "deploy", "COMPLETE");
    // Its manager owns neither planExecution nor the stamp: the same again changes nothing.
    let again = ground.user.server_side_apply(&path, &manifest).ok();
    assert_eq!(again["spec"], ground.get("demo")["spec"]);
    let unknown = json!({"spec": {"operatorVersion": {"name": "gated-0.1.0"}, "parameters": {"NONE": "1"}}});
    let mut wrong = super::instance("wrong", &json!({}));
    wrong["spec"] = unknown["spec"].clone();
    let answer = ground.user.server_side_apply(&path.replace("/demo", "/wrong"), &wrong);
    assert_eq!(rule(&answer), "parameter-unknown");
}
