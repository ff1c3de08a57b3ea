//! X.509 certificates as sprig has `x509.CreateCertificate` make them.

use std::net::IpAddr;

use num_bigint::BigUint;
use sha2::{Digest as _, Sha256};

use super::der::{self, BIT_STRING, DerElement, OCTET_STRING, OID, SEQUENCE};
use super::rsa::RsaKey;
use crate::time::Time;

const COMMON_NAME: &[u8] = &[0x06, 0x03, 0x55, 0x04, 0x03];
const SHA256_WITH_RSA: &[u8] =
    &[0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b, 0x05, 0x00];
const RSA: &[u8] =
    &[0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];
/// Server and client authentication.
const EXTENDED_USAGE: &[u8] = &[
    0x30, 0x14, 0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01, 0x06, 0x08, 0x2b, 0x06, 0x01,
    0x05, 0x05, 0x07, 0x03, 0x02,
];

/// The last byte of the OIDs of extensions, `2.5.29.N`.
mod extension {
    pub(super) const SUBJECT_KEY: u8 = 14;
    pub(super) const USAGE: u8 = 15;
    pub(super) const ALTERNATIVE_NAMES: u8 = 17;
    pub(super) const CONSTRAINTS: u8 = 19;
    pub(super) const AUTHORITY_KEY: u8 = 35;
    pub(super) const EXTENDED_USAGE: u8 = 37;
}

/// What a certificate says.
pub(crate) struct CertificateTemplate<'a> {
    pub(crate) common_name: &'a str,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) names: Vec<String>,
    pub(crate) not_before: Time,
    pub(crate) not_after: Time,
    pub(crate) serial: BigUint,
    pub(crate) is_authority: bool,
}

/// The certificate that signs another.
pub(crate) struct Issuer {
    subject: Vec<u8>,
    key_id: Vec<u8>,
    public: Vec<u8>,
}

impl Issuer {
    /// From a certificate, of which the parts are read that are needed.
    pub(crate) fn parse(der: &[u8]) -> Option<Self> {
        let mut certificate = DerElement::only(der)?.inside(SEQUENCE)?;
        let mut body = certificate.expect(SEQUENCE)?.inside(SEQUENCE)?;
        certificate.expect(SEQUENCE)?;
        certificate.expect(BIT_STRING)?;
        if !certificate.is_empty() {
            return None;
        }
        body.optional(0xa0);
        body.expect(der::INTEGER)?;
        body.expect(SEQUENCE)?; // algorithm
        body.expect(SEQUENCE)?; // issuer
        body.expect(SEQUENCE)?; // validity
        let subject = body.expect(SEQUENCE)?.whole.to_vec();
        let mut public = body.expect(SEQUENCE)?.inside(SEQUENCE)?;
        public.expect(SEQUENCE)?;
        let public = public.expect(BIT_STRING)?.content.get(1..)?.to_vec();
        body.optional(0x81);
        body.optional(0x82);
        let extensions = body.optional(0xa3);
        if !body.is_empty() {
            return None;
        }
        let key_id = match extensions {
            Some(extensions) => key_id(&extensions)?,
            None => Vec::new(),
        };
        Some(Self { subject, key_id, public })
    }

    /// Whether it is of this key.
    pub(crate) fn is_of(&self, key: &RsaKey) -> bool {
        self.public == key.public_der()
    }
}

/// The subject's key among extensions, empty if there is none; `None` if they cannot be read.
fn key_id(extensions: &DerElement<'_>) -> Option<Vec<u8>> {
    let mut all = extensions.inside(0xa3)?.expect(SEQUENCE)?.inside(SEQUENCE)?;
    let mut found = Vec::new();
    while !all.is_empty() {
        let mut extension = all.expect(SEQUENCE)?.inside(SEQUENCE)?;
        let id = extension.expect(OID)?.content;
        extension.optional(der::BOOLEAN);
        let value = extension.expect(OCTET_STRING)?.content;
        if id == [0x55, 0x1d, extension::SUBJECT_KEY] {
            found = DerElement::only(value).filter(|value| value.tag == OCTET_STRING)?.content.to_vec();
        }
    }
    Some(found)
}

impl CertificateTemplate<'_> {
    /// The certificate in DER, for a key, signed by an issuer's key, or by its own.
    ///
    /// # Errors
    /// As Go's, such as a name that is not ASCII.
    pub(crate) fn sign(&self, key: &RsaKey, issuer: Option<(&Issuer, &RsaKey)>) -> Result<Vec<u8>, String> {
        let subject = name(self.common_name);
        let public = key.public_der();
        let version = der::element(0xa0, &der::integer(&BigUint::from(2_u8)));
        let issued_by = issuer.map_or(&subject, |(issuer, _)| &issuer.subject);
        // A certificate does not name the key of an issuer that has its own name.
        let authority = issuer.map(|(issuer, _)| issuer.key_id.as_slice());
        let authority = authority.filter(|id| !id.is_empty() && *issued_by != subject);
        let extensions = self.extensions(&public, authority)?;
        let body = der::sequence(&[
            version,
            der::integer(&self.serial),
            SHA256_WITH_RSA.to_vec(),
            issued_by.clone(),
            der::sequence(&[moment(&self.not_before)?, moment(&self.not_after)?]),
            subject.clone(),
            der::sequence(&[RSA.to_vec(), der::bit_string(&public)]),
            der::element(0xa3, &der::sequence(&extensions)),
        ]);
        let digest: [u8; 32] = Sha256::digest(&body).into();
        let signing = issuer.map_or(key, |(_, key)| key);
        let signature = signing.sign(&digest).ok_or("the key is too short to sign with")?;
        Ok(der::sequence(&[body, SHA256_WITH_RSA.to_vec(), der::bit_string(&signature)]))
    }

    fn extensions(&self, public: &[u8], authority: Option<&[u8]>) -> Result<Vec<Vec<u8>>, String> {
        // Digital signatures and encryption of keys, and signing certificates; the first byte counts unused bits.
        let usage = if self.is_authority { [2, 0xa4] } else { [5, 0xa0] };
        let constraints = if self.is_authority { der::element(der::BOOLEAN, &[0xff]) } else { Vec::new() };
        let mut all = vec![
            extension(extension::USAGE, true, &der::element(BIT_STRING, &usage)),
            extension(extension::EXTENDED_USAGE, false, EXTENDED_USAGE),
            extension(extension::CONSTRAINTS, true, &der::element(SEQUENCE, &constraints)),
        ];
        if self.is_authority {
            let id = &Sha256::digest(public)[..20];
            all.push(extension(extension::SUBJECT_KEY, false, &der::element(OCTET_STRING, id)));
        }
        if let Some(id) = authority {
            let id = der::element(SEQUENCE, &der::element(0x80, id));
            all.push(extension(extension::AUTHORITY_KEY, false, &id));
        }
        if !self.names.is_empty() || !self.addresses.is_empty() {
            let names = self.alternative_names()?;
            all.push(extension(extension::ALTERNATIVE_NAMES, self.common_name.is_empty(), &names));
        }
        Ok(all)
    }

    fn alternative_names(&self) -> Result<Vec<u8>, String> {
        let mut all = Vec::new();
        for name in &self.names {
            if !name.is_ascii() {
                return Err(format!("x509: {name:?} cannot be encoded as an IA5String"));
            }
            all.push(der::element(0x82, name.as_bytes()));
        }
        for address in &self.addresses {
            all.push(match address.to_canonical() {
                IpAddr::V4(address) => der::element(0x87, &address.octets()),
                IpAddr::V6(address) => der::element(0x87, &address.octets()),
            });
        }
        Ok(der::sequence(&all))
    }
}

fn extension(id: u8, is_critical: bool, value: &[u8]) -> Vec<u8> {
    let mut parts = vec![der::element(OID, &[0x55, 0x1d, id])];
    if is_critical {
        parts.push(der::element(der::BOOLEAN, &[0xff]));
    }
    parts.push(der::element(OCTET_STRING, value));
    der::sequence(&parts)
}

/// A distinguished name of one common name, if there is one.
fn name(common_name: &str) -> Vec<u8> {
    if common_name.is_empty() {
        return der::sequence(&[]);
    }
    let is_printable = |byte: u8| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte);
    let tag = if common_name.bytes().all(is_printable) { der::PRINTABLE_STRING } else { der::UTF8_STRING };
    let attribute = der::sequence(&[COMMON_NAME.to_vec(), der::element(tag, common_name.as_bytes())]);
    der::sequence(&[der::element(der::SET, &attribute)])
}

/// A moment, in the form that its year takes.
fn moment(time: &Time) -> Result<Vec<u8>, String> {
    match time.civil().year {
        1950..2050 => Ok(der::element(der::UTC_TIME, &time.format(b"060102150405Z"))),
        0..10_000 => Ok(der::element(der::GENERALIZED_TIME, &time.format(b"20060102150405Z"))),
        _ => Err("cannot represent time as GeneralizedTime".to_owned()),
    }
}
