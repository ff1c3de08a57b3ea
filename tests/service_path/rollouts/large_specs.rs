//! Specs that do not fit in an annotation, and annotations that others write.

use interlock_core::api::meta;

use super::*;

/// A template of 200 KB.
fn large(image: &str) -> Value {
    let mut template = template(image);
    let variable = |i: usize| json!({"name": format!("PADDING_{i}"), "value": "x".repeat(4096)});
    template["spec"]["containers"][0]["env"] = (0..48).map(variable).collect();
    template
}

impl Ground {
    fn stamp(&self) -> Value {
        self.data_plane()["metadata"]["annotations"][meta::LAST_APPLIED_SPEC].clone()
    }
}

#[test]
fn a_large_spec_heals_and_is_promoted_and_its_annotation_is_nobodys() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    ground.produce();
    let mut wanted = spec("kong:3.8");
    wanted["deployment"]["podTemplateSpec"] = large("kong:3.8");
    ground.create(wanted);
    ground.await_rolled_out("WaitingForChange");

    let patch = json!({"spec": {"deployment": {"podTemplateSpec": large("kong:3.9")}}});
    ground.admin.merge_patch(&ground.path("dataplanes", "edge"), &patch).ok();
    ground.await_rolled_out("AwaitingPromotion");
    let stamp = ground.stamp();
    let text = stamp.as_str().expect("a stamp");
    assert!(text.len() < 4096 && text.contains("\"ref\""), "{text}");

    // What is live is made again from what is kept elsewhere.
    let before = ground.admin.read(&ground.path("deployments", BLUE)).ok();
    ground.admin.delete(&ground.path("deployments", BLUE)).ok();
    let uid = &before["metadata"]["uid"];
    let live = ground.await_child("deployments", BLUE, "is back", |found| found["metadata"]["uid"] != *uid);
    assert_eq!(live["spec"]["template"], before["spec"]["template"]);

    // A replacement without the annotation, and one with another's, change nothing of it.
    let mut bare = ground.data_plane();
    let strip = |object: &mut Value| {
        for field in ["annotations", "managedFields", "resourceVersion", "uid"] {
            object["metadata"].as_object_mut().expect("an object").remove(field);
        }
        object.as_object_mut().expect("an object").remove("status");
    };
    strip(&mut bare);
    wait_until("it is replaced between two writes of the status", CAP, || {
        let out = ground.admin.kubectl_in(&["replace", "-n", NAMESPACE, "-f", "-"], &bare.to_string());
        if out.code == 0 { Ok(()) } else { Err(out.to_string()) }
    });
    assert_eq!(ground.stamp(), stamp, "after kubectl replace");
    let forged = json!({"metadata": {"annotations": {meta::LAST_APPLIED_SPEC: "{\"v\":1}"}}});
    ground.admin.merge_patch(&ground.path("dataplanes", "edge"), &forged);
    assert_eq!(ground.stamp(), stamp, "after an edit");

    // A copy of the object, with all its annotations, is a DataPlane of its own.
    let mut copy = ground.data_plane();
    let annotations = copy["metadata"]["annotations"].clone();
    strip(&mut copy);
    copy["metadata"]["name"] = json!("copy");
    copy["metadata"]["annotations"] = annotations;
    ground.admin.post(&ground.path("dataplanes", ""), &copy).ok();
    let made = ground.await_child("deployments", "dataplane-copy-blue", "is made", |_| true);
    assert_eq!(image(&made), "kong:3.9", "from its own spec");

    ground.await_rolled_out("AwaitingPromotion");
    ground.rollout(&["promote", "edge", "--wait"]);
    ground.await_rolled_out("WaitingForChange");
    let live = ground.await_child("deployments", GREEN, "is there", |_| true);
    assert_eq!(image(&live), "kong:3.9");
}
