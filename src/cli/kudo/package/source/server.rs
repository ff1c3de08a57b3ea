//! A server of files, for tests.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use http::{Response, Uri};
use tokio::runtime::Runtime;

/// A server on a port of its own, until it is dropped.
pub(in crate::cli::kudo::package) struct Server {
    address: SocketAddr,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    /// The paths that were asked for.
    pub(in crate::cli::kudo::package) asked: Arc<Mutex<Vec<String>>>,
    runtime: Option<Runtime>,
}

impl Server {
    /// A server that answers so where it has no file.
    pub(in crate::cli::kudo::package) fn answering(
        other: impl Fn(&str) -> Response<Body> + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let files: Arc<Mutex<BTreeMap<String, Vec<u8>>>> = Arc::default();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (held, paths) = (Arc::clone(&files), Arc::clone(&asked));
        let answer = move |uri: Uri| {
            paths.lock().unwrap().push(uri.path().to_owned());
            let file = held.lock().unwrap().get(uri.path()).cloned();
            let answer = file.map_or_else(|| other(uri.path()), |file| Response::new(Body::from(file)));
            async move { answer }
        };
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, Router::new().fallback(answer)).await
        });
        Self { address, files, asked, runtime: Some(runtime) }
    }

    /// A server of files.
    pub(in crate::cli::kudo::package) fn start() -> Self {
        Self::answering(|_| Response::builder().status(404).body(Body::empty()).unwrap())
    }

    pub(in crate::cli::kudo::package) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Serves a file.
    pub(in crate::cli::kudo::package) fn put(&self, path: &str, content: impl Into<Vec<u8>>) -> String {
        self.files.lock().unwrap().insert(path.to_owned(), content.into());
        self.url(path)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
