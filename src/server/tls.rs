//! Certificate resolver: the serving certificate, replaceable while connections are open.
//!
//! Serves only complete pairs with a matching key; the last valid pair stays until a newer one. Offers only
//! HTTP/1.1: the API server speaks HTTP/2 to a webhook only where that is offered.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{ALL_VERSIONS, ServerConfig, SupportedProtocolVersion};
use tokio::sync::watch;

/// A chain and its key, validated.
#[derive(Clone, Debug)]
pub struct Pair {
    key: Arc<CertifiedKey>,
    not_after: i64,
}

/// Why a pair is invalid.
#[derive(Debug, thiserror::Error)]
pub enum BadPair {
    /// More PEM than the parser accepts; which file.
    #[error("{0} is larger than {MOST_PEM_BYTES} bytes")]
    TooLarge(&'static str),
    /// No PEM in the certificate file.
    #[error("the certificate is not PEM: {0}")]
    Chain(rustls::pki_types::pem::Error),
    /// PEM, but no certificate.
    #[error("there is no certificate in the certificate file")]
    NoCertificate,
    /// No PEM in the key file.
    #[error("the key is not PEM: {0}")]
    Key(rustls::pki_types::pem::Error),
    /// TLS does not support the kind of key, or it belongs to another certificate.
    #[error("certificate and key are not a pair: {0}")]
    NoPair(rustls::Error),
    /// PEM of a certificate that cannot be parsed.
    #[error("the certificate is not X.509: {0}")]
    NotX509(String),
    /// `main` has not installed the provider.
    #[error("no TLS provider is installed in this process")]
    NoProvider,
}

/// Parsing PEM costs; a chain is a few KiB (CVE-2024-12401 in cert-manager).
pub const MOST_PEM_BYTES: usize = 64 * 1024;

impl Pair {
    /// Parses and validates a pair.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, BadPair> {
        for (name, pem) in [("the certificate", chain), ("the key", key)] {
            if pem.len() > MOST_PEM_BYTES {
                return Err(BadPair::TooLarge(name));
            }
        }
        let chain: Vec<_> =
            CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>().map_err(BadPair::Chain)?;
        let leaf = chain.first().ok_or(BadPair::NoCertificate)?;
        let (_, parsed) =
            x509_parser::parse_x509_certificate(leaf).map_err(|error| BadPair::NotX509(error.to_string()))?;
        let not_after = parsed.validity().not_after.timestamp();
        let key = PrivateKeyDer::from_pem_slice(key).map_err(BadPair::Key)?;
        let provider = CryptoProvider::get_default().ok_or(BadPair::NoProvider)?;
        // Checks that they belong together.
        let key = CertifiedKey::from_der(chain, key, provider).map_err(BadPair::NoPair)?;
        Ok(Self { key: Arc::new(key), not_after })
    }

    /// End of the leaf's validity, in Unix seconds.
    pub fn not_after(&self) -> i64 {
        self.not_after
    }

    /// The chain, leaf first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.key.cert
    }
}

/// Holds the served pair, and replaces it.
#[derive(Clone, Debug)]
pub struct CertificateResolver {
    pair: watch::Sender<Option<Pair>>,
}

impl Default for CertificateResolver {
    fn default() -> Self {
        Self::new()
    }
}

impl CertificateResolver {
    /// No pair yet: handshakes fail.
    pub fn new() -> Self {
        Self { pair: watch::Sender::new(None) }
    }

    /// Serves a pair from the next handshake on.
    pub fn show(&self, pair: Pair) {
        self.pair.send_replace(Some(pair));
    }

    /// The served pair, and its changes.
    pub fn subscribe(&self) -> watch::Receiver<Option<Pair>> {
        self.pair.subscribe()
    }

    /// The TLS configuration of a port that serves it and requests no client certificate.
    pub fn server_config(&self, oldest: MinVersion) -> Arc<ServerConfig> {
        self.mutual_config(oldest, WebPkiClientVerifier::no_client_auth())
    }

    /// The same for a port that requests client certificates, which a verifier checks.
    pub fn mutual_config(
        &self,
        oldest: MinVersion,
        verifier: Arc<dyn ClientCertVerifier>,
    ) -> Arc<ServerConfig> {
        let asks = verifier.offer_client_auth();
        let mut config = ServerConfig::builder_with_protocol_versions(oldest.versions())
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(self.clone()));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if asks {
            // A resumed session would keep the trust of an earlier verification.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Arc::new(config)
    }
}

/// The oldest supported TLS version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MinVersion {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3, which every API server speaks (Go 1.13 and later).
    #[default]
    Tls13,
}

static TLS13_ONLY: &[&SupportedProtocolVersion] = &[&TLS13];

impl MinVersion {
    fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::Tls12 => ALL_VERSIONS,
            Self::Tls13 => TLS13_ONLY,
        }
    }
}

impl ResolvesServerCert for CertificateResolver {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.pair.borrow().as_ref().map(|pair| pair.key.clone())
    }
}

/// The TLS configuration of a port; each handshake uses the current one.
#[derive(Clone, Debug)]
pub struct Tls {
    config: watch::Receiver<Arc<ServerConfig>>,
}

impl Tls {
    /// Follows a configuration that changes.
    pub fn following(config: watch::Receiver<Arc<ServerConfig>>) -> Self {
        Self { config }
    }

    /// The configuration for the next handshake.
    pub fn current(&self) -> Arc<ServerConfig> {
        self.config.borrow().clone()
    }
}

impl From<Arc<ServerConfig>> for Tls {
    /// A fixed configuration.
    fn from(config: Arc<ServerConfig>) -> Self {
        Self { config: watch::Sender::new(config).subscribe() }
    }
}
