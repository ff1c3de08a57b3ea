//! A webhook that does what a test tells it, and remembers what it was asked.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Client, block_on, spawn};

/// One call of the API server.
#[derive(Clone, Debug)]
pub struct Call {
    pub path: String,
    pub headers: http::HeaderMap,
    pub version: http::Version,
    /// The whole AdmissionReview.
    pub review: Value,
}

impl Call {
    /// A field of the request, by JSON pointer: `at("/object/metadata/uid")`.
    pub fn at(&self, pointer: &str) -> &Value {
        self.review["request"].pointer(pointer).unwrap_or(&Value::Null)
    }
}

/// What the webhook sends back.
pub enum Reaction {
    /// A response; uid and allowed are filled in where absent.
    Respond(Value),
    /// Exactly this body, with this HTTP status.
    Raw(u16, String),
    /// This status with `Retry-After: 1`.
    Later(u16),
    /// No answer at all.
    Silence,
}

impl Reaction {
    pub fn allow() -> Self {
        Self::Respond(json!({}))
    }

    /// `status` as in AdmissionResponse.
    pub fn deny(status: &Value) -> Self {
        Self::Respond(json!({"allowed": false, "status": status}))
    }

    /// A JSON patch.
    pub fn patch(patch: &Value) -> Self {
        let patch = base64::engine::general_purpose::STANDARD.encode(patch.to_string());
        Self::Respond(json!({"patchType": "JSONPatch", "patch": patch}))
    }
}

type Script = Arc<Mutex<Box<dyn FnMut(&Call) -> Reaction + Send>>>;

/// An HTTPS server on a loopback port.
pub struct Scripted {
    port: u16,
    ca: String,
    calls: Arc<Mutex<Vec<Call>>>,
    script: Script,
    server: tokio::task::JoinHandle<()>,
}

impl Scripted {
    /// Starts one that allows everything.
    pub fn start() -> Self {
        let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let key = rustls::pki_types::PrivateKeyDer::try_from(pair.signing_key.serialize_der());
        let listener = block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let tls = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![pair.cert.der().clone()], key.expect("a key"))
            .expect("TLS");
        let port = listener.local_addr().expect("an address").port();
        let calls = Arc::<Mutex<Vec<Call>>>::default();
        let script: Script = Arc::new(Mutex::new(Box::new(|_| Reaction::allow())));
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
        let server = spawn(accept(listener, acceptor, calls.clone(), script.clone()));
        Self { port, ca: pair.cert.pem(), calls, script, server }
    }

    /// What it does from now on.
    pub fn script(&self, script: impl FnMut(&Call) -> Reaction + Send + 'static) {
        *self.script.lock().expect("the script") = Box::new(script);
    }

    /// Forgets the calls so far, and gives them.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut *self.calls.lock().expect("the calls"))
    }

    /// `clientConfig` by URL.
    pub fn client_config(&self, path: &str) -> Value {
        let bundle = base64::engine::general_purpose::STANDARD.encode(&self.ca);
        json!({"url": format!("https://127.0.0.1:{}{path}", self.port), "caBundle": bundle})
    }

    /// Registers it for one resource in one namespace, `kind` being `Mutating` or `Validating`;
    /// the path that it is called by is the kind in lower case. Waits until it is called.
    pub fn register(&self, admin: &Client, kind: &str, name: &str, namespace: &str, rule: &Value) {
        let path = format!("/{}", kind.to_lowercase());
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": format!("{kind}WebhookConfiguration"),
            "metadata": {"name": name},
            "webhooks": [{
                "name": format!("{name}.testbed.interlock.dev"),
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "timeoutSeconds": 2,
                "failurePolicy": "Fail",
                "clientConfig": self.client_config(&path),
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [rule],
            }],
        });
        let resource = format!("{}webhookconfigurations", kind.to_lowercase());
        admin.post(&format!("/apis/admissionregistration.k8s.io/v1/{resource}"), &configuration).ok();
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn accept(
    listener: TcpListener,
    tls: tokio_rustls::TlsAcceptor,
    calls: Arc<Mutex<Vec<Call>>>,
    script: Script,
) {
    while let Ok((socket, _)) = listener.accept().await {
        let (tls, calls, script) = (tls.clone(), calls.clone(), script.clone());
        spawn(async move {
            let Ok(stream) = tls.accept(socket).await else { return };
            let service =
                hyper::service::service_fn(move |request| answer(request, calls.clone(), script.clone()));
            let io = hyper_util::rt::TokioIo::new(stream);
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    calls: Arc<Mutex<Vec<Call>>>,
    script: Script,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let review: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let call = Call { path: head.uri.to_string(), headers: head.headers, version: head.version, review };
    let reaction = script.lock().expect("the script")(&call);
    let uid = call.at("/uid").clone();
    calls.lock().expect("the calls").push(call);
    let mut response = Response::builder().header("Content-Type", "application/json");
    let (code, body) = match reaction {
        Reaction::Respond(mut response) => {
            for (field, default) in [("uid", uid), ("allowed", json!(true))] {
                if response.get(field).is_none() {
                    response[field] = default;
                }
            }
            let review =
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            (200, review.to_string())
        }
        Reaction::Raw(code, body) => (code, body),
        Reaction::Later(code) => {
            response = response.header("Retry-After", "1");
            (code, "later".to_owned())
        }
        Reaction::Silence => {
            // Longer than the caller waits.
            tokio::time::sleep(Duration::from_secs(30)).await;
            (500, String::new())
        }
    };
    Ok(response.status(code).body(Full::new(Bytes::from(body))).expect("a response"))
}
