//! Cluster-scoped objects: the Instances of two tenants write one, and it goes with the last of them; one
//! that somebody else made stays.

use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::existing::delete_with_dependents;
use crate::support::ground::Ground;
use crate::support::instances::await_event;
use crate::support::{Cluster, Interlock};

const PATH: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

/// Its plan deploy makes a ClusterRole of that name, and its plan cleanup deletes it.
fn package(role: &str) -> String {
    format!(
        r#"
apiVersion: kudo.dev/v1beta1
kind: OperatorVersion
metadata: {{name: roles-0.1.0}}
spec:
  operator: {{kind: Operator, name: roles}}
  version: 0.1.0
  tasks:
    - {{name: make, kind: Apply, spec: {{resources: [role.yaml]}}}}
    - {{name: remove, kind: Delete, spec: {{resources: [role.yaml]}}}}
  plans:
    deploy:
      strategy: serial
      phases: [{{name: all, strategy: serial, steps: [{{name: make, tasks: [make]}}]}}]
    cleanup:
      strategy: serial
      phases: [{{name: all, strategy: serial, steps: [{{name: remove, tasks: [remove]}}]}}]
  templates:
    role.yaml: |
      apiVersion: rbac.authorization.k8s.io/v1
      kind: ClusterRole
      metadata: {{name: {role}}}
      rules: [{{apiGroups: [""], resources: [configmaps], verbs: [get]}}]
"#
    )
}

fn role(cluster: &Cluster, name: &str) -> Option<Value> {
    let answer = cluster.admin().read(&format!("{PATH}/{name}"));
    (answer.code != 404).then(|| answer.ok())
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

#[test]
fn a_cluster_scoped_object_goes_with_the_last_instance_that_applies_it() {
    let (cluster, _) = Interlock::shared();
    let first = Ground::new(cluster, "first", &package("interlock-test-shared"));
    let second = Ground::new(cluster, "second", &package("interlock-test-shared"));
    let [maker, other] = [&first, &second].map(|ground| {
        ground.create("demo", "roles-0.1.0", &json!({}));
        uid(&ground.await_plan("demo", "deploy", "COMPLETE"))
    });
    let found = role(cluster, "interlock-test-shared").expect("the ClusterRole");
    assert_eq!(found["metadata"]["labels"][meta::INSTANCE_UID], maker);
    assert_eq!(found["metadata"]["annotations"][meta::SHARED_BY], other);
    assert!(found["metadata"]["ownerReferences"].is_null(), "nothing owns it: {found:#}");

    delete_with_dependents(&first, "demo");
    let left = role(cluster, "interlock-test-shared").expect("the other Instance applies it still");
    assert_eq!(uid(&left), uid(&found));
    assert_eq!(left["metadata"]["labels"][meta::INSTANCE_UID], other, "it is the next one's");
    assert!(left["metadata"]["annotations"][meta::SHARED_BY].is_null(), "{left:#}");

    delete_with_dependents(&second, "demo");
    assert_eq!(role(cluster, "interlock-test-shared"), None, "nobody applies it any more");
}

#[test]
fn a_cluster_scoped_object_of_others_is_neither_written_nor_deleted() {
    let (cluster, _) = Interlock::shared();
    let admin = cluster.admin();
    let mine = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "interlock-test-mine", "annotations": {"example.dev/owner": "platform"}},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    });
    let made = admin.post(PATH, &mine).ok();
    let ground = Ground::new(cluster, "sharing", &package("interlock-test-mine"));
    ground.create("demo", "roles-0.1.0", &json!({}));
    let found = ground.await_plan("demo", "deploy", "FATAL_ERROR");
    let step = &found["status"]["planStatus"]["deploy"]["phases"][0]["steps"][0];
    let said = step["message"].as_str().unwrap_or_default();
    assert!(said.contains("interlock-test-mine") && said.contains("no Instance made it"), "{said}");
    assert!(said.contains("interlock.dev/adopt"), "a way out: {said}");

    delete_with_dependents(&ground, "demo");
    let kept = await_event(&ground.ns, "ObjectKept");
    assert!(kept.contains("ClusterRole") && kept.contains("no Instance made it"), "{kept}");
    assert_eq!(role(cluster, "interlock-test-mine"), Some(made), "it is as it was made");
    admin.delete(&format!("{PATH}/interlock-test-mine")).ok();
}
