//! A webhook that answers the same to all reviews of a namespace, registered in both phases.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use interlock::server::webhook_routes::Reviewer;
use interlock_core::admission::{AdmissionAnswer, BadReview, CacheWait, WebhookEndpoint};
use interlock_core::api::meta;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::results;
use crate::server;
use crate::support::Client;
use crate::support::interlock::apply;

/// The stamp that is written in each namespace, if any.
pub type Stamps<'a> = BTreeMap<&'a str, Option<String>>;

/// The process that answers; killed when dropped.
pub struct Constant(Child);

impl Constant {
    /// Starts it and registers it for these namespaces.
    pub fn start(admin: &Client, stamps: &Stamps<'_>) -> Self {
        let folder = results::folder().join("constant");
        let made = Command::new("certs/make").arg(&folder).arg("127.0.0.1").stdout(Stdio::null()).status();
        assert!(made.expect("certs/make runs").success(), "certs/make failed");
        let patches: BTreeMap<&str, String> =
            stamps.iter().filter_map(|(name, stamp)| Some((*name, patch(stamp.as_ref()?)))).collect();
        std::fs::write(folder.join(PATCHES), json!(patches).to_string())
            .expect("a file in a folder of our own");
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .arg("serve")
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut address = String::new();
        let output = child.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut address).expect("the server says where it listens");
        register(admin, &stamps.keys().copied().collect::<Vec<_>>(), address.trim(), &folder);
        Self(child)
    }
}

impl Drop for Constant {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// File of the patches by namespace.
const PATCHES: &str = "patches.json";

/// The one operation that writes a stamp, as an answer has it.
fn patch(stamp: &String) -> String {
    let operation =
        json!([{"op": "add", "path": "/metadata/annotations", "value": {meta::LAST_APPLIED_SPEC: stamp}}]);
    STANDARD.encode(operation.to_string())
}

/// Answers until its input ends.
pub fn serve(folder: &Path) {
    let patches = std::fs::read(folder.join(PATCHES)).expect("the patches");
    let patches = serde_json::from_slice(&patches).expect("strings by namespace");
    server::serve(Arc::new(Answers(patches)), folder);
}

struct Answers(BTreeMap<String, String>);

#[derive(Deserialize)]
struct Review<'a> {
    #[serde(borrow)]
    request: Request<'a>,
}

#[derive(Deserialize)]
struct Request<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow)]
    namespace: Cow<'a, str>,
}

impl Reviewer for Answers {
    fn decide<'a>(
        &self,
        endpoint: WebhookEndpoint,
        body: &'a [u8],
        _: CacheWait,
    ) -> Result<AdmissionAnswer<'a>, BadReview> {
        let review: Review<'_> = serde_json::from_slice(body).map_err(|e| BadReview(e.to_string()))?;
        let patch = self.0.get(review.request.namespace.as_ref()).filter(|_| endpoint.patches());
        Ok(server::allowed(review.request.uid, patch.map(String::as_str)))
    }
}

fn register(admin: &Client, namespaces: &[&str], address: &str, folder: &Path) {
    let authority = STANDARD.encode(std::fs::read(folder.join("ca.crt")).expect("a CA"));
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
                "namespaceSelector": {"matchExpressions": [
                    {"key": "kubernetes.io/metadata.name", "operator": "In", "values": namespaces},
                ]},
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
