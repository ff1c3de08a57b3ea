//! Certificates of the admin APIs of DataPlanes on a real control plane: without the right none is made; with it they
//! are made, come back, and are not taken from users; and what a preview reports by them is held against its spec.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use interlock::install::InstallOptions;
use interlock_kong::api as kong;
use serde_json::{Value, json};

use super::rollouts::{Ground, definition, spec};
use crate::support::{interlock as process, service_path, wait_until};

/// A refusal is taken to hold for 30 s.
const CAP: Duration = Duration::from_secs(150);
const SECRET: &str = "dataplane-edge-certificate";
const ADMIN_SERVICE: &str = "dataplane-admin-edge";

/// Lets the process make certificates.
pub(crate) fn grant(ground: &Ground) {
    let options = InstallOptions { data_plane_certificates: true, ..InstallOptions::default() };
    process::apply(&ground.admin, process::opt_in_rights(&options));
}

fn text(secret: &Value, key: &str) -> String {
    let encoded = secret["data"][key].as_str().unwrap_or_default();
    String::from_utf8(STANDARD.decode(encoded).expect("base64")).expect("PEM")
}

/// An event of what belongs to the DataPlane: nothing tells the process of Secrets.
fn wake(ground: &Ground) {
    let now = format!("{:?}", std::time::Instant::now());
    let patch = json!({"metadata": {"annotations": {"woken": now}}});
    ground.admin.merge_patch(&ground.path("services", ADMIN_SERVICE), &patch).ok();
}

/// The Secret when it is there as it shall be.
#[track_caller]
pub(crate) fn await_secret(ground: &Ground, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    wait_until(&format!("the Secret {what}"), CAP, || {
        let found = ground.admin.read(&ground.path("secrets", SECRET));
        if found.code == 200 && holds(&found.body) {
            return Ok(found.body);
        }
        wake(ground);
        Err(format!("{}: {}", found.code, found.body["metadata"]))
    })
}

fn names(secret: &Value) -> Vec<String> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    let der = CertificateDer::from_pem_slice(text(secret, "tls.crt").as_bytes()).expect("a certificate");
    let (_, certificate) = x509_parser::parse_x509_certificate(&der).expect("a certificate");
    let names = certificate.subject_alternative_name().expect("valid").expect("names");
    names.value.general_names.iter().map(ToString::to_string).collect()
}

#[test]
fn a_certificate_is_made_where_it_is_granted() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    ground.create(spec("kong:3.8"));
    ground.await_rolled_out("WaitingForChange");
    let found = ground.admin.read(&ground.path("secrets", SECRET));
    assert_eq!(found.code, 404, "nobody granted it: {found}");
    let before = ground.await_child("deployments", "dataplane-edge-blue", "is there", |_| true);

    grant(&ground);
    let made = await_secret(&ground, "is made", |_| true);
    let metadata = &made["metadata"];
    assert_eq!(metadata["ownerReferences"][0]["uid"], ground.data_plane()["metadata"]["uid"]);
    assert_eq!(metadata["labels"]["gateway-operator.konghq.com/service-secret"], ADMIN_SERVICE);
    assert_eq!(made["type"], "kubernetes.io/tls");
    let names = names(&made);
    assert!(
        names.iter().any(|name| name.contains("*.dataplane-admin-edge-preview.gateways.svc")),
        "{names:?}"
    );

    // It comes back under its name, and no pod is rolled for it.
    ground.admin.delete(&ground.path("secrets", SECRET)).ok();
    let uid = &made["metadata"]["uid"];
    let again = await_secret(&ground, "is made again", |found| found["metadata"]["uid"] != *uid);
    assert_ne!(text(&again, "tls.key"), text(&made, "tls.key"));
    assert_eq!(text(&again, "ca.crt"), text(&made, "ca.crt"), "the CA is the same");
    // What is edited is set back.
    let edit =
        json!({"data": {"tls.crt": STANDARD.encode("junk")}, "metadata": {"labels": {"app": "other"}}});
    ground.admin.merge_patch(&ground.path("secrets", SECRET), &edit).ok();
    await_secret(&ground, "is set back", |found| {
        found["metadata"]["labels"]["app"] == "edge" && text(found, "tls.crt").contains("BEGIN CERTIFICATE")
    });
    let after = ground.await_child("deployments", "dataplane-edge-blue", "is there", |_| true);
    assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"]);
    let log = ground.interlock.log();
    assert!(!log.contains("PRIVATE KEY") && !log.contains(&STANDARD.encode("-----BEGIN PRIVATE")), "{log}");
}

#[test]
fn a_secret_of_a_user_is_used_as_it_is() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    grant(&ground);
    let own =
        json!({"metadata": {"name": SECRET}, "stringData": {"tls.crt": "a", "tls.key": "b", "ca.crt": "c"}});
    let own = ground.admin.post(&ground.path("secrets", ""), &own).ok();
    ground.create(spec("kong:3.8"));
    // Another DataPlane gets its certificate after this one was looked at: the right is there.
    ground.await_rolled_out("WaitingForChange");
    let other = json!({
        "apiVersion": kong::API_VERSION, "kind": "DataPlane", "metadata": {"name": "other"}, "spec": spec("kong:3.8"),
    });
    ground.admin.post(&ground.path("dataplanes", ""), &other).ok();
    ground.await_child("secrets", "dataplane-other-certificate", "is made", |_| true);
    let found = ground.admin.read(&ground.path("secrets", SECRET)).ok();
    assert_eq!(found["metadata"]["resourceVersion"], own["metadata"]["resourceVersion"]);
    let conditions = ground.data_plane()["status"]["conditions"].to_string();
    assert!(!conditions.contains("Stalled"), "{conditions}");
}

/// Stages an image, with annotations that tell the fake what to be.
fn stage(ground: &Ground, annotations: &Value) {
    let containers = json!([{"name": "proxy", "image": "kong:3.9"}]);
    let template = json!({"metadata": {"annotations": annotations}, "spec": {"containers": containers}});
    let patch = json!({"spec": {"deployment": {"podTemplateSpec": template}}});
    ground.admin.merge_patch(&ground.path("dataplanes", "edge"), &patch).ok();
}

/// Waits until the rollout says why it does not go on.
#[track_caller]
fn await_said(ground: &Ground, said: &str) {
    wait_until(&format!("the rollout says {said:?}"), CAP, || {
        let rolled_out = &ground.data_plane()["status"]["rollout"]["conditions"][0];
        let message = rolled_out["message"].as_str().unwrap_or_default();
        if message.contains(said) { Ok(()) } else { Err(rolled_out.to_string()) }
    });
}

#[test]
fn a_preview_is_asked_which_version_and_flavor_it_runs() {
    if !service_path::inside() {
        return;
    }
    let ground = Ground::new(definition("ours").expect("our own"));
    ground.produce();
    ground.create(spec("kong:3.8"));
    ground.await_rolled_out("WaitingForChange");
    // The header of the status API tells the version, without any certificate.
    stage(&ground, &json!({"testbed.interlock.dev/kong-version": "3.4.1"}));
    await_said(&ground, "runs Kong 3.4.1, and its image is kong:3.9");
    stage(
        &ground,
        &json!({"testbed.interlock.dev/kong-version": null, "testbed.interlock.dev/kong-baked": "expressions"}),
    );
    ground.await_rolled_out("AwaitingPromotion");
    assert_eq!(ground.kong.asked(), [""; 0], "the admin API needs a certificate");
    await_said(&ground, "were not asked for their router flavor, as Interlock may not make Secret");

    // Where the certificate is ours, the admin API tells the flavor that the image has.
    grant(&ground);
    await_secret(&ground, "is made", |_| true);
    await_said(&ground, "runs with router flavor expressions");
    let asked = ground.kong.asked();
    assert!(
        asked.iter().all(|pod| pod.starts_with("dataplane-edge-green")) && !asked.is_empty(),
        "{asked:?}"
    );
    stage(&ground, &json!({"testbed.interlock.dev/kong-baked": null}));
    let asked = ground.await_rolled_out("AwaitingPromotion");
    assert_eq!(asked["status"]["rollout"]["conditions"][0]["message"], "");
}
