//! A caller that controls every byte.

use std::sync::Arc;

use interlock::cluster::certificates::stored::certificates;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::world::{CAP, World};

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn closes(&self) -> bool {
        self.head.to_ascii_lowercase().contains("\r\nconnection: close")
    }
}

pub struct Peer<S = TlsStream<TcpStream>> {
    stream: S,
}

/// The CA of the world.
pub fn roots(world: &World) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(world.authority.certificate.as_bytes()));
    roots
}

/// The TLS side of a caller that trusts the world's CA and speaks these protocols.
pub fn trusting(world: &World, protocols: &[&str]) -> Arc<ClientConfig> {
    let roots = roots(world);
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    // Every connection is to see the certificate.
    config.resumption = rustls::client::Resumption::disabled();
    Arc::new(config)
}

pub async fn connect_with(world: &World, config: Arc<ClientConfig>) -> std::io::Result<TlsStream<TcpStream>> {
    let socket = TcpStream::connect(world.address).await?;
    socket.set_nodelay(true)?;
    TlsConnector::from(config).connect(ServerName::try_from("hook.here.svc").unwrap(), socket).await
}

/// A connection from an address of this machine.
pub async fn connect_from(world: &World, address: &str) -> std::io::Result<Peer> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(format!("{address}:0").parse().unwrap())?;
    let socket = socket.connect(world.address).await?;
    socket.set_nodelay(true)?;
    let connector = TlsConnector::from(trusting(world, &["http/1.1"]));
    Ok(Peer { stream: connector.connect(ServerName::try_from("hook.here.svc").unwrap(), socket).await? })
}

/// A connection as the API server makes it to a Service.
pub async fn connect(world: &World) -> Peer {
    Peer { stream: connect_with(world, trusting(world, &["http/1.1"])).await.unwrap() }
}

pub fn request(path: &str, headers: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: hook.here.svc\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    pub fn over(stream: S) -> Self {
        Self { stream }
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.stream.write_all(bytes.as_ref()).await?;
        self.stream.flush().await
    }

    pub async fn post(&mut self, path: &str, body: &str) -> std::io::Result<Answer> {
        self.send(request(path, "", body)).await?;
        self.answer().await
    }

    pub async fn get(&mut self, path: &str) -> std::io::Result<Answer> {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: hook.here.svc\r\n\r\n")).await?;
        self.answer().await
    }

    /// The next answer.
    pub async fn answer(&mut self) -> std::io::Result<Answer> {
        tokio::time::timeout(CAP, self.read_answer()).await.map_err(|_| std::io::ErrorKind::TimedOut)?
    }

    async fn read_answer(&mut self) -> std::io::Result<Answer> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.stream.read_u8().await?);
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.to_ascii_lowercase().lines().find_map(|line| {
            line.strip_prefix("content-length: ").map(|length| length.parse::<usize>().unwrap())
        });
        let mut body = vec![0; length.unwrap_or(0)];
        self.stream.read_exact(&mut body).await?;
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Ok(Answer { status, head, body: String::from_utf8(body).unwrap() })
    }

    /// Waits for the other side to close; what it sent before.
    pub async fn closed(&mut self) -> String {
        let mut rest = Vec::new();
        let read = tokio::time::timeout(CAP, self.stream.read_to_end(&mut rest)).await;
        // A TLS stream that is cut without a farewell is an error here, and closed all the same.
        let _ = read.expect("it is never closed");
        String::from_utf8_lossy(&rest).into_owned()
    }
}
