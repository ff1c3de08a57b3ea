//! Whether the certificates and keys of the Secret belong together. Mismatches are reported on read, not at
//! the next renewal.

use rcgen::KeyPair;
use rustls::RootCertStore;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::authority::KeyPem;

/// Every certificate in a PEM; an error where one of them cannot be read.
pub fn chain(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().map_err(text)?;
    for certificate in &chain {
        X509Certificate::from_der(certificate).map_err(text)?;
    }
    Ok(chain)
}

/// When a certificate expires; `None` where it cannot be parsed.
pub fn expires(certificate: &CertificateDer<'_>) -> Option<jiff::Timestamp> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    jiff::Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

/// Whether TLS can serve this certificate with this key.
pub fn check_leaf_key(leaf: &KeyPem) -> Result<(), String> {
    let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).map_err(text)?;
    CertifiedKey::from_der(chain(&leaf.certificate)?, key, &default_provider()).map(drop).map_err(text)
}

/// Whether leaves can be signed with this key, and this CA vouches for them.
pub fn check_ca_key(authority: &KeyPem) -> Result<(), String> {
    let key = KeyPair::from_pem(&authority.key).map_err(text)?;
    let der = first(&authority.certificate)?;
    let (_, certificate) = X509Certificate::from_der(&der).map_err(text)?;
    let same = *certificate.public_key().subject_public_key.data == *key.public_key_raw();
    same.then_some(()).ok_or_else(|| "it is the key of another certificate".to_owned())
}

/// Whether the CA has signed the leaf. Dates do not matter here: an expired leaf is renewed.
pub fn check_signature(authority: &KeyPem, leaf: &KeyPem) -> Result<(), String> {
    let chain = chain(&leaf.certificate)?;
    let (leaf, intermediates) = chain.split_first().ok_or("there is none")?;
    let mut roots = RootCertStore::empty();
    roots.add(first(&authority.certificate)?).map_err(text)?;
    let algorithms = default_provider().signature_verification_algorithms.all;
    let parsed = ParsedCertificate::try_from(leaf).map_err(text)?;
    let while_valid = last_second(leaf)?;
    verify_server_cert_signed_by_trust_anchor(&parsed, &roots, intermediates, while_valid, algorithms)
        .map_err(text)
}

fn first(pem: &str) -> Result<CertificateDer<'static>, String> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(text)
}

fn last_second(certificate: &CertificateDer<'_>) -> Result<UnixTime, String> {
    let (_, certificate) = X509Certificate::from_der(certificate).map_err(text)?;
    let expires = u64::try_from(certificate.validity().not_after.timestamp()).map_err(text)?;
    Ok(UnixTime::since_unix_epoch(std::time::Duration::from_secs(expires)))
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
