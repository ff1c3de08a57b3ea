//! The CA that signs for what belongs to objects of users, such as the admin APIs of DataPlanes, as a value. Its
//! Secret has the form of that of the webhook; the leaf in it is the certificate that this process shows as a client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use interlock_core::certificate::{CertificateRequest, ServedCertificate};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use super::authority::{GenerationError, KeyPem, Subject, authority, sign};
use super::rotation::{NextWrite, StoredCertificates, next_write};
use super::stored::{CertificateFacts, InvalidSecret, Stored, certificates, our_cas};
use super::validate;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Life of the CA, as Kong's operator has it.
const AUTHORITY_LIFE: Duration = Duration::from_secs(3650 * DAY.as_secs());
/// Life of a certificate. Kong reads its certificate when it starts, so that a pod serves one for as long as the pod
/// lives: after the renewal at two thirds, eight months are left to start it again.
const LEAF_LIFE: Duration = Duration::from_secs(730 * DAY.as_secs());
/// How long the next CA is distributed before anything is signed by it: a pod reads the CAs when it starts, too.
const OVERLAP: Duration = Duration::from_secs(365 * DAY.as_secs());
/// Name of this process as a client.
const CLIENT: &str = "interlock";

/// The longest text of a key of a Secret that is looked at: a certificate has a few kilobytes.
const MOST_PEM_BYTES: usize = 64 * 1024;

/// A CA, and the client certificate of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningAuthority(Stored);

impl SigningAuthority {
    pub fn read(data: &BTreeMap<String, ByteString>) -> Result<Self, InvalidSecret> {
        Stored::read(data).map(Self)
    }

    /// The data of its Secret.
    pub fn write(&self) -> BTreeMap<String, ByteString> {
        self.0.write()
    }

    pub fn new(now: Timestamp) -> Result<Self, GenerationError> {
        let authority = authority(now, AUTHORITY_LIFE)?;
        let leaf = client(&authority, now)?;
        Ok(Self(Stored { authority, leaf, next: None, previous: String::new() }))
    }

    /// What it shall be, where something of it is due.
    pub fn renewed(&self, now: Timestamp) -> Result<Option<Self>, GenerationError> {
        let stored = &self.0;
        let facts = |pem: &KeyPem| CertificateFacts::of(&pem.certificate).ok();
        let (Some(authority_facts), Some(leaf)) = (facts(&stored.authority), facts(&stored.leaf)) else {
            return Self::new(now).map(Some);
        };
        let next = stored.next.as_ref().and_then(facts);
        let is_trusted = next.as_ref().is_some_and(|next| now >= next.issued + OVERLAP);
        let certificates = StoredCertificates { authority: authority_facts, leaf, next };
        let previous = our_cas(&[stored.previous.clone().into_bytes()], "", now);
        Ok(match (next_write(now, &certificates, &[CLIENT.to_owned()], is_trusted), &stored.next) {
            (NextWrite::Nothing, _) => None,
            (NextWrite::Everything, _) | (NextWrite::Promotion, None) => Some(Self::new(now)?),
            (NextWrite::Leaf, _) => {
                Some(Self(Stored { leaf: client(&stored.authority, now)?, previous, ..stored.clone() }))
            }
            (NextWrite::NextAuthority, _) => {
                Some(Self(Stored { next: Some(authority(now, AUTHORITY_LIFE)?), ..stored.clone() }))
            }
            (NextWrite::Promotion, Some(next)) => Some(Self(Stored {
                authority: next.clone(),
                leaf: client(next, now)?,
                next: None,
                previous: stored.authority.certificate.clone(),
            })),
        })
    }

    /// The CAs that are trusted, as PEM.
    pub fn bundle(&self) -> String {
        self.0.bundle()
    }

    /// How this process asks what it has signed for: it shows a certificate of this CA, and trusts no other.
    pub fn client_config(&self) -> Result<ClientConfig, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates(self.bundle().as_bytes()));
        let unusable = |error: String| rustls::Error::General(error);
        let chain = validate::chain(&self.0.leaf.certificate).map_err(unusable)?;
        let key = PrivateKeyDer::from_pem_slice(self.0.leaf.key.as_bytes());
        let key = key.map_err(|error| unusable(error.to_string()))?;
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        builder
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
    }

    pub fn sign(&self, request: &CertificateRequest, now: Timestamp) -> Result<KeyPem, GenerationError> {
        let CertificateRequest { common_name, names, .. } = request;
        sign(&self.0.authority, &Subject { common_name, names, is_client: true }, now, LEAF_LIFE)
    }

    /// The data of a Secret with this certificate.
    pub fn data(&self, pair: &KeyPem) -> BTreeMap<String, ByteString> {
        let texts = [("tls.crt", &pair.certificate), ("tls.key", &pair.key), ("ca.crt", &self.bundle())];
        texts.map(|(key, text)| (key.to_owned(), ByteString(text.as_bytes().to_vec()))).into()
    }

    /// The pair in the data of a Secret, where it can be served and this CA has signed it.
    pub fn served(&self, data: &BTreeMap<String, ByteString>) -> Option<(KeyPem, ServedCertificate)> {
        let text = |key: &str| {
            let bytes = data.get(key).filter(|bytes| bytes.0.len() <= MOST_PEM_BYTES)?;
            String::from_utf8(bytes.0.clone()).ok()
        };
        let pair = KeyPem { certificate: text("tls.crt")?, key: text("tls.key")? };
        validate::check_leaf_key(&pair).ok()?;
        validate::check_signature(&self.0.authority, &pair).ok()?;
        let CertificateFacts { issued, expires, names, .. } = CertificateFacts::of(&pair.certificate).ok()?;
        let has_authorities = text("ca.crt").is_some_and(|found| found == self.bundle());
        Some((pair, ServedCertificate { issued, expires, names, has_authorities }))
    }
}

fn client(authority: &KeyPem, now: Timestamp) -> Result<KeyPem, GenerationError> {
    let subject = Subject { common_name: CLIENT, names: &[CLIENT.to_owned()], is_client: true };
    sign(authority, &subject, now, LEAF_LIFE)
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;
    use serde_json::Value;

    use super::*;

    fn at(days: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + days * 24 * 3600).unwrap()
    }

    fn request() -> CertificateRequest {
        let names = vec!["*.admin.kong.svc".to_owned(), "admin.kong.svc".to_owned()];
        CertificateRequest {
            secret: Value::Null,
            common_name: "*.admin.kong.svc".to_owned(),
            names,
            keeps_found: false,
            is_awaited: false,
        }
    }

    fn authorities(bundle: &str) -> usize {
        CertificateDer::pem_slice_iter(bundle.as_bytes()).count()
    }

    #[test]
    fn what_it_signs_serves_and_is_known_again() {
        let signing = SigningAuthority::new(at(0)).unwrap();
        let pair = signing.sign(&request(), at(1)).unwrap();
        let (same, served) = signing.served(&signing.data(&pair)).unwrap();
        assert_eq!((same, &served.names), (pair.clone(), &request().names));
        assert_eq!((served.issued, served.expires), (at(1), at(731)));
        assert!(served.has_authorities);
        let der = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
        let (_, parsed) = x509_parser::parse_x509_certificate(&der).unwrap();
        let usage = parsed.extended_key_usage().unwrap().unwrap();
        assert!(usage.value.server_auth && usage.value.client_auth);
        assert_eq!(parsed.subject().to_string(), "CN=*.admin.kong.svc");
    }

    #[test]
    fn what_others_signed_or_edited_is_not_served() {
        let signing = SigningAuthority::new(at(0)).unwrap();
        let other = SigningAuthority::new(at(0)).unwrap();
        let pair = other.sign(&request(), at(1)).unwrap();
        assert!(signing.served(&signing.data(&pair)).is_none(), "another CA");
        let mixed = KeyPem { key: pair.key, ..signing.sign(&request(), at(1)).unwrap() };
        assert!(signing.served(&signing.data(&mixed)).is_none(), "another key");
        assert!(signing.served(&BTreeMap::new()).is_none(), "nothing");
        let mut data = signing.data(&signing.sign(&request(), at(1)).unwrap());
        data.insert("ca.crt".to_owned(), ByteString(other.bundle().into_bytes()));
        assert!(!signing.served(&data).unwrap().1.has_authorities);
    }

    #[test]
    fn it_reads_back_what_it_writes() {
        let signing = SigningAuthority::new(at(0)).unwrap();
        assert_eq!(SigningAuthority::read(&signing.write()).unwrap(), signing);
        assert!(!format!("{signing:?}").contains("PRIVATE"), "keys are not shown");
    }

    /// Pods read the CAs when they start: the next one is in the bundle for a year before anything is signed by it.
    #[test]
    fn a_ca_is_replaced_in_years() {
        let first = SigningAuthority::new(at(0)).unwrap();
        assert_eq!(first.renewed(at(486)).unwrap(), None);
        let shown = first.renewed(at(487)).unwrap().unwrap();
        assert_ne!(shown.0.leaf, first.0.leaf, "the client certificate is renewed");
        assert_eq!(shown.bundle(), first.bundle(), "by the same CA");
        let fresh = |of: &SigningAuthority, now| {
            let leaf = client(&of.0.authority, now).unwrap();
            SigningAuthority(Stored { leaf, ..of.0.clone() })
        };
        let with_next = fresh(&first, at(2434)).renewed(at(2434)).unwrap().unwrap();
        assert_eq!(authorities(&with_next.bundle()), 2);
        let pair = with_next.sign(&request(), at(2434)).unwrap();
        assert!(first.served(&first.data(&pair)).is_some(), "the former CA still signs");
        assert_eq!(fresh(&with_next, at(2798)).renewed(at(2798)).unwrap(), None);
        let promoted = fresh(&with_next, at(2799)).renewed(at(2799)).unwrap().unwrap();
        assert_eq!(authorities(&promoted.bundle()), 2, "the former one is still trusted");
        let pair = promoted.sign(&request(), at(2799)).unwrap();
        assert!(
            first.served(&first.data(&pair)).is_none() && promoted.served(&promoted.data(&pair)).is_some()
        );
        let later = promoted.renewed(at(2799 + 487)).unwrap().unwrap();
        assert_eq!(authorities(&later.bundle()), 2, "until it ends");
        let ended = later.renewed(at(2799 + 2 * 487)).unwrap().unwrap();
        assert_eq!(authorities(&ended.bundle()), 1);
    }
}
