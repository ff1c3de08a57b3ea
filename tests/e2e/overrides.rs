//! Overrides: one user, one Instance, one rule, for a while.

use std::time::Duration;

use interlock_core::api::meta;
use rstest::rstest;
use serde_json::{Value, json};

use crate::support::ground::Ground;
use crate::support::instances::{await_event, condition};
use crate::support::interlock::interlock;
use crate::support::{Client, Interlock, wait_until};

const CAP: Duration = Duration::from_secs(60);
const OVERRIDES: &str = "/apis/interlock.dev/v1alpha1/overrides";

/// Two parameters that never change.
const PACKAGE: &str = r#"
apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata:
  name: kept-0.1.0
spec:
  operator: {kind: Operator, name: kept}
  version: 0.1.0
  parameters:
  - {name: DISK, default: fast, immutable: true}
  - {name: ZONE, default: a, immutable: true}
  tasks:
  - {name: write, kind: Apply, spec: {resources: [disk.yaml]}}
  plans:
    deploy:
      strategy: serial
      phases:
      - {name: main, strategy: serial, steps: [{name: write, tasks: [write]}]}
  templates:
    disk.yaml: |
      apiVersion: v1
      kind: ConfigMap
      metadata:
        name: {{ .Name }}-disk
      data:
        disk: {{ .Params.DISK }}
"#;

fn grant(uid: &Value, rule: &str, user: &str, seconds: i64) -> Value {
    json!({
        "apiVersion": meta::INTERLOCK_API_VERSION, "kind": "Override", "metadata": {"generateName": "test-"},
        "spec": {"objectUID": uid, "rule": rule, "user": user, "expirationSeconds": seconds, "reason": "ticket 4711"},
    })
}

fn edit(ground: &Ground<'_>, user: &Client, name: &str, dry: bool) -> crate::support::client::Answer {
    let path = format!("{}{}", ground.path(name), if dry { "?dryRun=All" } else { "" });
    user.merge_patch(&path, &json!({"spec": {"parameters": {"DISK": "slow"}}}))
}

/// It admits that user's write of that Instance against that rule, which an Event tells, and no other's.
#[test]
fn an_override_admits_one_users_write_of_one_instance() {
    let (cluster, _) = Interlock::shared();
    let ground = Ground::new(cluster, "overrides", PACKAGE);
    let mallory = ground.ns.user("mallory");
    for name in ["demo", "other"] {
        ground.create(name, "kept-0.1.0", &json!({}));
    }
    let demo = ground.await_plan("demo", "deploy", "COMPLETE");
    ground.await_plan("other", "deploy", "COMPLETE");
    let refused = edit(&ground, &ground.user, "demo", false);
    let said = refused.to_string();
    assert!(said.contains("[parameter-immutable]") && !said.to_lowercase().contains("an override"), "{said}");
    refused.refused(422);

    let admin = cluster.admin();
    let uid = &demo["metadata"]["uid"];
    let granted = admin.post(OVERRIDES, &grant(uid, "parameter-immutable", "alice", 600)).ok();
    let name = granted["metadata"]["name"].as_str().expect("a name").to_owned();
    let admitted =
        wait_until("alice's write is admitted", CAP, || match edit(&ground, &ground.user, "demo", true) {
            answer if answer.code == 200 => Ok(answer),
            answer => Err(answer.to_string()),
        });
    drop(admitted);
    edit(&ground, &mallory, "demo", true).refused(422);
    edit(&ground, &ground.user, "other", true).refused(422);
    edit(&ground, &ground.user, "demo", false).ok();
    ground.await_that("demo", "the write is carried out", |found| {
        let disk = ground.user.read(&ground.ns.path("v1", "configmaps", "demo-disk"));
        disk.body["data"]["disk"] == "slow" && condition(found, "Ready")["status"] == "True"
    });
    let told = await_event(&ground.ns, "OverrideUsed");
    assert!(told.contains("against rule parameter-immutable") && told.contains(&name), "{told}");

    // It does not change, and without it the rule holds again.
    let path = format!("{OVERRIDES}/{name}");
    let longer = admin.merge_patch(&path, &json!({"spec": {"expirationSeconds": 700}}));
    assert!(longer.message().contains("an Override does not change"), "{longer}");
    longer.refused(422);
    admin.delete(&path).ok();
    let back = json!({"spec": {"parameters": {"DISK": "fast"}}});
    wait_until("it holds no more", CAP, || {
        match ground.user.merge_patch(&format!("{}?dryRun=All", ground.path("demo")), &back) {
            answer if answer.code == 422 => Ok(()),
            answer => Err(answer.to_string()),
        }
    });
}

/// It is removed by the leader when it has expired.
#[test]
fn an_override_that_has_expired_is_removed() {
    let (cluster, _) = Interlock::shared();
    let admin = cluster.admin();
    let uid = json!("00000000-0000-4000-8000-000000000000");
    let granted = admin.post(OVERRIDES, &grant(&uid, "upgrade-path", "alice", 60)).ok();
    let path = format!("{OVERRIDES}/{}", granted["metadata"]["name"].as_str().expect("a name"));
    wait_until("it is removed", Duration::from_secs(150), || match admin.read(&path) {
        answer if answer.code == 404 => Ok(()),
        answer => Err(answer.to_string()),
    });
}

/// Neither the integrity of the lock nor the freeze can be overridden, and no Override is for ever.
#[rstest]
#[case::lock(grant(&json!("u"), "plan-override", "alice", 600), "no other rule can be overridden", "spec.rule is none")]
#[case::status(grant(&json!("u"), "status-owner", "alice", 600), "no other rule can be overridden", "spec.rule is none")]
#[case::freeze(grant(&json!("u"), "plan-running", "alice", 600), "no other rule can be overridden", "spec.rule is none")]
#[case::for_ever(grant(&json!("u"), "upgrade-path", "alice", 14_401), "at most 14400 seconds", "14400")]
#[case::of_everything(grant(&json!(""), "upgrade-path", "alice", 600), "spec.objectUID", "objectUID")]
fn what_cannot_be_overridden_is_refused(#[case] object: Value, #[case] why: &str, #[case] or: &str) {
    let (cluster, _) = Interlock::shared();
    let answer = cluster.admin().post(&format!("{OVERRIDES}?dryRun=All"), &object);
    assert!(answer.message().contains(why) || answer.message().contains(or), "{answer}");
    answer.refused(422);
}

/// The right to create an Override is not the verb to override a rule.
#[test]
fn an_override_takes_a_verb_of_its_own() {
    let (cluster, _) = Interlock::shared();
    let admin = cluster.admin();
    let group = "rbac.authorization.k8s.io";
    let bind = |name: &str, rules: Value| {
        let role = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules});
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": name}],
        });
        admin.post(&format!("/apis/{group}/v1/clusterroles"), &role).ok();
        admin.post(&format!("/apis/{group}/v1/clusterrolebindings"), &binding).ok();
        cluster.user(name, &[])
    };
    let create = json!({"apiGroups": ["interlock.dev"], "resources": ["overrides"], "verbs": ["create"]});
    let one = json!({"apiGroups": ["interlock.dev"], "resources": ["overrides"], "resourceNames": ["upgrade-path"], "verbs": ["override"]});
    let creator = bind("override-creator", json!([create]));
    let granter = bind("override-granter", json!([create, one]));
    let path = format!("{OVERRIDES}?dryRun=All");
    let of = |rule: &str| grant(&json!("u"), rule, "alice", 600);
    wait_until("the granter may override one rule", CAP, || match granter.post(&path, &of("upgrade-path")) {
        answer if answer.code == 201 => Ok(()),
        answer => Err(answer.to_string()),
    });
    let answer = granter.post(&path, &of("parameter-immutable"));
    assert!(
        answer
            .message()
            .contains("has no verb override on overrides.interlock.dev for rule parameter-immutable"),
        "{answer}"
    );
    answer.refused(422);
    wait_until("the creator is refused for the verb", CAP, || {
        match creator.post(&path, &of("upgrade-path")) {
            answer if answer.message().contains("[override-rights]") => Ok(()),
            answer => Err(answer.to_string()),
        }
    });
}

/// The command makes the object that the page shows.
#[test]
fn an_override_is_created_listed_and_deleted_by_the_command() {
    let (cluster, _) = Interlock::shared();
    let ground = Ground::new(cluster, "override", PACKAGE);
    let (admin, ns) = (cluster.admin(), ground.ns.name());
    ground.create("demo", "kept-0.1.0", &json!({}));
    ground.await_plan("demo", "deploy", "COMPLETE");
    let command =
        |user: &Client, words: &[&str]| interlock(user, &[&["override"], words, &["-n", ns]].concat(), "");
    let create = ["create", "instance/demo", "--rule=parameter-immutable", "--reason=ticket 4711"];
    let said = command(&admin, &[&create[..], &["--user=alice", "--for=10m"]].concat()).ok();
    let name = said.split(' ').nth(1).expect("its name");
    assert!(said.starts_with("override demo-") && said.contains(" created: until 20"), "{said}");
    let what = format!(" it admits what parameter-immutable refuses alice of Instance {ns}/demo\n");
    assert!(said.ends_with(&what), "{said}");
    wait_until("alice's write is admitted", CAP, || match edit(&ground, &ground.user, "demo", true) {
        answer if answer.code == 200 => Ok(()),
        answer => Err(answer.to_string()),
    });

    let list = command(&admin, &["list"]).ok();
    let row = list.lines().find(|line| line.starts_with(name)).expect("its row");
    for part in [&format!("{ns}/demo"), "parameter-immutable", "alice", "in ", "ticket 4711"] {
        assert!(row.contains(part), "{part}: {list}");
    }
    // Without --user it is whoever creates it.
    let own = command(&admin, &create).ok();
    let own = own.split(' ').nth(1).expect("its name");
    let listed: Value = serde_json::from_str(&command(&admin, &["list", "-o", "json"]).ok()).expect("JSON");
    let found = |name: &str| {
        let all = listed.as_array().expect("a list").iter();
        all.into_iter().find(|one| one["metadata"]["name"] == name).expect("it").clone()
    };
    assert_eq!(found(name)["spec"]["expirationSeconds"], 600);
    assert_eq!(found(own)["spec"]["expirationSeconds"], 1800);
    let me = admin.kubectl(&["auth", "whoami", "-o", "json"]).ok();
    let me: Value = serde_json::from_str(&me).expect("JSON");
    assert_eq!(found(own)["spec"]["user"], me["status"]["userInfo"]["username"]);
    assert_eq!(command(&admin, &["delete", own]).ok(), format!("override {own} deleted\n"));
    assert_eq!(command(&admin, &["delete", name]).ok(), format!("override {name} deleted\n"));

    let gone = command(&admin, &["delete", name]);
    assert!(gone.code == 3 && gone.stderr.contains(&format!("Override {name} does not exist")), "{gone}");
    let lost = command(&admin, &["create", "dmo", "--rule=upgrade-path", "--reason=r"]);
    assert!(lost.code == 3 && lost.stderr.contains("next:  did you mean demo?"), "{lost}");
    let mallory = ground.ns.stranger("mallory");
    ground.ns.bind("mallory", "ClusterRole", "view");
    let refused = command(&mallory, &create);
    assert!(refused.code == 1 && refused.stderr.contains("is forbidden"), "{refused}");
}
