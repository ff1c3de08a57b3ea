//! A way to the API server on which watches arrive late; everything else passes at once.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use super::way::{Way, dial};
use super::{Client, Cluster, spawn};

/// Takes plain HTTP on loopback and passes it on over TLS; what a watch answers is held back.
pub struct HeldBack {
    kubeconfig: PathBuf,
    server: tokio::task::JoinHandle<()>,
}

impl HeldBack {
    /// Starts one for a user who has a token.
    pub fn start(cluster: &Cluster, user: &Client, delay: Duration) -> Self {
        let Way { kubeconfig, listener, address, tls } = Way::open(cluster, user, "held-back");
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

/// One connection, which carries one request at a time.
async fn pass(down: TcpStream, address: String, tls: TlsConnector, delay: Duration) {
    let Some(up) = dial(&address, &tls).await else { return };
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
