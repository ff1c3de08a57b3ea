//! The webhook port of a process, as its callers reach it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Cluster, Interlock, way};

/// Where it is, and the CA that its callers trust.
#[derive(Clone)]
pub struct WebhookPort {
    address: SocketAddr,
    tls: TlsConnector,
}

/// A connection to it.
pub struct Connection(TlsStream<TcpStream>);

impl WebhookPort {
    /// Of a process on loopback that guards a cluster.
    pub fn of(cluster: &Cluster, interlock: &Interlock) -> Self {
        let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/interlock";
        let configuration = cluster.admin().read(path).ok();
        let authority = configuration["webhooks"][0]["clientConfig"]["caBundle"].as_str().expect("a CA");
        let address = SocketAddr::from(([127, 0, 0, 1], interlock.webhook_port()));
        Self { address, tls: way::connector(authority) }
    }

    /// Connects from an address of loopback.
    pub async fn connect(&self, from: IpAddr) -> io::Result<Connection> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from, 0))?;
        let stream = socket.connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(self.address.ip().into());
        Ok(Connection(self.tls.connect(name, stream).await?))
    }

    /// How long a GET on a connection of its own takes, as the kubelet sends it; `cap` where it is
    /// not answered with 200 until then.
    pub async fn probe(&self, from: IpAddr, path: &str, cap: Duration) -> Duration {
        let begun = Instant::now();
        let asked = async {
            loop {
                let status = async { self.connect(from).await?.get(path).await }.await;
                if matches!(status, Ok(200)) {
                    return;
                }
                // Refused; what is measured is when it is answered.
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = tokio::time::timeout(cap, asked).await;
        begun.elapsed()
    }
}

impl Connection {
    /// GET; the status.
    pub async fn get(&mut self, path: &str) -> io::Result<u16> {
        Ok(self.exchange(format!("GET {path} HTTP/1.1\r\nHost: interlock\r\n\r\n").as_bytes()).await?.0)
    }

    /// POST of JSON; status and body.
    pub async fn post(&mut self, path: &str, body: &str) -> io::Result<(u16, String)> {
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: interlock\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        self.exchange(format!("{head}{body}").as_bytes()).await
    }

    /// Waits until the other side closes it.
    pub async fn closed(mut self) {
        let _ = self.0.read_u8().await;
    }

    async fn exchange(&mut self, request: &[u8]) -> io::Result<(u16, String)> {
        self.0.write_all(request).await?;
        self.0.flush().await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.0.read_exact(&mut body).await?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(head.clone()))?;
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }
}
