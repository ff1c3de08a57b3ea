//! The load: keep-alive TLS connections, a thread each, that post one review over and over.
//!
//! It reads an answer's length and compares the answer with the connection's first one, which
//! was looked at closely; anything dearer would measure the load.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::child::Child;
use super::{CONNECTIONS, REVIEW_BYTES};

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
    let mut child = Child::pinned(core, &me, &["load", &folder.to_string_lossy(), &load]);
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
    assert!(review.len() <= REVIEW_BYTES);
    let tls = tls(folder);
    let connections = (0..CONNECTIONS)
        .map(|_| Connection::open(load.address, tls.clone()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("{}: {error}", load.address))?;
    let (start, end) = (Instant::now(), Duration::from_secs_f64(load.seconds));
    let request = &request;
    let found: Vec<Result<Vec<f64>, String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = connections
            .into_iter()
            .enumerate()
            .map(|(index, connection)| {
                let due = Due { pace: load.pace, index, start };
                scope.spawn(move || one(connection, request, &due, start + end))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let seconds = start.elapsed().as_secs_f64();
    let mut latencies = Vec::new();
    for found in found {
        latencies.extend(found?);
    }
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
    /// Waits for the n-th; gives when it was due.
    fn wait(&self, n: usize) -> Instant {
        let Pace::PerSecond(rate) = self.pace else { return Instant::now() };
        let due =
            self.start + Duration::from_secs_f64((n * CONNECTIONS + self.index) as f64 / f64::from(rate));
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        due
    }
}

/// Latencies of one connection until the end.
fn one(mut connection: Connection, request: &[u8], due: &Due, end: Instant) -> Result<Vec<f64>, String> {
    let mut latencies = Vec::new();
    loop {
        let since = due.wait(latencies.len());
        if since >= end {
            return Ok(latencies);
        }
        connection.exchange(request)?;
        latencies.push(since.elapsed().as_secs_f64());
    }
}

fn tls(folder: &Path) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(folder.join("ca.crt")).expect("the CA");
    roots.add(ca).expect("a CA");
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

struct Connection {
    stream: StreamOwned<ClientConnection, TcpStream>,
    buffer: Vec<u8>,
    first: Option<Vec<u8>>,
}

impl Connection {
    fn open(address: SocketAddr, config: Arc<ClientConfig>) -> Result<Self, String> {
        let socket = TcpStream::connect(address).map_err(|error| error.to_string())?;
        socket
            .set_nodelay(true)
            .and_then(|()| socket.set_read_timeout(Some(Duration::from_secs(10))))
            .map_err(|error| error.to_string())?;
        let client = ClientConnection::new(config, ServerName::from(address.ip()))
            .map_err(|error| error.to_string())?;
        let mut stream = StreamOwned::new(client, socket);
        stream.conn.complete_io(&mut stream.sock).map_err(|error| error.to_string())?;
        Ok(Self { stream, buffer: vec![0; 256 * 1024], first: None })
    }

    fn exchange(&mut self, request: &[u8]) -> Result<(), String> {
        self.stream
            .write_all(request)
            .and_then(|()| self.stream.flush())
            .map_err(|error| format!("send: {error}"))?;
        let mut filled = 0;
        let body = loop {
            let read =
                self.stream.read(&mut self.buffer[filled..]).map_err(|error| format!("receive: {error}"))?;
            filled += read;
            match body(&self.buffer[..filled])? {
                Some(body) => break body,
                None if read == 0 => return Err("the connection was closed in an answer".to_owned()),
                None => {}
            }
        };
        match &self.first {
            Some(first) if first == body => Ok(()),
            // The order of a patch may differ, what is in it not.
            Some(first) => {
                (check(body)? == check(first)?).then_some(()).ok_or_else(|| said("a different answer", body))
            }
            None => {
                check(body)?;
                self.first = Some(body.to_vec());
                Ok(())
            }
        }
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
