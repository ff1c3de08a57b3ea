//! The accept loop: TLS, timeouts, limits and drain around any router.

use std::convert::Infallible;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use http::{HeaderValue, Request, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::callers::{Caller, Callers};
use super::client_auth::ClientCertificate;
use super::connection_timeouts::{ConnectionPhase, PhaseClock, Timed};
use super::limits::Limits;
use super::open_connections::{OpenConnection, OpenConnections};
use super::shutdown::Shutdown;
use super::tls::Tls;
use crate::telemetry::metrics::{Cap, Metrics};

/// One port and its router.
#[derive(Clone)]
pub struct Port {
    /// The router; separate, so that tests need no socket.
    pub app: Router,
    /// TLS, or plain HTTP.
    pub tls: Option<Tls>,
    /// Identifies the API server, whose connections are never evicted.
    pub callers: Arc<Callers>,
    /// Bounds.
    pub limits: Limits,
    /// The state of the shutdown.
    pub shutdown: Shutdown,
    /// Counts refusals.
    pub metrics: Arc<Metrics>,
}

/// A TLS record of the largest size: rustls by itself reads 4 KiB at a time, three times for a usual
/// review.
const READ_AHEAD: usize = 16 * 1024 + 256 + 5;

/// Connections that wait for a place.
const WAITING: usize = 64;

/// Longest wait for requests in flight once the port is closed.
pub const DRAIN: Duration = Duration::from_secs(30);

impl Port {
    /// Accepts until the port closes, then lets the requests in flight finish, at most `drain`.
    pub async fn serve(self, listener: TcpListener, drain: Duration) {
        let open = OpenConnections::new(self.limits.bounds(), self.metrics.clone());
        let connections = TaskTracker::new();
        let cut = CancellationToken::new();
        let waiting = Arc::new(Semaphore::new(WAITING));
        loop {
            let (stream, address) = tokio::select! {
                biased;
                () = self.shutdown.closing() => break,
                accepted = accept(&listener) => accepted,
            };
            let (close, exempt) = (cut.child_token(), self.callers.is_api_server(address));
            if let Some(opened) = open.open_now(address, exempt, &close) {
                let connection = self.connection(&open, address, opened);
                connections.spawn(async move { close.run_until_cancelled(connection.run(stream)).await });
                continue;
            }
            self.metrics.refused(Cap::Connections);
            // It waits for a place in a task of its own; above the limit of waiting connections it is closed.
            let place = waiting.clone().try_acquire_owned().ok();
            if place.is_none() && !exempt {
                continue;
            }
            let (port, all) = (self.clone(), open.clone());
            connections.spawn(async move {
                let opened = all.open(address, exempt, close.clone());
                let Ok(opened) = tokio::time::timeout(port.limits.handshake, opened).await else { return };
                drop(place);
                let connection = port.connection(&all, address, opened);
                close.run_until_cancelled(connection.run(stream)).await;
            });
        }
        drop(listener);
        connections.close();
        if tokio::time::timeout(drain, connections.wait()).await.is_err() {
            tracing::warn!(open = connections.len(), "connections still open after the drain are cut");
            cut.cancel();
            connections.wait().await;
        }
    }
}

impl Port {
    fn connection(&self, all: &OpenConnections, address: IpAddr, opened: OpenConnection) -> Connection {
        let (port, all, open) = (self.clone(), all.clone(), Arc::new(opened));
        Connection { port, all, address, open, phase_clock: PhaseClock::start() }
    }
}

/// The next connection; retries after errors of single ones (reset before accept, no file descriptor).
async fn accept(listener: &TcpListener) -> (TcpStream, IpAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => return (stream, address.ip().to_canonical()),
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

struct Connection {
    port: Port,
    all: OpenConnections,
    address: IpAddr,
    open: Arc<OpenConnection>,
    phase_clock: PhaseClock,
}

impl Connection {
    async fn run(self, stream: TcpStream) {
        // Answers are small and complete: Nagle's algorithm would only delay them.
        let _ = stream.set_nodelay(true);
        match &self.port.tls {
            None => self.serve(stream, None).await,
            Some(tls) => self.handshake(tls.current(), stream).await,
        }
    }

    async fn handshake(&self, config: Arc<rustls::ServerConfig>, stream: TcpStream) {
        let stream = BufReader::with_capacity(READ_AHEAD, stream);
        let handshake = TlsAcceptor::from(config).accept(stream);
        match tokio::time::timeout(self.port.limits.handshake, handshake).await {
            Ok(Ok(stream)) => {
                let shown = stream.get_ref().1.peer_certificates().and_then(ClientCertificate::new);
                if shown.is_some() && self.port.callers.is_certified(shown.as_ref()) {
                    self.open.exempt();
                }
                self.serve(stream, shown).await;
            }
            Ok(Err(error)) => {
                self.port.metrics.refused(Cap::Handshake);
                tracing::debug!(%error, "TLS handshake failed");
            }
            Err(_) => self.port.metrics.refused(Cap::HandshakeDeadline),
        }
    }

    async fn serve<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        certificate: Option<ClientCertificate>,
    ) {
        let io = TokioIo::new(Timed::new(stream, self.phase_clock.clone(), self.open.clone()));
        let caller = Arc::new(Caller { address: self.address, certificate, connection: self.open.clone() });
        let service = service_fn(|request| self.exchange(request, caller.clone()));
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .serve_connection(io, service);
        tokio::pin!(connection);
        let in_the_way = || self.all.len() * 2 > self.port.limits.connections && !self.open.is_pooled();
        let expired = self.phase_clock.expired(&self.port.limits, in_the_way);
        tokio::pin!(expired);
        let mut closing = false;
        loop {
            tokio::select! {
                result = &mut connection => {
                    if let Err(error) = result {
                        tracing::debug!(%error, "connection ended");
                    }
                    return;
                }
                phase = &mut expired => {
                    self.port.metrics.refused(match phase {
                        ConnectionPhase::Unused | ConnectionPhase::Idle => Cap::Idle,
                        ConnectionPhase::Headers => Cap::HeadersDeadline,
                        ConnectionPhase::Exchange | ConnectionPhase::Answering => Cap::ExchangeDeadline,
                    });
                    return;
                }
                () = self.port.shutdown.closing(), if !closing => {
                    closing = true;
                    connection.as_mut().graceful_shutdown();
                }
            }
        }
    }

    /// One request; a panic in it answers 500 and affects no other.
    async fn exchange(
        &self,
        mut request: Request<Incoming>,
        caller: Arc<Caller>,
    ) -> Result<Response, Infallible> {
        self.phase_clock.enter(ConnectionPhase::Exchange);
        self.open.reading();
        request.extensions_mut().insert(caller);
        // With both a length and chunks, a proxy may end this request elsewhere: bytes after it are never
        // read as another request. The API server always sends a length.
        let chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
        let answer = self.port.app.clone().oneshot(request.map(Body::new));
        let mut response = match AssertUnwindSafe(answer).catch_unwind().await {
            Ok(Ok(response)) => response,
            Err(_) => {
                self.port.metrics.panicked();
                (StatusCode::INTERNAL_SERVER_ERROR, "internal error: this request made Interlock panic\n")
                    .into_response()
            }
        };
        if chunked || self.port.shutdown.is_lingering() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        self.phase_clock.enter(ConnectionPhase::Answering);
        self.open.sending();
        Ok(response)
    }
}
