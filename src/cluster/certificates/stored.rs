//! The Secret of the certificates, as a value.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use jiff::Timestamp;
use k8s_openapi::ByteString;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::asn1_rs::Tag;
use x509_parser::extensions::GeneralName;
use x509_parser::oid_registry::OID_X509_COMMON_NAME;
use x509_parser::prelude::{FromDer as _, X509Certificate, X509Name};

use super::authority::{BACKDATED, COMMON_NAME, KeyPem};
use super::validate;

/// Keys of the Secret. The first three are those of type `kubernetes.io/tls`, so that the same
/// Secret can be mounted and read as files.
mod key {
    pub const LEAF: &str = "tls.crt";
    pub const LEAF_KEY: &str = "tls.key";
    pub const AUTHORITY: &str = "ca.crt";
    pub const AUTHORITY_KEY: &str = "ca.key";
    pub const NEXT: &str = "next-ca.crt";
    pub const NEXT_KEY: &str = "next-ca.key";
    pub const PREVIOUS: &str = "previous-ca.crt";
}

/// Parsing PEM costs; a CA bundle of ours has at most a few certificates.
const MOST_PEM_BYTES: usize = 64 * 1024;

/// The content of the Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The CA that signed the leaf.
    pub authority: KeyPem,
    /// The served certificate.
    pub leaf: KeyPem,
    /// The CA that will sign the next leaf, once every caBundle holds it.
    pub next: Option<KeyPem>,
    /// CAs, as PEM, whose leaves a replica may still serve.
    pub previous: String,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum InvalidSecret {
    /// A key of the Secret is absent or empty.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A key holds no UTF-8, or more than any certificate needs.
    #[error("{0} is not text")]
    NotText(&'static str),
    /// A key holds text that is no certificate; the reason.
    #[error("{0} is not a certificate: {1}")]
    NotCertificate(&'static str, String),
    /// A certificate that Interlock did not make.
    #[error("{0} is not a CA of Interlock")]
    NotOurs(&'static str),
    /// A key is invalid or of another certificate; its name, the certificate's, and the reason.
    #[error("{0} is not the key of {1}: {2}")]
    NotItsKey(&'static str, &'static str, String),
    /// Another CA signed the leaf; the reason.
    #[error("{leaf} is not signed by {authority}: {0}", leaf = key::LEAF, authority = key::AUTHORITY)]
    OtherIssuer(String),
}

impl Stored {
    pub fn read(data: &BTreeMap<String, ByteString>) -> Result<Self, InvalidSecret> {
        let text = |key: &'static str| match data.get(key) {
            None => Ok(None),
            Some(ByteString(bytes)) if bytes.len() > MOST_PEM_BYTES => Err(InvalidSecret::NotText(key)),
            Some(ByteString(bytes)) => {
                String::from_utf8(bytes.clone()).map(Some).map_err(|_| InvalidSecret::NotText(key))
            }
        };
        let needed = |key| text(key)?.filter(|text| !text.is_empty()).ok_or(InvalidSecret::Missing(key));
        let next = match (text(key::NEXT)?, text(key::NEXT_KEY)?) {
            (Some(certificate), Some(key)) => Some(KeyPem { certificate, key }),
            _ => None,
        };
        let stored = Self {
            authority: KeyPem { certificate: needed(key::AUTHORITY)?, key: needed(key::AUTHORITY_KEY)? },
            leaf: KeyPem { certificate: needed(key::LEAF)?, key: needed(key::LEAF_KEY)? },
            next,
            previous: text(key::PREVIOUS)?.unwrap_or_default(),
        };
        stored.check()?;
        Ok(stored)
    }

    /// Validates the parts, and that they belong together.
    fn check(&self) -> Result<(), InvalidSecret> {
        check_authority(&self.authority, key::AUTHORITY, key::AUTHORITY_KEY)?;
        if let Some(next) = &self.next {
            check_authority(next, key::NEXT, key::NEXT_KEY)?;
        }
        check_readable(&self.previous, key::PREVIOUS)?;
        check_readable(&self.leaf.certificate, key::LEAF)?;
        facts(&self.leaf.certificate, key::LEAF)?;
        validate::check_leaf_key(&self.leaf)
            .map_err(|problem| InvalidSecret::NotItsKey(key::LEAF_KEY, key::LEAF, problem))?;
        validate::check_signature(&self.authority, &self.leaf).map_err(InvalidSecret::OtherIssuer)
    }

    /// The data of the Secret.
    pub fn write(&self) -> BTreeMap<String, ByteString> {
        let mut data = BTreeMap::new();
        let mut put = |key: &str, text: &str| {
            if !text.is_empty() {
                data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec()));
            }
        };
        put(key::AUTHORITY, &self.authority.certificate);
        put(key::AUTHORITY_KEY, &self.authority.key);
        put(key::LEAF, &self.leaf.certificate);
        put(key::LEAF_KEY, &self.leaf.key);
        put(key::PREVIOUS, &self.previous);
        if let Some(next) = &self.next {
            put(key::NEXT, &next.certificate);
            put(key::NEXT_KEY, &next.key);
        }
        data
    }

    /// The bundle for every caBundle of ours: the CA of each leaf that is or may soon be served.
    pub fn bundle(&self) -> String {
        let next = self.next.as_ref().map_or("", |next| next.certificate.as_str());
        let mut bundle = String::new();
        for pem in [self.authority.certificate.as_str(), next, self.previous.as_str()] {
            bundle.push_str(pem.trim());
            bundle.push_str(if pem.is_empty() { "" } else { "\n" });
        }
        bundle
    }
}

fn check_authority(pem: &KeyPem, certificate: &'static str, key: &'static str) -> Result<(), InvalidSecret> {
    check_readable(&pem.certificate, certificate)?;
    if !facts(&pem.certificate, certificate)?.ours {
        return Err(InvalidSecret::NotOurs(certificate));
    }
    validate::check_ca_key(pem).map_err(|problem| InvalidSecret::NotItsKey(key, certificate, problem))
}

fn facts(pem: &str, key: &'static str) -> Result<CertificateFacts, InvalidSecret> {
    CertificateFacts::of(pem).map_err(|problem| InvalidSecret::NotCertificate(key, problem))
}

/// All of it: the API server rejects a caBundle with half a certificate.
fn check_readable(pem: &str, key: &'static str) -> Result<(), InvalidSecret> {
    validate::chain(pem).map(drop).map_err(|problem| InvalidSecret::NotCertificate(key, problem))
}

/// The facts about a certificate that decisions need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFacts {
    /// When it was made; its validity begins earlier.
    pub issued: Timestamp,
    /// When it ends.
    pub expires: Timestamp,
    /// DNS names and addresses.
    pub names: Vec<String>,
    /// Whether it is a CA that Interlock made.
    pub ours: bool,
}

impl CertificateFacts {
    /// Of the first certificate in a PEM.
    pub fn of(pem: &str) -> Result<Self, String> {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())?;
        Self::of_der(&der)
    }

    fn of_der(der: &CertificateDer<'_>) -> Result<Self, String> {
        let (_, certificate) = X509Certificate::from_der(der).map_err(|error| error.to_string())?;
        let at = |seconds| Timestamp::from_second(seconds).map_err(|error| error.to_string());
        let begins = at(certificate.validity().not_before.timestamp())?;
        let alternatives = certificate.subject_alternative_name().map_err(|error| error.to_string())?;
        let names = alternatives.iter().flat_map(|names| &names.value.general_names);
        Ok(Self {
            issued: begins + BACKDATED,
            expires: at(certificate.validity().not_after.timestamp())?,
            names: names.filter_map(name).collect(),
            ours: certificate.is_ca() && is_our_name(certificate.subject()),
        })
    }
}

/// Compares bytes with the issuer of our leaves: a CA of another name cannot sign for them.
fn is_our_name(subject: &X509Name<'_>) -> bool {
    let mut attributes = subject.iter_attributes();
    let (Some(only), None) = (attributes.next(), attributes.next()) else { return false };
    *only.attr_type() == OID_X509_COMMON_NAME
        && only.attr_value().tag() == Tag::Utf8String
        && only.as_str().is_ok_and(|name| name == COMMON_NAME)
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let short = <[u8; 4]>::try_from(*bytes).map(|bytes| Ipv4Addr::from(bytes).to_string());
            short
                .or_else(|_| <[u8; 16]>::try_from(*bytes).map(|bytes| Ipv6Addr::from(bytes).to_string()))
                .ok()
        }
        _ => None,
    }
}

/// The parsable certificates of a bundle.
pub fn certificates(bundle: &[u8]) -> Vec<CertificateDer<'static>> {
    if bundle.len() > MOST_PEM_BYTES {
        return Vec::new();
    }
    CertificateDer::pem_slice_iter(bundle).filter_map(Result::ok).collect()
}

/// The unexpired CAs of ours in a bundle, as PEM, each once, without `known`.
pub fn our_cas(bundles: &[Vec<u8>], known: &str, now: Timestamp) -> String {
    unexpired_cas(bundles, known, now).iter().map(pem).collect()
}

/// The unexpired CAs of ours in bundles, each once, without `known`.
pub fn unexpired_cas(bundles: &[Vec<u8>], known: &str, now: Timestamp) -> Vec<CertificateDer<'static>> {
    let known = certificates(known.as_bytes());
    let mut found: Vec<CertificateDer<'static>> = Vec::new();
    for certificate in bundles.iter().flat_map(|bundle| certificates(bundle)) {
        if is_unexpired_ca(&certificate, now)
            && !known.contains(&certificate)
            && !found.contains(&certificate)
        {
            found.push(certificate);
        }
    }
    found
}

/// Whether it is an unexpired CA of ours.
pub fn is_unexpired_ca(certificate: &CertificateDer<'_>, now: Timestamp) -> bool {
    CertificateFacts::of_der(certificate).is_ok_and(|facts| facts.ours && facts.expires > now)
}

pub fn pem(certificate: &CertificateDer<'_>) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, tail) = rest.split_at(rest.len().min(64));
        pem.push_str(line);
        pem.push('\n');
        rest = tail;
    }
    pem.push_str("-----END CERTIFICATE-----\n");
    pem
}

#[cfg(test)]
mod tests {
    use super::super::authority::{authority, leaf};
    use super::*;
    use rcgen::DnType;
    use rstest::rstest;
    use std::time::Duration;

    fn stored(now: Timestamp) -> Stored {
        let ca = authority(now, Duration::from_secs(1000)).unwrap();
        let names = ["a.b.svc".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        let leaf = leaf(&ca, &names, now, Duration::from_secs(100)).unwrap();
        Stored { authority: ca, leaf, next: None, previous: String::new() }
    }

    #[test]
    fn what_is_written_is_read() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let mut stored = stored(now);
        assert_eq!(Stored::read(&stored.write()), Ok(stored.clone()));
        stored.previous = stored.authority.certificate.clone();
        stored.next = Some(authority(now, Duration::from_secs(9)).unwrap());
        assert_eq!(Stored::read(&stored.write()), Ok(stored.clone()));
        assert_eq!(certificates(stored.bundle().as_bytes()).len(), 3);
        let facts = CertificateFacts::of(&stored.leaf.certificate).unwrap();
        assert_eq!(facts.names, ["a.b.svc", "127.0.0.1", "::1"]);
        assert_eq!((facts.issued, facts.expires), (now, now + Duration::from_secs(100)));
        assert!(!facts.ours && CertificateFacts::of(&stored.authority.certificate).unwrap().ours);
    }

    const NOW: i64 = 1_800_000_000;

    fn moment() -> Timestamp {
        Timestamp::from_second(NOW).unwrap()
    }

    /// A Secret with a next CA, some keys of which are replaced.
    fn with_replaced_keys(by: &[(&str, &str)]) -> Result<Stored, InvalidSecret> {
        let next = Some(authority(moment(), Duration::from_secs(1000)).unwrap());
        let mut data = Stored { next, ..stored(moment()) }.write();
        for (key, text) in by {
            data.insert((*key).to_owned(), ByteString(text.as_bytes().to_vec()));
        }
        Stored::read(&data)
    }

    /// A Secret of another CA.
    fn other() -> Stored {
        stored(moment())
    }

    #[rstest]
    #[case::nothing(&[], "")]
    #[case::leaf(&[("tls.crt", "nonsense".to_owned())], "tls.crt is not a certificate: ")]
    #[case::chain(
        &[("tls.crt", format!("{}-----BEGIN CERTIFICATE-----\n", other().leaf.certificate))],
        "tls.crt is not a certificate: ",
    )]
    #[case::leaf_key(&[("tls.key", "nonsense".to_owned())], "tls.key is not the key of tls.crt: ")]
    #[case::leaf_key_of_another(&[("tls.key", other().leaf.key)], "tls.key is not the key of tls.crt: ")]
    #[case::leaf_without_its_key(&[("tls.crt", other().leaf.certificate)], "tls.key is not the key of tls.crt: ")]
    #[case::ca(&[("ca.crt", "nonsense".to_owned())], "ca.crt is not a certificate: ")]
    #[case::ca_that_is_none(&[("ca.crt", other().leaf.certificate)], "ca.crt is not a CA of Interlock")]
    #[case::ca_key(&[("ca.key", "nonsense".to_owned())], "ca.key is not the key of ca.crt: ")]
    #[case::ca_key_of_another(&[("ca.key", other().authority.key)], "ca.key is not the key of ca.crt: ")]
    #[case::ca_without_its_key(&[("ca.crt", other().authority.certificate)], "ca.key is not the key of ca.crt: ")]
    #[case::next_key(&[("next-ca.key", "nonsense".to_owned())], "next-ca.key is not the key of next-ca.crt: ")]
    #[case::next_key_of_another(
        &[("next-ca.key", other().authority.key)],
        "next-ca.key is not the key of next-ca.crt: ",
    )]
    #[case::previous(
        &[("previous-ca.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned())],
        "previous-ca.crt is not a certificate: ",
    )]
    fn what_does_not_belong_is_named(#[case] by: &[(&str, String)], #[case] problem: &str) {
        let by: Vec<_> = by.iter().map(|(key, text)| (*key, text.as_str())).collect();
        let said = with_replaced_keys(&by).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.starts_with(problem) && said.is_empty() == problem.is_empty(), "{said:?}");
    }

    #[test]
    fn a_pair_of_another_authority_is_named() {
        let other = other();
        let leaf = [("tls.crt", &*other.leaf.certificate), ("tls.key", &other.leaf.key)];
        assert!(
            matches!(with_replaced_keys(&leaf), Err(InvalidSecret::OtherIssuer(_))),
            "the leaf is of another"
        );
        let ca = [("ca.crt", &*other.authority.certificate), ("ca.key", &other.authority.key)];
        assert!(matches!(with_replaced_keys(&ca), Err(InvalidSecret::OtherIssuer(_))), "the CA is another");
        let said = InvalidSecret::OtherIssuer("why".to_owned()).to_string();
        assert_eq!(said, "tls.crt is not signed by ca.crt: why");
    }

    #[test]
    fn a_leaf_that_has_ended_is_still_of_its_authority() {
        let long_ago = Timestamp::from_second(1_000_000_000).unwrap();
        assert!(Stored::read(&stored(long_ago).write()).is_ok());
    }

    #[rstest]
    #[case::ours(&[(DnType::CommonName, "interlock-ca")], true)]
    #[case::another(&[(DnType::CommonName, "other-ca")], false)]
    #[case::more(&[(DnType::CommonName, "interlock-ca"), (DnType::OrganizationName, "o")], false)]
    #[case::elsewhere(&[(DnType::OrganizationName, "interlock-ca")], false)]
    fn a_name_is_ours_as_a_whole(#[case] name: &[(DnType, &str)], #[case] ours: bool) {
        let mut parameters = rcgen::CertificateParams::default();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, text) in name {
            parameters.distinguished_name.push(kind.clone(), *text);
        }
        let pem = parameters.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap().pem();
        assert_eq!(CertificateFacts::of(&pem).unwrap().ours, ours);
    }

    #[test]
    fn what_is_missing_or_no_text_is_named() {
        let mut data = stored(moment()).write();
        data.insert("tls.key".to_owned(), ByteString(vec![0xff]));
        assert_eq!(Stored::read(&data), Err(InvalidSecret::NotText("tls.key")));
        data.remove("ca.key");
        assert_eq!(Stored::read(&data), Err(InvalidSecret::Missing("ca.key")));
    }

    #[test]
    fn only_living_authorities_of_ours_are_kept_from_a_bundle() {
        let now = Timestamp::from_second(1_800_000_000).unwrap();
        let (one, dead) = (stored(now), authority(now, Duration::from_secs(1)).unwrap());
        let bundle =
            format!("junk\n{}{}{}", one.authority.certificate, dead.certificate, one.leaf.certificate);
        let later = now + Duration::from_secs(5);
        let kept = our_cas(&[bundle.clone().into_bytes(), bundle.clone().into_bytes()], "", later);
        assert_eq!(certificates(kept.as_bytes()), certificates(one.authority.certificate.as_bytes()));
        assert_eq!(our_cas(&[bundle.into_bytes()], &one.authority.certificate, later), "");
    }
}
