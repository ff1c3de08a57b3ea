//! Client certificates: requested, never required by the handshake, as the kubelet has none for its probes.
//!
//! The CA is reloaded from a file, like our own certificate. An accepted certificate is verified again
//! after each change of the CA and after its own expiry, so that an open connection is trusted no longer
//! than a new one would be.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use x509_parser::extensions::GeneralName;

use super::certificate_reloader;
use super::tls::{CertificateResolver, MOST_PEM_BYTES, MinVersion, Tls};
use crate::telemetry::readyz::Check;

/// Why a file is no CA.
#[derive(Debug, thiserror::Error)]
pub enum BadAuthority {
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] certificate_reloader::UnreadableFile),
    /// More PEM than the parser accepts.
    #[error("it is larger than {MOST_PEM_BYTES} bytes")]
    TooLarge,
    /// Not PEM.
    #[error("it is not PEM: {0}")]
    NotPem(rustls::pki_types::pem::Error),
    /// PEM of a certificate that cannot sign.
    #[error("it holds a certificate that is not of a CA: {0}")]
    NotCertificate(rustls::Error),
    /// No certificate, or nothing that verifies.
    #[error("it verifies no certificate: {0}")]
    Useless(VerifierBuilderError),
}

/// Why a caller's certificate does not count.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Untrusted {
    /// There is none.
    #[error("this port answers reviews only to a client certificate of the CA in --client-ca")]
    NoCertificate,
    /// Not, or no longer, one of this CA; the verifier's error.
    #[error("the client certificate is not signed by the CA in --client-ca: {0}")]
    NotVerified(String),
    /// Of this CA, for another subject.
    #[error("the subject of the client certificate is not in --client-name")]
    OtherName,
}

/// A caller's certificate.
#[derive(Debug)]
pub struct ClientCertificate {
    chain: Vec<CertificateDer<'static>>,
    /// Common names of the subject, and its alternative names.
    names: Vec<String>,
    /// Unix seconds.
    not_after: u64,
    /// The generation of the CA that last verified it; 0 = none.
    verified: AtomicU64,
}

impl ClientCertificate {
    /// From a chain that a handshake has accepted; `None` where its leaf cannot be parsed.
    pub fn new(chain: &[CertificateDer<'_>]) -> Option<Self> {
        let (_, leaf) = x509_parser::parse_x509_certificate(chain.first()?).ok()?;
        let common = leaf.subject().iter_common_name().filter_map(|name| name.as_str().ok());
        let mut names: Vec<String> = common.map(str::to_owned).collect();
        let others = leaf.subject_alternative_name().ok().flatten();
        names.extend(others.iter().flat_map(|others| &others.value.general_names).filter_map(
            |name| match name {
                GeneralName::DNSName(name) | GeneralName::URI(name) | GeneralName::RFC822Name(name) => {
                    Some((*name).to_owned())
                }
                _ => None,
            },
        ));
        Some(Self {
            names,
            not_after: u64::try_from(leaf.validity().not_after.timestamp()).unwrap_or(0),
            verified: AtomicU64::new(0),
            chain: chain.iter().map(|certificate| certificate.clone().into_owned()).collect(),
        })
    }
}

struct Trusted {
    verifier: Arc<dyn ClientCertVerifier>,
    /// Generation of the CA, from 1 on.
    exchange: u64,
}

/// The CA of the callers.
pub struct ClientAuthority {
    resolver: CertificateResolver,
    oldest: MinVersion,
    /// Accepted subjects; empty means all.
    names: Vec<String>,
    trusted: RwLock<Option<Trusted>>,
    config: watch::Sender<Arc<rustls::ServerConfig>>,
}

impl ClientAuthority {
    /// No CA yet: the handshake requests no certificate, and none is trusted.
    pub fn new(resolver: CertificateResolver, oldest: MinVersion, names: Vec<String>) -> Arc<Self> {
        let config = watch::Sender::new(resolver.server_config(oldest));
        Arc::new(Self { resolver, oldest, names, trusted: RwLock::new(None), config })
    }

    /// The TLS configuration of a port that requests a certificate of this CA.
    pub fn tls(&self) -> Tls {
        Tls::following(self.config.subscribe())
    }

    /// Trusts the CAs in PEM, in place of earlier ones.
    pub fn trust(&self, pem: &[u8]) -> Result<(), BadAuthority> {
        if pem.len() > MOST_PEM_BYTES {
            return Err(BadAuthority::TooLarge);
        }
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            roots.add(certificate.map_err(BadAuthority::NotPem)?).map_err(BadAuthority::NotCertificate)?;
        }
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots))
            .allow_unauthenticated()
            .build()
            .map_err(BadAuthority::Useless)?;
        let mut trusted = self.trusted.write().unwrap_or_else(PoisonError::into_inner);
        let exchange = trusted.as_ref().map_or(1, |before| before.exchange + 1);
        *trusted = Some(Trusted { verifier: verifier.clone(), exchange });
        self.config.send_replace(self.resolver.mutual_config(self.oldest, verifier));
        Ok(())
    }

    /// Whether a certificate is valid now.
    pub fn check(&self, certificate: Option<&ClientCertificate>, now: UnixTime) -> Result<(), Untrusted> {
        let certificate = certificate.ok_or(Untrusted::NoCertificate)?;
        let trusted = self.trusted.read().unwrap_or_else(PoisonError::into_inner);
        let trusted = trusted.as_ref().ok_or(Untrusted::NoCertificate)?;
        let known = certificate.verified.load(Ordering::Relaxed) == trusted.exchange;
        if !known || now.as_secs() > certificate.not_after {
            let (leaf, intermediates) = certificate.chain.split_first().ok_or(Untrusted::NoCertificate)?;
            trusted
                .verifier
                .verify_client_cert(leaf, intermediates, now)
                .map_err(|error| Untrusted::NotVerified(error.to_string()))?;
            certificate.verified.store(trusted.exchange, Ordering::Relaxed);
        }
        let named = self.names.is_empty() || certificate.names.iter().any(|name| self.names.contains(name));
        if named { Ok(()) } else { Err(Untrusted::OtherName) }
    }

    /// Trusts the CAs in a file, forever; the gate opens with the first CA. After an invalid write the
    /// last valid CA stays.
    pub async fn follow(&self, file: PathBuf, interval: Duration, gate: Check) {
        let mut last_hash = None;
        gate.fail(format!("{} was not read yet", file.display()));
        loop {
            let read = self.read(&file, &mut last_hash).await;
            report(&file, read, last_hash.is_some(), &gate);
            tokio::time::sleep(interval).await;
        }
    }

    /// Whether the file's content has changed.
    async fn read(&self, file: &Path, last_hash: &mut Option<[u8; 32]>) -> Result<bool, BadAuthority> {
        let pem = certificate_reloader::read(file).await?;
        let hash: [u8; 32] = Sha256::digest(&pem).into();
        if *last_hash == Some(hash) {
            return Ok(false);
        }
        self.trust(&pem)?;
        tracing::info!(file = %file.display(), "CA of client certificates loaded");
        *last_hash = Some(hash);
        Ok(true)
    }
}

/// Reports the result of a read of the file; `trusted` = there is a CA, this one or an earlier one.
fn report(file: &Path, read: Result<bool, BadAuthority>, trusted: bool, gate: &Check) {
    let Err(error) = read else {
        gate.pass();
        return;
    };
    let left = if trusted {
        "the --client-ca is invalid; still trusting the last valid one"
    } else {
        "there is no --client-ca yet"
    };
    tracing::warn!(file = %file.display(), %error, "{left}");
    if !trusted {
        gate.fail(format!("{}: {error}", file.display()));
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    };
    use rstest::rstest;

    use super::*;

    const VALID: u64 = 1_800_000_000;

    fn issuer(name: &str) -> (String, Issuer<'static, KeyPair>) {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        (params.self_signed(&key).unwrap().pem(), Issuer::new(params, key))
    }

    fn certificate(issuer: &Issuer<'_, KeyPair>, common: &str, dns: &[&str]) -> ClientCertificate {
        let names: Vec<_> = dns.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, common);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        ClientCertificate::new(&[params.signed_by(&key, issuer).unwrap().der().clone()]).unwrap()
    }

    fn authority(names: &[&str]) -> Arc<ClientAuthority> {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        ClientAuthority::new(CertificateResolver::new(), MinVersion::Tls13, names)
    }

    fn now() -> UnixTime {
        UnixTime::since_unix_epoch(Duration::from_secs(VALID))
    }

    #[rstest]
    #[case::any(&[], "kube-apiserver", &[], true)]
    #[case::common(&["kube-apiserver"], "kube-apiserver", &[], true)]
    #[case::alternative(&["x", "api.example"], "somebody", &["b.example", "api.example"], true)]
    #[case::other(&["kube-apiserver"], "kube-apiserver-2", &["kube-apiserver.evil"], false)]
    #[case::prefix(&["kube-apiserver"], "kube", &[], false)]
    fn subjects(#[case] names: &[&str], #[case] common: &str, #[case] dns: &[&str], #[case] good: bool) {
        let (ca, issuer) = issuer("ca");
        let authority = authority(names);
        authority.trust(ca.as_bytes()).unwrap();
        let shown = certificate(&issuer, common, dns);
        let expected = if good { Ok(()) } else { Err(Untrusted::OtherName) };
        assert_eq!(authority.check(Some(&shown), now()), expected);
    }

    /// An accepted certificate does not count forever.
    #[test]
    fn a_certificate_counts_no_longer_than_its_ca() {
        let ((old, signs), (new, _)) = (issuer("old"), issuer("new"));
        let authority = authority(&[]);
        let shown = certificate(&signs, "kube-apiserver", &[]);
        assert_eq!(authority.check(Some(&shown), now()), Err(Untrusted::NoCertificate), "no CA was read yet");
        authority.trust(old.as_bytes()).unwrap();
        assert_eq!(authority.check(Some(&shown), now()), Ok(()));
        authority.trust(format!("{new}{old}").as_bytes()).unwrap();
        assert_eq!(authority.check(Some(&shown), now()), Ok(()), "both, while it is exchanged");
        authority.trust(new.as_bytes()).unwrap();
        assert!(matches!(authority.check(Some(&shown), now()), Err(Untrusted::NotVerified(_))));
        authority.trust(old.as_bytes()).unwrap();
        assert_eq!(authority.check(Some(&shown), now()), Ok(()));
        let end = UnixTime::since_unix_epoch(Duration::from_secs(shown.not_after + 1));
        assert!(matches!(authority.check(Some(&shown), end), Err(Untrusted::NotVerified(_))));
        assert_eq!(authority.check(None, now()), Err(Untrusted::NoCertificate));
    }

    #[tokio::test]
    async fn a_bad_write_leaves_the_last_good_ca() {
        let (ca, signs) = issuer("ca");
        let (authority, dir) = (authority(&[]), tempfile::tempdir().unwrap());
        let file = dir.path().join("ca.crt");
        let mut last_hash = None;
        assert!(authority.read(&file, &mut last_hash).await.is_err(), "no file");
        std::fs::write(&file, &ca).unwrap();
        assert!(authority.read(&file, &mut last_hash).await.unwrap());
        assert!(!authority.read(&file, &mut last_hash).await.unwrap(), "unchanged");
        for bad in
            [String::new(), "text".to_owned(), ca[..ca.len() / 2].to_owned(), " ".repeat(MOST_PEM_BYTES + 1)]
        {
            std::fs::write(&file, bad).unwrap();
            assert!(authority.read(&file, &mut last_hash).await.is_err());
        }
        let shown = certificate(&signs, "kube-apiserver", &[]);
        assert_eq!(authority.check(Some(&shown), now()), Ok(()));
    }
}
