//! Mutual TLS between an API server and the webhook, as docs/webhook-port.md sets it up.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use serde_json::json;

use super::rotation;
use crate::support::hostile_caller::HostileCaller;
use crate::support::{Cluster, announce, block_on, count, service_path, wait_for, wait_until};

const CAP: Duration = Duration::from_secs(60);

/// A folder with what both sides need.
struct Files {
    dir: tempfile::TempDir,
}

impl Files {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// A CA, a certificate of it for the API server, and the configuration that says when to show it.
    fn make() -> Self {
        let files = Self { dir: tempfile::tempdir().unwrap() };
        let (ca, issuer) = authority();
        files.write("client-ca.crt", &ca);
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        files.write("client.crt", &params.signed_by(&key, &issuer).unwrap().pem());
        files.write("client.key", &key.serialize_pem());
        let users = json!([{"name": "interlock.interlock-system.svc", "user": {
            "client-certificate": files.path("client.crt"), "client-key": files.path("client.key"),
        }}]);
        let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "users": users});
        files.write("kubeconfig.json", &kubeconfig.to_string());
        let plugin = |name: &str| {
            json!({"name": name, "configuration": {
                "apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration",
                "kubeConfigFile": files.path("kubeconfig.json"),
            }})
        };
        // Some providers let critical pods run only where a quota permits them.
        let limited = json!([{"resource": "pods", "matchScopes": [{
            "scopeName": "PriorityClass", "operator": "In", "values": ["system-cluster-critical"],
        }]}]);
        let quota = json!({"name": "ResourceQuota", "configuration": {
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration",
            "limitedResources": limited,
        }});
        let configuration = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
            "plugins": [plugin("MutatingAdmissionWebhook"), plugin("ValidatingAdmissionWebhook"), quota],
        });
        files.write("admission.json", &configuration.to_string());
        files
    }

    fn cluster(&self) -> Cluster {
        let configuration =
            format!("--admission-control-config-file={}", self.path("admission.json").display());
        Cluster::own(&[
            "--service-path",
            "--advertise",
            service_path::API_SERVER,
            "--apiserver-arg",
            &configuration,
        ])
    }
}

fn authority() -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "API servers");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    (params.self_signed(&key).unwrap().pem(), Issuer::new(params, key))
}

/// What a caller without a certificate is answered.
fn anonymous(path: &str, body: Option<&str>) -> (u16, String) {
    let port: SocketAddr = format!("{}:9443", service_path::REPLICAS[0]).parse().unwrap();
    block_on(async {
        let mut caller = HostileCaller::connect(service_path::REPLICAS[2], port).await.expect("accepted");
        caller.ask(path, body).await.expect("an answer")
    })
}

fn replace(file: &Path, text: &str) {
    let fresh = file.with_extension("new");
    std::fs::write(&fresh, text).unwrap();
    std::fs::rename(fresh, file).unwrap();
}

#[test]
fn reviews_are_answered_to_the_api_server_and_health_to_everybody() {
    if !service_path::inside() {
        return;
    }
    let files = Files::make();
    let cluster = files.cluster();
    let ca = files.path("client-ca.crt");
    let flags = [
        &*format!("--client-ca={}", ca.display()),
        "--client-name=kube-apiserver",
        "--cert-interval=100ms",
        "--cert-lifetime=9s",
        "--ca-lifetime=18s",
    ];
    let _installed = service_path::install(&cluster, 1, &flags);
    // Both webhooks answer: an Instance is created, and runs its plan.
    let ns = rotation::ready(&cluster);
    assert_eq!(anonymous("/livez", None).0, 200);
    assert_eq!(anonymous("/readyz", None).0, 200);
    for path in ["/mutate", "/validate", "/admit-kudo-dev-v1beta1-instance"] {
        let (status, text) = anonymous(path, Some("{}"));
        assert_eq!(status, 401, "{path}: {text}");
        assert!(text.contains("--client-ca"), "{text}");
    }

    // Our certificate and its CA are exchanged, and so is the CA of the callers.
    let (load, _) = rotation::half_load(&ns);
    let rotations = count(2, 50);
    for _ in 0..rotations {
        rotation::await_exchange(&cluster);
    }
    let (trusted, (other, _)) = (std::fs::read_to_string(&ca).unwrap(), authority());
    replace(&ca, &format!("{trusted}{other}"));
    let before = load.calls();
    wait_for("calls go on", CAP, || load.calls() > before + 50);
    let calls = load.end();
    announce(&format!(
        "counted: {rotations} exchanges of the CA, {calls} dry-run updates over mutual TLS, 0 failed"
    ));

    // What the API server shows is of no trusted CA any more: refused, also on open connections.
    let path = format!("{}?dryRun=All", ns.path("kudo.dev/v1beta1", "instances", "quiet"));
    let write = || ns.admin().merge_patch(&path, &json!({"metadata": {"annotations": {"a": "b"}}}));
    replace(&ca, &other);
    let refused = wait_until("the API server is refused", CAP, || {
        let answer = write();
        if answer.code == 500 { Ok(answer.message().to_owned()) } else { Err(answer.to_string()) }
    });
    assert!(refused.contains("failed calling webhook") && refused.contains("--client-ca"), "{refused}");
    announce(&format!("counted: without a trusted certificate a write is answered {refused:?}"));
    replace(&ca, &trusted);
    wait_for("it is answered again", CAP, || write().code == 200);

    critical_pods_are_permitted(&cluster);
}

/// Where an API server limits critical pods, ours are permitted by the quota that is rendered.
fn critical_pods_are_permitted(cluster: &Cluster) {
    if !cluster.has_workloads() {
        return;
    }
    let admin = cluster.admin();
    let pod = |namespace: &str| {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "critical-"},
            "spec": {
                "priorityClassName": "system-cluster-critical",
                "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [{"name": "c", "image": "i", "securityContext": {
                    "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
                }}],
            },
        });
        admin.post(&format!("/api/v1/namespaces/{namespace}/pods?dryRun=All"), &pod)
    };
    wait_until("critical pods may run beside Interlock", CAP, || {
        let answer = pod("interlock-system");
        if answer.code == 201 { Ok(()) } else { Err(answer.to_string()) }
    });
    let elsewhere = cluster.namespace("elsewhere");
    let refused = pod(elsewhere.name());
    assert_ne!(refused.code, 201, "{refused}");
    assert!(refused.message().contains("insufficient quota to match these scopes"), "{refused}");
}
