//! Connection timeouts: the phase of a connection between two requests, and how long it may last.
//!
//! hyper's one timer counts from the moment it starts to wait for a request, so a deadline for slow headers
//! would also be the idle limit. Here the bytes themselves drive the clock: the first byte read while idle
//! starts the timeout of the headers, the flushed answer ends that of the exchange.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::limits::Limits;
use super::open_connections::OpenConnection;

/// The event that the connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionPhase {
    /// A first request.
    Unused,
    /// A further request.
    Idle,
    /// The rest of the headers.
    Headers,
    /// The body, the decision and the peer's reading of the answer.
    Exchange,
    /// The flush of the answer.
    Answering,
}

impl ConnectionPhase {
    const ALL: [Self; 5] = [Self::Unused, Self::Idle, Self::Headers, Self::Exchange, Self::Answering];

    fn deadline(self, limits: &Limits, in_the_way: bool) -> Duration {
        match self {
            Self::Unused if in_the_way => limits.idle_unused_when_crowded,
            Self::Unused | Self::Idle => limits.idle,
            Self::Headers => limits.headers,
            Self::Exchange | Self::Answering => limits.exchange,
        }
    }
}

/// The phase of one connection, shared by its socket, its requests and its watchdog.
#[derive(Clone, Debug)]
pub struct PhaseClock {
    origin: Instant,
    /// Milliseconds since `origin` in the upper bits, [`ConnectionPhase`] in the lowest three.
    state: Arc<AtomicU64>,
}

impl PhaseClock {
    /// A new connection.
    pub fn start() -> Self {
        Self { origin: Instant::now(), state: Arc::new(AtomicU64::new(ConnectionPhase::Unused as u64)) }
    }

    /// Enters a phase now.
    pub fn enter(&self, phase: ConnectionPhase) {
        let since = u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX >> 3);
        self.state.store((since << 3) | phase as u64, Ordering::Relaxed);
    }

    fn now(&self) -> (ConnectionPhase, Instant) {
        let state = self.state.load(Ordering::Relaxed);
        let index = usize::try_from(state & 7).unwrap_or(0);
        let phase = ConnectionPhase::ALL.get(index).copied().unwrap_or(ConnectionPhase::Unused);
        (phase, self.origin + Duration::from_millis(state >> 3))
    }

    /// Returns when one phase has lasted too long, with that phase.
    /// `in_the_way`: there are many others, and the API server's pool does not hold this one.
    pub async fn expired(&self, limits: &Limits, in_the_way: impl Fn() -> bool) -> ConnectionPhase {
        // Phases change without a notification, so it sleeps at most for the shortest limit.
        let glance = limits.headers.min(limits.exchange).min(limits.idle_unused_when_crowded);
        loop {
            let (phase, since) = self.now();
            let deadline = since + phase.deadline(limits, in_the_way());
            let now = Instant::now();
            if now >= deadline {
                return phase;
            }
            tokio::time::sleep_until(deadline.min(now + glance)).await;
        }
    }
}

/// A socket that reports its bytes to the clock.
pub struct Timed<S> {
    socket: S,
    phase_clock: PhaseClock,
    connection: Arc<OpenConnection>,
}

impl<S> Timed<S> {
    /// Wraps the socket of a connection.
    pub fn new(socket: S, phase_clock: PhaseClock, connection: Arc<OpenConnection>) -> Self {
        Self { socket, phase_clock, connection }
    }

    /// Tells of the bytes of an answer that were taken.
    fn wrote(&self, result: &Poll<io::Result<usize>>) {
        let some = matches!(result, Poll::Ready(Ok(bytes)) if *bytes > 0);
        if some && self.phase_clock.now().0 == ConnectionPhase::Answering {
            self.connection.progressed();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Timed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.socket).poll_read(cx, buf);
        if buf.filled().len() > before
            && matches!(self.phase_clock.now().0, ConnectionPhase::Unused | ConnectionPhase::Idle)
        {
            self.phase_clock.enter(ConnectionPhase::Headers);
        }
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Timed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.wrote(&result);
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.socket).poll_flush(cx);
        if result.is_ready() && self.phase_clock.now().0 == ConnectionPhase::Answering {
            self.phase_clock.enter(ConnectionPhase::Idle);
            self.connection.answered();
        }
        result
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        self.wrote(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}
