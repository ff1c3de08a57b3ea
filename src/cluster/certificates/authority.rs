//! Makes CAs and leaves. Time is an argument; only the keys are random.

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};

/// Common name of every CA of ours; a CA in a caBundle under another name belongs to another installation.
pub const COMMON_NAME: &str = "interlock-ca";

/// How far `notBefore` is backdated, for a replica or an API server whose clock is behind.
pub const BACKDATED: Duration = Duration::from_secs(3600);

/// A certificate and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPem {
    /// Certificate, or chain with the leaf first.
    pub certificate: String,
    /// Private key, PKCS#8.
    pub key: String,
}

/// Never shows the key.
impl std::fmt::Debug for KeyPem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyPem").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// A certificate was not made.
#[derive(Debug, thiserror::Error)]
#[error("a certificate for {subject} could not be made: {problem}")]
pub struct GenerationError {
    subject: String,
    problem: String,
}

fn generation_error(subject: &str, problem: impl ToString) -> GenerationError {
    GenerationError { subject: subject.to_owned(), problem: problem.to_string() }
}

/// A new CA for `lifetime` from `now`.
pub fn authority(now: Timestamp, lifetime: Duration) -> Result<KeyPem, GenerationError> {
    let bad = |error: rcgen::Error| generation_error(COMMON_NAME, error);
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(bad)?;
    let certificate = authority_parameters(now, lifetime).self_signed(&key).map_err(bad)?;
    Ok(KeyPem { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn authority_parameters(now: Timestamp, lifetime: Duration) -> CertificateParams {
    let mut parameters = parameters(COMMON_NAME, now, lifetime);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters
}

/// A certificate for `names` that serves, signed by `authority`.
pub fn leaf(
    authority: &KeyPem,
    names: &[String],
    now: Timestamp,
    lifetime: Duration,
) -> Result<KeyPem, GenerationError> {
    sign(authority, &Subject { common_name: "interlock", names, is_client: false }, now, lifetime)
}

/// Whom a certificate is for.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'s> {
    pub common_name: &'s str,
    /// DNS names and addresses.
    pub names: &'s [String],
    /// Whether it is shown to servers as well.
    pub is_client: bool,
}

/// A certificate for a subject, signed by `authority`.
pub fn sign(
    authority: &KeyPem,
    subject: &Subject<'_>,
    now: Timestamp,
    lifetime: Duration,
) -> Result<KeyPem, GenerationError> {
    let first = subject.names.first().map_or(subject.common_name, String::as_str);
    let bad = |error: rcgen::Error| generation_error(first, error);
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(bad)?;
    let signer = KeyPair::from_pem(&authority.key).map_err(bad)?;
    // A signature needs only the CA's name, which never changes, and its key.
    let issuer = Issuer::new(authority_parameters(now, lifetime), signer);
    let mut parameters = parameters(subject.common_name, now, lifetime);
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    if subject.is_client {
        parameters.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
    }
    parameters.use_authority_key_identifier_extension = true;
    parameters.subject_alt_names =
        subject.names.iter().map(|name| alternative(name)).collect::<Result<_, _>>()?;
    let certificate = parameters.signed_by(&key, &issuer).map_err(bad)?;
    Ok(KeyPem { certificate: certificate.pem(), key: key.serialize_pem() })
}

fn alternative(name: &str) -> Result<SanType, GenerationError> {
    match name.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => Ok(SanType::DnsName(name.try_into().map_err(|error| generation_error(name, error))?)),
    }
}

fn parameters(name: &str, now: Timestamp, lifetime: Duration) -> CertificateParams {
    let since_epoch = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0));
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.not_before = epoch + since_epoch.saturating_sub(BACKDATED);
    parameters.not_after = epoch + since_epoch + lifetime;
    parameters
}
