//! KUDO's own manager, v0.19, on a control plane: its definitions, its webhook and its process. It listens on ports
//! that cannot be chosen, so its tests run inside a network namespace.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Client, Cluster, Output, peers, process, testbed, wait_until};

const CAP: Duration = Duration::from_secs(60);
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
/// As `kubectl kudo init` names it.
const CONFIGURATION: &str = "kudo-manager-instance-admission-webhook-config";
const WEBHOOK: &str = "instance-admission.kudo.dev";

/// Who the manager is to the API server.
pub const USER: &str = "kudo-manager";

/// KUDO's client.
pub fn kudo(user: &Client, namespace: &str, arguments: &[&str]) -> Output {
    user.command(&peers::kubectl_kudo(), &[arguments, &["-n", namespace]].concat(), "")
}

/// What `kubectl kudo init` leaves on a cluster, where that still works.
pub struct Manager<'a> {
    cluster: &'a Cluster,
    certificates: PathBuf,
    bundle: String,
    child: Option<Child>,
}

impl<'a> Manager<'a> {
    /// Its definitions by its own client, its webhook, and its process; waits until it guards.
    pub fn install(cluster: &'a Cluster) -> Self {
        let admin = cluster.admin();
        admin.command(&peers::kubectl_kudo(), &["init", "--crd-only"], "").ok();
        crate::support::interlock::await_definitions(&admin);
        Self::on(cluster)
    }

    /// The same where the definitions are there.
    pub fn on(cluster: &'a Cluster) -> Self {
        let certificates = cluster.dir().join("kudo-certificates");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("certs/make");
        let made = Command::new(script).arg(&certificates).arg("127.0.0.1").stderr(Stdio::null()).output();
        let made = made.expect("certs/make runs");
        assert!(made.status.success(), "certs/make failed");
        let bundle = String::from_utf8(made.stdout).expect("base64").trim().to_owned();
        let mut manager = Self { cluster, certificates, bundle, child: None };
        manager.start();
        manager.register();
        manager.await_asked();
        manager
    }

    /// Starts the process, as scaling its StatefulSet to 1 does.
    pub fn start(&mut self) {
        let log = File::options().create(true).append(true).open(self.log()).expect("its log");
        let mut command = process::tethered(&testbed::BIN.join("testbed"), &peers::kudo_manager());
        command
            .env("KUBECONFIG", self.cluster.user(USER, &["system:masters"]).kubeconfig())
            .env("KUDO_CERT_DIR", &self.certificates)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("its log"))
            .stderr(log);
        self.child = Some(process::spawn(command).expect("KUDO's manager starts"));
    }

    /// Ends the process, as scaling its StatefulSet to 0 does. Its webhook then refuses every write of an Instance.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Registers its webhook. `init` writes the configuration in a version that is gone; this is the same in v1.
    pub fn register(&self) {
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": CONFIGURATION},
            "webhooks": [{
                "name": WEBHOOK,
                "admissionReviewVersions": ["v1beta1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "matchPolicy": "Equivalent",
                "clientConfig": {
                    "url": "https://127.0.0.1:443/admit-kudo-dev-v1beta1-instance",
                    "caBundle": self.bundle,
                },
                "rules": [{
                    "apiGroups": ["kudo.dev"], "apiVersions": ["v1beta1"], "resources": ["instances"],
                    "operations": ["CREATE", "UPDATE"], "scope": "Namespaced",
                }],
            }],
        });
        self.cluster.admin().post(WEBHOOKS, &configuration).ok();
    }

    /// Waits until its webhook answers.
    pub fn await_asked(&self) {
        wait_until("KUDO's webhook is asked", CAP, || {
            let said = self.try_write();
            if said.contains(WEBHOOK) && said.contains("denied the request") { Ok(()) } else { Err(said) }
        });
    }

    /// Takes its webhook away, and waits until nobody asks it any more.
    pub fn unregister(&self) {
        self.cluster.admin().delete(&format!("{WEBHOOKS}/{CONFIGURATION}")).ok();
        wait_until("KUDO's webhook is not asked any more", CAP, || {
            let said = self.try_write();
            if said.contains(WEBHOOK) { Err(said) } else { Ok(()) }
        });
    }

    /// Both.
    pub fn remove(mut self) {
        self.stop();
        self.unregister();
    }

    /// What is answered to an Instance of a package that is not there; nothing is stored.
    pub fn try_write(&self) -> String {
        let object: Value = json!({
            "apiVersion": "kudo.dev/v1beta1", "kind": "Instance",
            "metadata": {"generateName": "asked-"}, "spec": {"operatorVersion": {"name": "nothing"}},
        });
        let path = "/apis/kudo.dev/v1beta1/namespaces/default/instances?dryRun=All";
        self.cluster.admin().post(path, &object).to_string()
    }

    fn log(&self) -> PathBuf {
        self.cluster.dir().join("logs/kudo-manager.log")
    }
}

impl Drop for Manager<'_> {
    fn drop(&mut self) {
        self.stop();
        if std::thread::panicking() {
            let text = std::fs::read_to_string(self.log()).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            eprintln!("--- KUDO's manager\n{}", lines[lines.len().saturating_sub(40)..].join("\n"));
        }
    }
}
