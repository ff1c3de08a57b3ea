//! A way to the API server with a gate: while it is closed, requests for some paths wait in front
//! of it, or are broken off.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;

use super::way::{Way, dial};
use super::{Client, Cluster, spawn};

/// Takes plain HTTP on loopback and passes it on over TLS.
pub struct Gate {
    kubeconfig: PathBuf,
    state: watch::Sender<State>,
    waiting: Arc<AtomicUsize>,
    server: tokio::task::JoinHandle<()>,
}

/// Which requests pass.
#[derive(Clone, Default)]
struct State {
    /// What a path contains that does not pass.
    closed: Option<&'static str>,
    /// Whether what does not pass is broken off, rather than made to wait.
    cut: bool,
    /// Another number breaks off all connections.
    broken: usize,
}

impl Gate {
    /// Starts an open one for a user who has a token.
    pub fn start(cluster: &Cluster, user: &Client) -> Self {
        let Way { kubeconfig, listener, address, tls } = Way::open(cluster, user, "gate");
        let (state, seen) = watch::channel(State::default());
        let waiting = Arc::new(AtomicUsize::new(0));
        let count = waiting.clone();
        let server = spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                spawn(pass(socket, address.clone(), tls.clone(), seen.clone(), count.clone()));
            }
        });
        Self { kubeconfig, state, waiting, server }
    }

    /// From now on requests wait whose path contains this; those that passed go on.
    pub fn close(&self, path: &'static str) {
        self.waiting.store(0, Ordering::SeqCst);
        self.state.send_modify(|state| (state.closed, state.cut) = (Some(path), false));
    }

    /// Breaks off every connection, and from now on each request whose path contains this.
    pub fn cut(&self, path: &'static str) {
        self.state.send_modify(|state| {
            (state.closed, state.cut) = (Some(path), true);
            state.broken += 1;
        });
    }

    /// How many requests have come to wait since it was closed.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Lets everything pass.
    pub fn open(&self) {
        self.state.send_modify(|state| state.closed = None);
    }

    /// The flag with which a process of Interlock goes this way.
    pub fn flag(&self) -> String {
        format!("--kubeconfig={}", self.kubeconfig.display())
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// One connection, which carries one request at a time.
async fn pass(
    down: TcpStream,
    address: String,
    tls: TlsConnector,
    state: watch::Receiver<State>,
    waiting: Arc<AtomicUsize>,
) {
    let Some(up) = dial(&address, &tls).await else { return };
    let (mut from_server, to_server) = tokio::io::split(up);
    let (from_client, mut to_client) = down.into_split();
    let mut breaks = state.clone();
    let before = breaks.borrow().broken;
    tokio::select! {
        () = requests(from_client, to_server, state, &waiting) => {}
        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
        _ = breaks.wait_for(|state| state.broken != before) => {}
    }
}

/// Passes requests on, each once it may pass.
async fn requests(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<State>,
    waiting: &AtomicUsize,
) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let line = buffer[..read].split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line).into_owned();
        if line.ends_with("HTTP/1.1") {
            let passes = |state: &State| state.closed.is_none_or(|path| !line.contains(path));
            let cut = state.borrow().cut;
            if !passes(&state.borrow()) {
                waiting.fetch_add(1, Ordering::SeqCst);
                if cut || state.wait_for(passes).await.is_err() {
                    return;
                }
            }
        }
        if to.write_all(&buffer[..read]).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
}
