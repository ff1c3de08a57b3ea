//! As installed, the process reads no Secrets of others: large specs need none, and those that router flavors come
//! from are labelled only by a process that was asked to.

use interlock::install::InstallOptions;
use interlock_core::api::meta;
use serde_json::{Value, json};

use super::{CAP, Ground, KB, noise};
use crate::flavor_sources::{await_label, gateway, source};
use crate::support::interlock::{apply, opt_in_rights};
use crate::support::{Cluster, Interlock, wait_until};

#[test]
fn no_secret_is_read_unless_that_is_asked_for() {
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
    let blob = noise(40 * KB, 1);
    ground.user.post(&ground.path(""), &ground.manifest("large", &blob, false)).ok();
    let done = ground.await_carried_out("large", "deploy", &blob);
    ground.assert_stamped(&done, 40 * KB);
    let secrets = ground.ns.admin().read(&ground.ns.path("v1", "secrets", "")).ok();
    let names: Vec<_> =
        secrets["items"].as_array().into_iter().flatten().map(|s| &s["metadata"]["name"]).collect();
    assert_eq!(names, ["router"]);

    let secret = ground.user.get("secret", "router").expect("the Secret");
    assert_eq!(secret["metadata"]["labels"], Value::Null);
    process.kill();
    let asked = Interlock::prepare(&cluster, &["--flavor-secrets"]);
    let rights = opt_in_rights(&InstallOptions { flavor_secrets: true, ..InstallOptions::default() });
    apply(&cluster.admin(), rights);
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
