//! A way to the API server on which watches arrive late; everything else passes at once.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kube::config::Kubeconfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::{Client, Cluster, block_on, spawn, suffix};

/// Takes plain HTTP on loopback and passes it on over TLS; what a watch answers is held back.
pub struct HeldBack {
    kubeconfig: PathBuf,
    server: tokio::task::JoinHandle<()>,
}

impl HeldBack {
    /// Starts one for a user who has a token.
    pub fn start(cluster: &Cluster, user: &Client, delay: Duration) -> Self {
        let mut file = Kubeconfig::read_from(user.kubeconfig()).expect("a kubeconfig");
        let entry = file.clusters[0].cluster.as_mut().expect("a cluster");
        let address =
            entry.server.as_deref().and_then(|url| url.strip_prefix("https://")).expect("an address");
        let address = address.trim_end_matches('/').to_owned();
        let authority = entry.certificate_authority_data.take().expect("its CA");
        let tls = connector(&authority);
        let listener = block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let here = listener.local_addr().expect("an address");
        entry.server = Some(format!("http://{here}"));
        let kubeconfig = cluster.dir().join(format!("held-back-{}.json", suffix()));
        std::fs::write(&kubeconfig, serde_json::to_string(&file).expect("JSON")).expect("a kubeconfig");
        let server = spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                spawn(pass(socket, address.clone(), tls.clone(), delay));
            }
        });
        Self { kubeconfig, server }
    }

    /// The flag with which a process of Interlock goes this way.
    pub fn flag(&self) -> String {
        format!("--kubeconfig={}", self.kubeconfig.display())
    }
}

impl Drop for HeldBack {
    fn drop(&mut self) {
        self.server.abort();
    }
}

pub(super) fn connector(authority: &str) -> TlsConnector {
    use base64::Engine as _;
    let pem = base64::engine::general_purpose::STANDARD.decode(authority).expect("base64");
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.expect("PEM")).expect("a CA");
    }
    let config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// One connection, which carries one request at a time.
async fn pass(down: TcpStream, address: String, tls: TlsConnector, delay: Duration) {
    let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host).to_owned();
    let Ok(name) = ServerName::try_from(host) else { return };
    let Ok(socket) = TcpStream::connect(&address).await else { return };
    let Ok(up) = tls.connect(name, socket).await else { return };
    let (from_server, to_server) = tokio::io::split(up);
    let (from_client, to_client) = down.into_split();
    let watching = Arc::new(AtomicBool::new(false));
    let (later, due) = mpsc::unbounded_channel();
    tokio::select! {
        () = requests(from_client, to_server, &watching) => {}
        // The server may end the connection while the last of it is still held back.
        _ = async { tokio::join!(answers(from_server, later, &watching, delay), deliver(due, to_client)) } => {}
    }
}

/// Passes requests on, and notes whether the latest is a watch.
async fn requests(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, watching: &AtomicBool) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let line = buffer[..read].split(|byte| *byte == b'\r').next().unwrap_or_default();
        if line.ends_with(b"HTTP/1.1") {
            let watch = line.windows(10).any(|part| part == b"watch=true");
            watching.store(watch, Ordering::SeqCst);
        }
        if to.write_all(&buffer[..read]).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
}

async fn answers(
    mut from: impl AsyncRead + Unpin,
    later: mpsc::UnboundedSender<(Instant, Vec<u8>)>,
    watching: &AtomicBool,
    delay: Duration,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let wait = if watching.load(Ordering::SeqCst) { delay } else { Duration::ZERO };
        if later.send((Instant::now() + wait, buffer[..read].to_vec())).is_err() {
            return;
        }
    }
}

async fn deliver(mut due: mpsc::UnboundedReceiver<(Instant, Vec<u8>)>, mut to: impl AsyncWrite + Unpin) {
    while let Some((when, bytes)) = due.recv().await {
        tokio::time::sleep_until(when).await;
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}
