//! A way to the API server over plain HTTP on loopback, for what stands between a process and it.

use std::path::PathBuf;
use std::sync::Arc;

use kube::config::Kubeconfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{Client, Cluster, block_on, suffix};

/// A port that a kubeconfig leads to, and what is behind it.
pub(super) struct Way {
    /// The user's kubeconfig, leading to the port.
    pub kubeconfig: PathBuf,
    /// The port.
    pub listener: TcpListener,
    /// Address of the API server.
    pub address: String,
    /// To the API server.
    pub tls: TlsConnector,
}

impl Way {
    /// Opens one for a user who has a token.
    pub fn open(cluster: &Cluster, user: &Client, name: &str) -> Self {
        let mut file = Kubeconfig::read_from(user.kubeconfig()).expect("a kubeconfig");
        let entry = file.clusters[0].cluster.as_mut().expect("a cluster");
        let address =
            entry.server.as_deref().and_then(|url| url.strip_prefix("https://")).expect("an address");
        let address = address.trim_end_matches('/').to_owned();
        let authority = entry.certificate_authority_data.take().expect("its CA");
        let tls = connector(&authority);
        let listener = block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let here = listener.local_addr().expect("an address");
        entry.server = Some(format!("http://{here}"));
        let kubeconfig = cluster.dir().join(format!("{name}-{}.json", suffix()));
        std::fs::write(&kubeconfig, serde_json::to_string(&file).expect("JSON")).expect("a kubeconfig");
        Self { kubeconfig, listener, address, tls }
    }
}

/// A connection to the API server; `None` while there is none to be had.
pub(super) async fn dial(address: &str, tls: &TlsConnector) -> Option<TlsStream<TcpStream>> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host).to_owned();
    let name = ServerName::try_from(host).ok()?;
    let socket = TcpStream::connect(address).await.ok()?;
    tls.connect(name, socket).await.ok()
}

/// Trusts a CA, given as in a kubeconfig: base64 of PEM.
pub(super) fn connector(authority: &str) -> TlsConnector {
    use base64::Engine as _;
    let pem = base64::engine::general_purpose::STANDARD.decode(authority).expect("base64");
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.expect("PEM")).expect("a CA");
    }
    let config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}
