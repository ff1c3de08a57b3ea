//! The load: keep-alive TLS connections that post one review over and over.
//!
//! It reads an answer's length and compares the answer with the connection's first one, which
//! was looked at closely; anything dearer would measure the load. And it never sleeps: on a
//! virtual machine a server pays for waking the core that it answers to, more than for many a
//! decision, and the more the slower it is.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::crypto::aws_lc_rs;
use rustls::crypto::aws_lc_rs::cipher_suite::{TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::CONNECTIONS;
use super::child::Child;

/// An answer that takes longer will not come.
const LONGEST: Duration = Duration::from_secs(10);

/// How requests follow each other.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Pace {
    /// The next one when the last is answered.
    Flat,
    /// So many a second over all connections, each due at a time of its own. Latency counts
    /// from then, so a late answer also delays what comes after it.
    PerSecond(u32),
}

/// What to send where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Load {
    pub address: SocketAddr,
    pub path: String,
    pub pace: Pace,
    pub seconds: f64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Measured {
    pub requests: usize,
    pub seconds: f64,
    /// In seconds.
    pub p99: f64,
    /// In seconds.
    pub server_cpu: f64,
}

impl Measured {
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    pub fn rate_of_cpu(&self) -> f64 {
        self.requests as f64 / self.server_cpu
    }
}

/// Runs a load in a process of its own on another core.
pub fn run(folder: &Path, core: &str, load: &Load) -> Measured {
    let me = std::env::current_exe().expect("this program");
    let load = serde_json::to_string(load).expect("JSON");
    let (me, folder) = (me.to_string_lossy(), folder.to_string_lossy());
    // What the load runs says nothing about a server, so its counts are dropped (`hack/profile`).
    let command = ["LLVM_PROFILE_FILE=/dev/null", &me, "load", &folder, &load];
    let mut child = Child::pinned(core, Path::new("env"), &command);
    let line = child.first_line();
    serde_json::from_str(&line).unwrap_or_else(|_| panic!("the load did not end well: {line}"))
}

/// The process of [`run`]; what it finds, or what went wrong, is its first line.
pub fn main(folder: &Path, load: &str) {
    match serde_json::from_str(load).map_err(|error| error.to_string()).and_then(|load| all(folder, &load)) {
        Ok(measured) => println!("{}", serde_json::to_string(&measured).expect("JSON")),
        Err(problem) => println!("{problem}"),
    }
}

fn all(folder: &Path, load: &Load) -> Result<Measured, String> {
    let review = std::fs::read(folder.join("review.json")).map_err(|error| error.to_string())?;
    let mut request = format!(
        "POST {}?timeout=5s HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, */*\r\nContent-Length: {}\r\n\r\n",
        load.path,
        load.address,
        review.len()
    )
    .into_bytes();
    request.extend_from_slice(&review);
    let tls = tls(folder);
    let connections = (0..CONNECTIONS)
        .map(|_| Connection::open(load.address, tls.clone()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("{}: {error}", load.address))?;
    let (start, length) = (Instant::now(), Duration::from_secs_f64(load.seconds));
    let mut clients: Vec<_> = connections
        .into_iter()
        .enumerate()
        .map(|(index, connection)| Client {
            connection,
            due: Due { pace: load.pace, index, start },
            asked: None,
            latencies: Vec::new(),
        })
        .collect();
    // Each in turn, over and over, until all that was asked is answered.
    loop {
        let mut over = true;
        for client in &mut clients {
            over &= client.step(&request, start + length)?;
        }
        if over {
            break;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let mut latencies: Vec<f64> = clients.into_iter().flat_map(|client| client.latencies).collect();
    latencies.sort_by(f64::total_cmp);
    let p99 = latencies.get(latencies.len() * 99 / 100).copied().unwrap_or(f64::NAN);
    Ok(Measured { requests: latencies.len(), seconds, p99, server_cpu: 0.0 })
}

/// When a connection's requests are due.
struct Due {
    pace: Pace,
    index: usize,
    start: Instant,
}

impl Due {
    /// When the n-th is.
    fn of(&self, n: usize) -> Instant {
        let Pace::PerSecond(rate) = self.pace else { return Instant::now() };
        self.start + Duration::from_secs_f64((n * CONNECTIONS + self.index) as f64 / f64::from(rate))
    }
}

/// One connection and what it has found.
struct Client {
    connection: Connection,
    due: Due,
    /// When the request that is not answered yet was due.
    asked: Option<Instant>,
    /// In seconds.
    latencies: Vec<f64>,
}

impl Client {
    /// Does what can be done without waiting; tells whether nothing is left to do.
    fn step(&mut self, request: &[u8], end: Instant) -> Result<bool, String> {
        let Some(since) = self.asked else {
            let due = self.due.of(self.latencies.len());
            if due >= end {
                return Ok(true);
            }
            if due <= Instant::now() {
                self.connection.ask(request)?;
                self.asked = Some(due);
            }
            return Ok(false);
        };
        if self.connection.answered()? {
            self.latencies.push(since.elapsed().as_secs_f64());
            self.asked = None;
        } else if since.elapsed() > LONGEST {
            return Err(format!("no answer within {LONGEST:?}"));
        }
        Ok(false)
    }
}

fn tls(folder: &Path) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(folder.join("ca.crt")).expect("the CA");
    roots.add(ca).expect("a CA");
    // As Go offers them, and so the API server, where the CPU has AES: AES-128 first. Each server
    // then encrypts alike; ours would else take the AES-256 that rustls offers first.
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = vec![TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384];
    let mut config = ClientConfig::builder_with_provider(provider.into())
        .with_protocol_versions(&[&TLS13])
        .expect("suites of that version")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

struct Connection {
    tls: ClientConnection,
    socket: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
    first: Option<Vec<u8>>,
}

impl Connection {
    fn open(address: SocketAddr, config: Arc<ClientConfig>) -> io::Result<Self> {
        let mut socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let name = ServerName::from(address.ip());
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        tls.complete_io(&mut socket)?;
        socket.set_nonblocking(true)?;
        Ok(Self { tls, socket, buffer: vec![0; 256 * 1024], filled: 0, first: None })
    }

    fn ask(&mut self, request: &[u8]) -> Result<(), String> {
        self.filled = 0;
        self.tls.writer().write_all(request).map_err(|error| format!("send: {error}"))?;
        self.send()
    }

    /// Sends as much as the socket takes.
    fn send(&mut self) -> Result<(), String> {
        while self.tls.wants_write() {
            match self.tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(format!("send: {error}")),
            }
        }
        Ok(())
    }

    /// Whether the answer is there, whole and as the first one was.
    fn answered(&mut self) -> Result<bool, String> {
        self.send()?;
        match self.tls.read_tls(&mut self.socket) {
            Ok(0) => return Err("the connection was closed in an answer".to_owned()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(format!("receive: {error}")),
        }
        self.tls.process_new_packets().map_err(|error| format!("receive: {error}"))?;
        loop {
            match self.tls.reader().read(&mut self.buffer[self.filled..]) {
                Ok(0) => return Err("the connection was closed in an answer".to_owned()),
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(format!("receive: {error}")),
            }
        }
        let Some(body) = body(&self.buffer[..self.filled])? else { return Ok(false) };
        match &self.first {
            Some(first) if first == body => {}
            // The order of a patch may differ, what is in it not.
            Some(first) if check(body)? == check(first)? => {}
            Some(_) => return Err(said("a different answer", body)),
            None => {
                check(body)?;
                self.first = Some(body.to_vec());
            }
        }
        Ok(true)
    }
}

/// The body of an answer, once it is there whole.
fn body(answer: &[u8]) -> Result<Option<&[u8]>, String> {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let (head, body) = (&answer[..end], &answer[end + 4..]);
    if !head.starts_with(b"HTTP/1.1 200 ") {
        return Err(said("not a 200", answer));
    }
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    Ok(match length.map(|length| length.trim().parse::<usize>()) {
        Some(Ok(length)) => (body.len() >= length).then_some(body),
        Some(Err(error)) => return Err(format!("content-length: {error}")),
        None => body.ends_with(b"\r\n0\r\n\r\n").then_some(body),
    })
}

/// The uid is ours, the answer allows, and where it patches, this many operations.
fn check(body: &[u8]) -> Result<usize, String> {
    let text = String::from_utf8_lossy(body);
    // Chunks: one line with a length before each; a JSON answer has no line breaks but the last.
    let json = text.find('{').zip(text.rfind('}')).and_then(|(first, last)| text.get(first..=last));
    let answer: Value = json
        .and_then(|json| serde_json::from_str(json).ok())
        .ok_or_else(|| said("an answer that is not JSON", body))?;
    let response = &answer["response"];
    if response["allowed"] != true || !response["uid"].is_string() {
        return Err(said("not allowed", body));
    }
    Ok(response["patch"].as_str().map_or(0, str::len))
}

fn said(what: &str, body: &[u8]) -> String {
    format!("{what}: {}", String::from_utf8_lossy(&body[..body.len().min(2000)]).replace(['\r', '\n'], " "))
}
