//! A way to the API server on which a test answers some writes itself, for as long as it wants: an API server that is
//! overloaded, that fails, or on which somebody else is always faster.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::way::{Way, dial};
use super::{Client, Cluster, spawn};

type Body = Either<Incoming, Full<Bytes>>;
type Refusals = Arc<Mutex<Vec<Refusal>>>;

/// What is answered instead of the API server.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub code: u16,
    /// The reason of the Status.
    pub reason: &'static str,
    pub message: &'static str,
    /// Of each write whose path contains this.
    pub path: String,
}

/// Takes plain HTTP on loopback and passes it on over TLS; upgrades do not pass.
pub struct Answering {
    kubeconfig: PathBuf,
    refusals: Refusals,
    server: tokio::task::JoinHandle<()>,
}

impl Answering {
    /// Starts one for a user who has a token; everything passes.
    pub fn start(cluster: &Cluster, user: &Client) -> Self {
        let Way { kubeconfig, listener, address, tls } = Way::open(cluster, user, "answering");
        let refusals = Refusals::default();
        let given = refusals.clone();
        let server = spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                spawn(connection(socket, address.clone(), tls.clone(), given.clone()));
            }
        });
        Self { kubeconfig, refusals, server }
    }

    /// From now on answers this.
    pub fn refuse(&self, refusal: Refusal) {
        lock(&self.refusals).push(refusal);
    }

    /// Lets writes pass again whose path contains this.
    pub fn pass(&self, path: &str) {
        lock(&self.refusals).retain(|refusal| refusal.path != path);
    }

    /// The flag with which a process of Interlock goes this way.
    pub fn flag(&self) -> String {
        format!("--kubeconfig={}", self.kubeconfig.display())
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Nothing panics half-way through a change of the list.
fn lock(refusals: &Refusals) -> MutexGuard<'_, Vec<Refusal>> {
    refusals.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection, which carries one request at a time, and a connection to the API server of its own.
async fn connection(down: TcpStream, address: String, tls: TlsConnector, refusals: Refusals) {
    let Some(up) = dial(&address, &tls).await else { return };
    let Ok((sender, driver)) = hyper::client::conn::http1::handshake(TokioIo::new(up)).await else { return };
    let driver = spawn(driver);
    let sender = Arc::new(tokio::sync::Mutex::new(sender));
    let service =
        hyper::service::service_fn(move |request| answer(request, sender.clone(), refusals.clone()));
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(down), service).await;
    driver.abort();
}

async fn answer(
    request: Request<Incoming>,
    up: Arc<tokio::sync::Mutex<SendRequest<Incoming>>>,
    refusals: Refusals,
) -> Result<Response<Body>, hyper::Error> {
    let path = request.uri().path();
    let writes = request.method() != Method::GET;
    let found = lock(&refusals).iter().find(|refusal| writes && path.contains(&refusal.path)).cloned();
    match found {
        Some(refusal) => {
            // The client has sent the whole of it before it reads the answer.
            let _ = request.into_body().collect().await;
            Ok(refused(&refusal).map(Either::Right))
        }
        None => Ok(up.lock().await.send_request(request).await?.map(Either::Left)),
    }
}

/// As kube-apiserver says it.
fn refused(refusal: &Refusal) -> Response<Full<Bytes>> {
    let Refusal { code, reason, message, .. } = refusal;
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    let mut response = Response::builder().header("Content-Type", "application/json");
    if *code == 429 {
        response = response.header("Retry-After", "1");
    }
    let code = StatusCode::from_u16(*code).expect("a status");
    response.status(code).body(Full::new(Bytes::from(status.to_string()))).expect("a response")
}
