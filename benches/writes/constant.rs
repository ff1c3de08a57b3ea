//! A webhook that answers a constant, registered in both phases for the Instances of a namespace.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use base64::Engine as _;
use interlock_core::api::meta;
use serde_json::{Value, json};

use crate::results;
use crate::support::Client;
use crate::support::interlock::apply;

/// The process that answers; killed when dropped.
pub struct Constant(Child);

impl Constant {
    /// Starts it and registers it.
    pub fn start(admin: &Client, namespace: &str) -> Self {
        let folder = results::folder().join("constant");
        let made = Command::new("certs/make").arg(&folder).arg("127.0.0.1").stdout(Stdio::null()).status();
        assert!(made.expect("certs/make runs").success(), "certs/make failed");
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["serve", "constant", "0"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut address = String::new();
        let output = child.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut address).expect("the server says where it listens");
        register(admin, namespace, address.trim(), &folder);
        Self(child)
    }
}

impl Drop for Constant {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn register(admin: &Client, namespace: &str, address: &str, folder: &Path) {
    let authority = std::fs::read(folder.join("ca.crt")).expect("a CA");
    let authority = base64::engine::general_purpose::STANDARD.encode(authority);
    let configuration = |kind: &str, path: &str| -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "constant"},
            "webhooks": [{
                "name": "constant.interlock.dev",
                "clientConfig": {"url": format!("https://{address}{path}"), "caBundle": authority},
                "rules": [{
                    "apiGroups": [meta::KUDO_GROUP], "apiVersions": ["v1beta1"], "resources": ["instances"],
                    "operations": ["CREATE", "UPDATE"],
                }],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 5,
            }],
        })
    };
    apply(
        admin,
        vec![
            configuration("MutatingWebhookConfiguration", "/mutate"),
            configuration("ValidatingWebhookConfiguration", "/validate"),
        ],
    );
}
