//! OperatorVersions: frozen while an Instance of theirs is locked, kept while one refers to them.

use rstest::rstest;
use serde_json::{Value, json};

use super::{Client, Layers, essence, manifest, rule};
use crate::support::client::Answer;
use crate::support::wait_until;

type Write = fn(&Client, &str, &Value) -> Answer;

fn changed(found: &Value) -> Value {
    super::edited(found.clone(), |o| o["spec"]["templates"]["after.yaml"] = json!("{}"))
}

fn put(user: &Client, path: &str, _: &Value) -> Answer {
    user.put_edited(path, |object| *object = changed(object))
}

fn json_patch(user: &Client, path: &str, _: &Value) -> Answer {
    user.json_patch(path, &json!([{"op": "remove", "path": "/spec/plans/backup"}]))
}

fn merge_patch(user: &Client, path: &str, _: &Value) -> Answer {
    user.merge_patch(path, &json!({"spec": {"version": "0.2.0"}}))
}

fn forced_apply(user: &Client, path: &str, found: &Value) -> Answer {
    user.server_side_apply(&format!("{path}?fieldManager=x&force=true"), &manifest(&changed(found)))
}

#[rstest]
#[case::put_is_refused(put)]
#[case::json_patch_is_refused(json_patch)]
#[case::merge_patch_is_refused(merge_patch)]
#[case::forced_server_side_apply_is_refused(forced_apply)]
fn a_change_of_a_version_in_use_by(#[case] write: Write) {
    let ground = Layers::Both.ground("version");
    let path = ground.ns.path("kudo.dev/v1beta1", "operatorversions", "gated-0.1.0");
    let running = ground.running("demo");
    let before = ground.user.read(&path).ok();
    let answer = wait_until("Interlock has seen the lock", super::CAP, || {
        let answer = write(&ground.user, &path, &before);
        if answer.code == 200 { Err(answer.to_string()) } else { Ok(answer) }
    });
    assert_eq!(rule(&answer), "version-frozen");
    assert_eq!(ground.user.read(&path).ok()["spec"], before["spec"]);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    ground.user.merge_patch(&path, &label).ok();
    assert_eq!(essence(&ground.get("demo")), essence(&running));
}

/// Deletion, alone, by collection and by force: refused while an Instance refers to it.
#[test]
fn deletion_of_a_version_in_use_is_refused_by_every_verb() {
    let ground = Layers::Both.ground("version");
    ground.deployed("demo");
    let path = ground.ns.path("kudo.dev/v1beta1", "operatorversions", "gated-0.1.0");
    let before = ground.user.read(&path).ok();
    let answer = ground.user.delete(&path);
    assert_eq!(rule(&answer), "version-in-use");
    assert_eq!(answer.code, 403);
    let collection = ground.ns.path("kudo.dev/v1beta1", "operatorversions", "");
    assert_eq!(rule(&ground.user.delete(&collection)), "version-in-use");
    let text = manifest(&before).to_string();
    let said = ground.user.kubectl_in(&["replace", "--force", "-f", "-"], &text).refused();
    assert!(said.contains("[version-in-use]"), "{said}");
    assert_eq!(ground.user.read(&path).ok()["metadata"]["uid"], before["metadata"]["uid"]);
    ground.user.kubectl(&["delete", "instance", "demo", "--timeout=60s"]).ok();
    wait_until("it can go once nobody refers to it", super::CAP, || match ground.user.delete(&path) {
        answer if answer.code == 200 => Ok(()),
        answer => Err(answer.to_string()),
    });
}
