//! A way to the API server that ends after some writes of Instances: what comes after, of any
//! kind, is not answered. A process that goes this way is as good as killed between two writes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::random::Random;
use super::way::{Way, dial};
use super::{Client, Cluster, Interlock, count, spawn};

/// Lets a process die before its first write, before its second, and so on until it gets through; `make test` takes
/// every third, beginning at another one each time. `dies` gets the number of writes that pass, and says whether the
/// process died. The answer is how many it gets through with.
pub fn before_each_write(mut dies: impl FnMut(usize) -> bool) -> usize {
    let step = count(3, 1);
    let mut writes = Random::announced().below(step);
    while dies(writes) {
        writes += step;
    }
    writes
}

/// Takes plain HTTP on loopback and passes it on over TLS, until it is cut.
pub struct CutOff {
    kubeconfig: PathBuf,
    left: Arc<AtomicUsize>,
    server: tokio::task::JoinHandle<()>,
}

impl CutOff {
    /// Starts one for a user who has a token; it is not cut yet.
    pub fn start(cluster: &Cluster, user: &Client) -> Self {
        let Way { kubeconfig, listener, address, tls } = Way::open(cluster, user, "cut-off");
        let left = Arc::new(AtomicUsize::new(usize::MAX));
        let writes = left.clone();
        let server = spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                spawn(pass(socket, address.clone(), tls.clone(), writes.clone()));
            }
        });
        Self { kubeconfig, left, server }
    }

    /// Lets this many writes of Instances pass from now on, and then nothing.
    pub fn after(&self, writes: usize) {
        self.left.store(writes, Ordering::SeqCst);
    }

    /// Whether a write was kept back.
    pub fn is_cut(&self) -> bool {
        self.left.load(Ordering::SeqCst) == CUT
    }

    /// Lets everything pass again.
    pub fn mend(&self) {
        self.left.store(usize::MAX, Ordering::SeqCst);
    }

    /// Kills the process that was cut off, and starts it again with nothing in its way.
    pub fn restart(&self, process: &Interlock) {
        process.kill();
        self.mend();
        process.start();
        process.await_ready();
    }

    /// The flag with which a process of Interlock goes this way.
    pub fn flag(&self) -> String {
        format!("--kubeconfig={}", self.kubeconfig.display())
    }
}

impl Drop for CutOff {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Says that a write was kept back; no test lets that many pass.
const CUT: usize = usize::MAX - 1;

/// One connection, which carries one request at a time.
async fn pass(down: TcpStream, address: String, tls: TlsConnector, left: Arc<AtomicUsize>) {
    let Some(up) = dial(&address, &tls).await else { return };
    let (mut from_server, to_server) = tokio::io::split(up);
    let (from_client, mut to_client) = down.into_split();
    tokio::select! {
        () = requests(from_client, to_server, &left) => {}
        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
    }
}

/// Passes requests on; ends at the first that is not to pass.
async fn requests(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, left: &AtomicUsize) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let line = buffer[..read].split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        if line.ends_with("HTTP/1.1") {
            let write =
                ["PATCH ", "PUT "].iter().any(|verb| line.starts_with(verb)) && line.contains("/instances/");
            let step = |left: usize| match left {
                CUT => None,
                0 if write => Some(CUT),
                left if write && left < CUT => Some(left - 1),
                left => Some(left),
            };
            match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, step) {
                Err(_) => return,
                Ok(0) if write => return,
                Ok(_) => {}
            }
        }
        if to.write_all(&buffer[..read]).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
}
