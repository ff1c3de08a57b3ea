//! A caller of the webhook port that is not the API server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Longest wait for an answer.
const CAP: Duration = Duration::from_secs(30);

/// Believes every certificate.
#[derive(Debug)]
struct Believing(CryptoProvider);

impl ServerCertVerifier for Believing {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// One TLS connection without a client certificate.
pub struct HostileCaller {
    stream: TlsStream<TcpStream>,
}

impl HostileCaller {
    /// From an address of this machine.
    pub async fn connect(from: &str, to: SocketAddr) -> std::io::Result<Self> {
        let provider = aws_lc_rs::default_provider();
        let config = ClientConfig::builder_with_provider(Arc::new(provider.clone()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Believing(provider)))
            .with_no_client_auth();
        let socket = TcpSocket::new_v4()?;
        socket.bind(format!("{from}:0").parse().expect("an address"))?;
        let opened = async {
            let stream = socket.connect(to).await?;
            let name = ServerName::try_from("interlock.interlock-system.svc").expect("a name");
            TlsConnector::from(Arc::new(config)).connect(name, stream).await
        };
        let stream = tokio::time::timeout(CAP, opened).await.map_err(|_| std::io::ErrorKind::TimedOut)??;
        Ok(Self { stream })
    }

    /// Status and body; `body` = what is posted, else it is a GET.
    pub async fn ask(&mut self, path: &str, body: Option<&str>) -> std::io::Result<(u16, String)> {
        let text = match body {
            None => format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"),
            Some(body) => format!(
                "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ),
        };
        self.stream.write_all(text.as_bytes()).await?;
        self.stream.flush().await?;
        tokio::time::timeout(CAP, self.answer()).await.map_err(|_| std::io::ErrorKind::TimedOut)?
    }

    async fn answer(&mut self) -> std::io::Result<(u16, String)> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.stream.read_u8().await?);
        }
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        let mut body = vec![0; length.unwrap_or(0)];
        self.stream.read_exact(&mut body).await?;
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }
}
