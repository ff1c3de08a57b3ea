//! `interlock verify`: a good installation passes, and each thing that is broken is named, with what to do.

use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::support::{Client, Cluster, Interlock};

const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";

fn verify(admin: &Client, arguments: &[&str]) -> crate::support::Output {
    crate::support::interlock::interlock(admin, &[&["verify"], arguments].concat(), "")
}

/// The checks that fail, each with what it says and what to do.
fn failures(admin: &Client) -> Vec<(String, String, String)> {
    let out = verify(admin, &["-o", "json"]);
    let read: Value = serde_json::from_str(&out.stdout).unwrap_or_else(|error| panic!("{error}: {out}"));
    assert_eq!(out.code, i32::from(read["ok"] != true), "{out}");
    let text = |check: &Value, field: &str| check[field].as_str().unwrap_or_default().to_owned();
    let failed = read["checks"].as_array().unwrap().iter().filter(|check| check["result"] == "failed");
    failed.map(|check| (text(check, "check"), text(check, "message"), text(check, "next"))).collect()
}

#[track_caller]
fn expect(admin: &Client, check: &str, message: &str, next: &str) {
    let found = failures(admin);
    let ours = found.iter().find(|(name, ..)| name == check);
    let said = ours.is_some_and(|(_, said, todo)| said.contains(message) && todo.contains(next));
    assert!(said, "{check} has to say {message:?} and {next:?}: {found:#?}");
}

#[test]
fn what_is_broken_is_named_with_the_remedy() {
    let cluster = Cluster::own(&[]);
    let process = Interlock::install(&cluster, &[]);
    let admin = cluster.admin();
    let out = verify(&admin, &["--wait", "--timeout=60s"]);
    assert_eq!(out.code, 0, "{out}");
    for line in
        ["ok      policies ", "ok      settings ", "ok      webhook: Instances ", "skipped deployment "]
    {
        assert!(out.stdout.lines().any(|found| found.starts_with(line)), "{line:?} is not in {out}");
    }

    let policy = format!("{ADMISSION}/validatingadmissionpolicies/interlock-lock");
    admin.merge_patch(&policy, &json!({"spec": {"failurePolicy": "Ignore"}})).ok();
    expect(
        &admin,
        "policies",
        "interlock-lock guards less than it was rendered: failurePolicy",
        "render policies",
    );
    admin.merge_patch(&policy, &json!({"spec": {"failurePolicy": "Fail"}})).ok();

    let webhooks = format!("{ADMISSION}/validatingwebhookconfigurations/interlock");
    let open = json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]);
    let entry = admin.read(&webhooks).ok()["webhooks"][0].clone();
    admin.json_patch(&webhooks, &open).ok();
    expect(&admin, "webhooks", "failurePolicy of webhook", "render webhooks");
    let as_before =
        json!([{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": entry["failurePolicy"]}]);
    admin.json_patch(&webhooks, &as_before).ok();

    let binding =
        "/apis/rbac.authorization.k8s.io/v1/namespaces/interlock-system/rolebindings/interlock-impersonator";
    let granted = admin.read(binding).ok();
    admin.delete(binding).ok();
    expect(&admin, "rights", "may not impersonate serviceaccounts \"interlock-packages\"", "render rbac");
    crate::support::interlock::apply(&admin, vec![bare(granted)]);

    let settings =
        "{apiVersion: interlock.dev/v1alpha1, kind: Interlock, metadata: {name: default}, spec: SPEC}";
    admin.apply(&settings.replace("SPEC", "{capabilities: {roots: {mode: auto}}}"));
    crate::support::wait_for("the settings are reported on", std::time::Duration::from_secs(30), || {
        failures(&admin)
            .iter()
            .any(|(check, said, _)| check == "settings" && said.contains("no such capability"))
    });
    expect(&admin, "settings", "Accepted is False", "kubectl describe interlock default");
    admin.apply(&settings.replace("SPEC", "{}"));

    let out = verify(&admin, &["--wait", "--timeout=60s"]);
    assert_eq!(out.code, 0, "everything is as it was: {out}");

    process.kill();
    crate::support::wait_for("the Lease is found to be old", std::time::Duration::from_secs(60), || {
        failures(&admin).iter().any(|(check, ..)| check == "leader")
    });
    expect(&admin, "leader", "does not renew the Lease", "start a replica");
    let Some((_, said, next)) =
        failures(&admin).into_iter().find(|(name, ..)| name == "webhook: OperatorVersions")
    else {
        panic!("a dead webhook is not noticed");
    };
    assert!(
        said.contains("failed calling webhook") && next.contains("docs/break-glass.md"),
        "{said}; {next}"
    );
    let other = json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": other_ca()}]);
    admin.json_patch(&webhooks, &other).ok();
    expect(&admin, "certificate", "does not accept our certificate", "delete secret interlock-certificate");
    admin
        .delete(&format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/operators.{}",
            meta::KUDO_GROUP
        ))
        .ok();
    crate::support::wait_for("the definition is gone", std::time::Duration::from_secs(30), || {
        failures(&admin)
            .iter()
            .any(|(check, said, _)| check == "definitions" && said.contains("does not exist"))
    });
    expect(&admin, "definitions", "operators.kudo.dev does not exist", "render crds");
}

/// Who may not look is told which right is missing, and nothing is taken for good.
#[test]
fn who_is_not_reached_or_may_not_look_is_told_so() {
    let (cluster, _) = Interlock::shared();
    let nobody = cluster.user("nobody-of-verify", &[]);
    let out = verify(&nobody, &[]);
    assert_eq!(out.code, 1, "{out}");
    assert!(out.stdout.contains("FAILED  rights ") && out.stdout.contains("subjectaccessreviews"), "{out}");
    let nowhere = cluster.dir().join("nowhere.yaml");
    std::fs::write(
        &nowhere,
        "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}], \
        contexts: [{name: c, context: {cluster: c}}], current-context: c}",
    )
    .unwrap();
    let flag = format!("--kubeconfig={}", nowhere.display());
    let out = verify(&cluster.admin(), &[&flag]);
    assert_eq!((out.code, out.stdout.as_str()), (3, ""), "{out}");
    assert_eq!(verify(&cluster.admin(), &["--waits"]).code, 2);
}

/// Without what the API server added.
fn bare(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|name, _| ["name", "namespace", "labels"].contains(&name.as_str()));
    object
}

/// PEM of a CA that has signed nothing, in base64.
fn other_ca() -> String {
    use base64::Engine as _;
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).unwrap().pem();
    base64::engine::general_purpose::STANDARD.encode(pem)
}
