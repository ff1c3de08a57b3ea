//! Specs that Interlock 0.1 kept in Secrets: moved with the rights of the overlay, and not without.

use base64::Engine as _;
use interlock::install::{InstallOptions, opt_in_rights};
use interlock_core::api::stamp::Envelope;
use interlock_core::api::{meta, revision};
use serde_json::{Value, json};

use super::{CAP, Ground, KB, noise, summary};
use crate::flavor_sources::{await_label, gateway, source};
use crate::support::interlock::apply;
use crate::support::{Cluster, Interlock, wait_until};

/// What Interlock 0.1 left of an Instance whose spec is kept in ControllerRevisions.
fn as_0_1_left_it(ground: &Ground<'_>, name: &str) {
    let found = ground.user.read(&ground.path(name)).ok();
    let [part] = &ground.revisions(&found)[..] else { panic!("one part: {}", summary(&found)) };
    let data = base64::engine::general_purpose::STANDARD.encode(revision::data(part).expect("its data"));
    let mut owner = part["metadata"]["ownerReferences"][0].clone();
    owner.as_object_mut().unwrap().remove("controller");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": meta::SPEC_SECRET_TYPE,
        "metadata": {
            "name": part["metadata"]["name"], "ownerReferences": [owner],
            "annotations": {revision::PARTS: "1"},
        },
        "data": {"spec.json.gz": data},
    });
    ground.ns.admin().post(&ground.ns.path("v1", "secrets", ""), &secret).ok();
    let stamp = found["metadata"]["annotations"][meta::LAST_APPLIED_SPEC].as_str().expect("a stamp");
    let stamp = stamp.replace("ControllerRevision", "Secret");
    let old = json!({"metadata": {"annotations": {meta::LAST_APPLIED_SPEC: stamp}}});
    ground.bare.merge_patch(&ground.path(name), &old).ok();
    let revision =
        ground.ns.path("apps/v1", "controllerrevisions", part["metadata"]["name"].as_str().unwrap());
    ground.ns.admin().delete(&revision).ok();
}

fn stalled(found: &Value) -> Value {
    let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == "Stalled").unwrap_or_default()
}

#[test]
fn specs_in_secrets_are_moved_where_the_overlay_is_applied() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    let ground = Ground::new(&cluster);
    // The rights of the installation, and no others.
    let binding = format!("test-{}-cluster-admin", meta::CONTROLLER_USER);
    ground.ns.admin().kubectl(&["delete", "rolebinding", &binding]).ok();
    assert_no_secret_is_readable(&cluster, ground.ns.name());
    let from = json!({"secretKeyRef": {"name": "router", "key": "flavor"}});
    ground.user.apply(&source("Secret", "router", "expressions", "a").to_string());
    ground.user.apply(&gateway("edge", "kong:3.9", &from).to_string());
    let before = noise(40 * KB, 1);
    ground.user.post(&ground.path(""), &ground.manifest("old", &before, false)).ok();
    ground.await_carried_out("old", "deploy", &before);
    process.kill();
    as_0_1_left_it(&ground, "old");
    process.start();
    process.await_ready();
    let told = wait_until("the Instance says which right is missing", CAP, || {
        let found = ground.user.read(&ground.path("old")).ok();
        let stalled = stalled(&found);
        let says = stalled["status"] == "True" && stalled["reason"] == "MissingRight";
        if says { Ok(stalled["message"].to_string()) } else { Err(summary(&found)) }
    });
    assert!(told.contains("kubectl apply -k manifests/overlays/migrate-spec-secrets"), "{told}");
    // Nothing is run: an edit is taken, and its plan waits.
    let after = noise(41 * KB, 2);
    ground.user.merge_patch(&ground.path("old"), &json!({"spec": {"parameters": {"BLOB": after}}})).ok();
    let found = ground.user.read(&ground.path("old")).ok();
    assert_eq!(found["spec"]["planExecution"]["planName"], "update", "{}", summary(&found));
    assert!(found["status"]["planStatus"]["update"]["uid"].is_null(), "{}", summary(&found));
    let migrate = opt_in_rights::migrate_spec_secrets(&InstallOptions::default());
    apply(&cluster.admin(), migrate);
    let done = ground.await_carried_out("old", "update", &after);
    let stamp = done["metadata"]["annotations"][meta::LAST_APPLIED_SPEC].as_str().expect("a stamp");
    assert!(Envelope::parse(stamp).is_some_and(|stamp| stamp.kept.reference().is_some()), "{stamp}");
    assert!(!stamp.contains("\"Secret\""), "{stamp}");
    let secrets = ground.ns.admin().read(&ground.ns.path("v1", "secrets", "")).ok();
    let names: Vec<_> =
        secrets["items"].as_array().into_iter().flatten().map(|s| &s["metadata"]["name"]).collect();
    assert_eq!(names, ["router"]);
    assert_eq!(stalled(&done), Value::Null, "{}", summary(&done));
    ground.assert_stamped(&done, 41 * KB);

    // Secrets that flavors come from are labelled only by a process that was asked to.
    let secret = ground.user.get("secret", "router").expect("the Secret");
    assert_eq!(secret["metadata"]["labels"], Value::Null);
    process.kill();
    let asked = Interlock::prepare(&cluster, &["--flavor-secrets"]);
    apply(&cluster.admin(), opt_in_rights::flavor_secrets(&InstallOptions::default()));
    asked.start();
    await_label(&ground.user, "secret", "router", Some("in-use"));
}

/// As installed, the process reads no Secret but its certificate.
#[track_caller]
fn assert_no_secret_is_readable(cluster: &Cluster, namespace: &str) {
    let process = format!("--as={}", meta::CONTROLLER_USER);
    let can = |verb: &str, what: &str, within: &str| {
        let out = cluster.admin().kubectl(&["auth", "can-i", verb, what, &process, "-n", within]);
        out.stdout.trim() == "yes"
    };
    wait_until("the binding is gone", CAP, || {
        if can("get", "secrets", namespace) { Err("secrets can be read".to_owned()) } else { Ok(()) }
    });
    for verb in ["get", "list", "watch", "create", "update", "patch", "delete"] {
        assert!(!can(verb, "secrets", namespace), "{verb} secrets in {namespace}");
    }
    let own = |verb: &str| can(verb, "secrets/interlock-certificate", meta::NAMESPACE);
    assert!(own("get") && own("update"));
    assert!(!can("get", "secrets/another", meta::NAMESPACE));
    assert!(can("create", "controllerrevisions.apps", namespace));
}
