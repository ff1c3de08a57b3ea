//! What templates generate: passwords, keys and times are the same for one run, in any process.

use std::time::Duration;

use interlock_core::api::meta::install;
use serde_json::{Value, json};

use crate::support::ground::Ground;
use crate::support::{Cluster, Interlock, wait_until};

const PACKAGE: &str = include_str!("generated/operatorversion.yaml");
const CAP: Duration = Duration::from_secs(60);

fn await_secret(ground: &Ground<'_>, name: &str) -> Value {
    let path = ground.ns.path("v1", "secrets", &format!("{name}-generated"));
    wait_until(&format!("the Secret of {name} is there"), CAP, || {
        let found = ground.user.read(&path);
        if found.code == 200 { Ok(found.body["data"].clone()) } else { Err(found.to_string()) }
    })
}

#[test]
fn another_process_goes_on_with_the_same_passwords() {
    let cluster = Cluster::own(&[]);
    let interlock = Interlock::install(&cluster, &[]);
    let ground = Ground::new(&cluster, "generated", PACKAGE);
    ground.create("one", "generated-0.1.0", &json!({}));
    ground.await_step("one", "deploy", 0, "IN_PROGRESS");
    let made = await_secret(&ground, "one");
    assert_eq!(made.as_object().map(serde_json::Map::len), Some(5), "{made}");

    // The process that goes on finds the Secret gone, and makes it again.
    interlock.kill();
    ground.user.delete(&ground.ns.path("v1", "secrets", "one-generated")).ok();
    interlock.start();
    assert_eq!(await_secret(&ground, "one"), made);
    ground.open("one");
    ground.await_plan("one", "deploy", "COMPLETE");

    // Another Instance has others.
    ground.create("two", "generated-0.1.0", &json!({}));
    let other = await_secret(&ground, "two");
    for key in ["password", "id", "made", "tls.crt", "tls.key"] {
        assert!(other[key].is_string() && other[key] != made[key], "{key}: {other}");
    }

    // What all of it follows from is a Secret that nobody changes.
    let path = format!("/api/v1/namespaces/interlock-system/secrets/{}", install::TEMPLATE_KEY_SECRET);
    let key = cluster.admin().read(&path).ok();
    assert_eq!(key["immutable"], true);
    assert_eq!(key["data"]["key"].as_str().map(str::len), Some(44), "32 bytes in base 64");
}

const KEYS: &str = r#"
apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {name: keys-0.1.0}
spec:
  operator: {kind: Operator, name: keys}
  version: 0.1.0
  tasks:
  - {name: key, kind: Apply, spec: {resources: [key.yaml]}}
  plans: {deploy: {phases: [{name: all, steps: [{name: key, tasks: [key]}]}]}}
  templates:
    key.yaml: |
      apiVersion: v1
      kind: Secret
      metadata: {name: "{{ .Name }}-generated"}
      data:
        {{- range until 4 }}
        key-{{ . }}: {{ genPrivateKey "rsa" | b64enc }}
        {{- end }}
"#;

/// A run draws the same numbers at each try: only a search that goes on ends. Four keys never fit in one rendering.
#[test]
fn a_plan_ends_whose_key_takes_longer_than_a_rendering_may() {
    let cluster = Cluster::own(&[]);
    let interlock = Interlock::install(&cluster, &["--render-limit=100ms"]);
    let ground = Ground::new(&cluster, "keys", KEYS);
    ground.create("one", "keys-0.1.0", &json!({}));
    ground.await_that("one", "its search was interrupted", |found| {
        let step = &found["status"]["planStatus"]["deploy"]["phases"][0]["steps"][0];
        step["message"].as_str().is_some_and(|message| message.contains("--render-limit"))
    });
    ground.await_plan("one", "deploy", "COMPLETE");
    let made = await_secret(&ground, "one");
    drop(interlock);
    for key in ["key-0", "key-1", "key-2", "key-3"] {
        let begin = "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt";
        assert!(made[key].as_str().is_some_and(|key| key.starts_with(begin)), "{key}: {made}");
    }
}
