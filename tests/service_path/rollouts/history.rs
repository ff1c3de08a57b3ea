//! The history of a DataPlane on a real control plane, and the way back, by the commands that people use.

use std::time::Instant;

use super::*;

const PROMOTE: &str = "gateway-operator.konghq.com/promote-when-ready";

impl Ground {
    /// Number and image of each revision that `history` lists, the oldest first.
    fn revisions(&self) -> Vec<(i64, String)> {
        let listed: Value =
            serde_json::from_str(&self.rollout(&["history", "edge", "-o", "json"])).expect("JSON");
        let all = listed.as_array().expect("a list");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        all.iter().map(|r| (r["revision"].as_i64().expect("a number"), text(&r["image"]))).collect()
    }

    #[track_caller]
    fn await_revisions(&self, wanted: &[(i64, &str)]) {
        let wanted: Vec<(i64, String)> = wanted.iter().map(|(n, image)| (*n, (*image).to_owned())).collect();
        wait_until(&format!("the history is {wanted:?}"), CAP, || match self.revisions() {
            found if found == wanted => Ok(()),
            found => Err(format!("{found:?}")),
        });
    }

    /// Stages an image, and makes it live.
    fn promote(&self, image: &str) {
        self.stage(image);
        self.rollout(&["promote", "edge", "--wait"]);
        self.await_rolled_out("WaitingForChange");
    }

    fn annotate(&self, name: &str, value: &str) {
        let patch = json!({"metadata": {"annotations": {name: value}}});
        self.admin.merge_patch(&self.path("dataplanes", "edge"), &patch).ok();
    }

    fn written(&self) -> String {
        let found = self.data_plane();
        let containers = &found["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"];
        containers[0]["image"].as_str().expect("an image").to_owned()
    }
}

#[test]
fn a_rollout_is_undone() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    ground.produce();
    ground.create(spec("kong:3.8"));
    ground.await_rolled_out("WaitingForChange");
    ground.await_revisions(&[(1, "kong:3.8")]);
    ground.promote("kong:3.9");
    ground.annotate("kubernetes.io/change-cause", "the last release");
    ground.promote("kong:3.10");
    ground.await_revisions(&[(1, "kong:3.8"), (2, "kong:3.9"), (3, "kong:3.10")]);
    let listed = ground.rollout(&["history", "edge"]);
    eprintln!("{listed}");
    let lines: Vec<&str> = listed.lines().collect();
    assert!(lines[0].starts_with("REVISION"), "{listed}");
    assert!(lines[1].contains("former") && lines[1].ends_with("<none>"), "{listed}");
    assert!(lines[2].contains("former") && lines[2].ends_with("image: kong:3.8 -> kong:3.9"), "{listed}");
    assert!(lines[3].contains("live") && lines[3].ends_with("the last release"), "{listed}");
    eprintln!("{}", ground.rollout(&["history", "edge", "--revision", "2"]));
    one_goes_back_to_a_revision(&ground);
    a_history_has_a_limit(&ground);
    a_history_survives_the_death_of_the_process(&ground);
    a_service_goes_with_its_name(&ground);
}

fn one_goes_back_to_a_revision(ground: &Ground) {
    let refused = ground.admin.command(
        &interlock::binary(),
        &["rollout", "undo", "edge", "--to", "9", "-n", NAMESPACE],
        "",
    );
    assert_eq!(refused.code, 1, "{refused}");
    assert!(refused.stderr.contains("there is no revision 9; there are 3, 2, 1"), "{refused}");
    let tried = ground.rollout(&["undo", "edge", "--to", "1", "--dry-run=server"]);
    assert!(tried.contains("(server dry run)"), "{tried}");
    assert_eq!(ground.written(), "kong:3.10", "nothing is stored");
    let undone = ground.rollout(&["undo", "edge", "--to", "1", "--wait"]);
    eprintln!("{tried}\n{undone}");
    assert!(undone.contains("image: kong:3.10 -> kong:3.8"), "{undone}");
    assert!(undone.contains("revision 1 is staged; promote it"), "{undone}");
    ground.await_rolled_out("AwaitingPromotion");
    let live = ground.await_child("deployments", BLUE, "is as it was", |_| true);
    assert_eq!((image(&live), &*ground.written()), ("kong:3.10", "kong:3.8"));
    ground.rollout(&["promote", "edge", "--wait"]);
    ground.await_revisions(&[(2, "kong:3.9"), (3, "kong:3.10"), (4, "kong:3.8")]);
    let detail = ground.rollout(&["history", "edge", "--revision", "4", "-o", "json"]);
    let detail: Value = serde_json::from_str(&detail).expect("JSON");
    assert_eq!(detail["state"], "live");
    let containers = &detail["spec"]["deployment"]["podTemplateSpec"]["spec"]["containers"];
    assert_eq!(containers[0]["image"], "kong:3.8");
}

/// Without a number it is the one before; what is beyond the limit goes with the next revision.
fn a_history_has_a_limit(ground: &Ground) {
    ground.annotate("interlock.dev/revision-history-limit", "1");
    let undone = ground.rollout(&["undo", "edge", "--wait"]);
    assert!(undone.contains("revision 3 is staged"), "{undone}");
    ground.rollout(&["promote", "edge", "--wait"]);
    ground.await_revisions(&[(4, "kong:3.8"), (5, "kong:3.10")]);
    ground.await_rolled_out("WaitingForChange");
}

fn a_history_survives_the_death_of_the_process(ground: &Ground) {
    ground.stage("kong:3.11");
    ground.annotate(PROMOTE, "true");
    for kill in 0..8 {
        let seen = ground.data_plane()["metadata"]["resourceVersion"].clone();
        // The next write of the DataPlane is one of the promotion, if it is not over.
        let moved = Instant::now();
        while ground.data_plane()["metadata"]["resourceVersion"] == seen
            && moved.elapsed() < Duration::from_millis(300 + 37 * kill)
        {}
        ground.interlock.kill();
        ground.interlock.start();
    }
    ground.await_child("deployments", GREEN, "runs what was staged", |found| image(found) == "kong:3.11");
    ground.await_revisions(&[(5, "kong:3.10"), (6, "kong:3.11")]);
    ground.await_rolled_out("WaitingForChange");
}

/// An ingress Service whose fixed name is changed is deleted once the traffic comes through the new one.
fn a_service_goes_with_its_name(ground: &Ground) {
    let patch = json!({"spec": {"network": {"services": {"ingress": {"name": "edge-in"}}}}});
    ground.admin.merge_patch(&ground.path("dataplanes", "edge"), &patch).ok();
    ground.await_rolled_out("AwaitingPromotion");
    ground.await_child("services", INGRESS, "stays until the promotion", |_| true);
    ground.rollout(&["promote", "edge", "--wait"]);
    let service = ground.await_child("services", "edge-in", "is there", |_| true);
    assert_eq!(selected(&service), ground.selector(Colour::Blue));
    for name in [INGRESS, "dataplane-ingress-edge-preview"] {
        wait_until(&format!("Service {name} is deleted"), CAP, || {
            let found = ground.admin.read(&ground.path("services", name));
            if found.code == 404 { Ok(()) } else { Err(found.to_string()) }
        });
    }
    ground.await_child("services", "edge-in-preview", "is there", |_| true);
}
