//! X.509 certificates as sprig has `x509.CreateCertificate` make them.

use std::net::IpAddr;

use der::asn1::{Any, BitString, Ia5String, ObjectIdentifier, OctetString, SetOfVec};
use der::oid::AssociatedOid;
use der::{DateTime, Decode as _, Encode, Tag};
use rsa::pkcs1v15::Signature;
use sha2::{Digest as _, Sha256};
use x509_cert::Certificate;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::builder::profile::BuilderProfile;
use x509_cert::builder::{self, Builder as _, CertificateBuilder};
use x509_cert::certificate::TbsCertificate;
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages, SubjectAltName,
    SubjectKeyIdentifier,
};
use x509_cert::name::{Name, RdnSequence, RelativeDistinguishedName};
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{SubjectPublicKeyInfo, SubjectPublicKeyInfoRef};
use x509_cert::time::Validity;

use super::rsa::RsaKey;
use crate::time::Time;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const SERVER_AUTHENTICATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");
const CLIENT_AUTHENTICATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2");

/// What a certificate says.
pub(crate) struct CertificateTemplate<'a> {
    pub(crate) common_name: &'a str,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) names: Vec<String>,
    pub(crate) not_before: Time,
    pub(crate) not_after: Time,
    pub(crate) serial: Vec<u8>,
    pub(crate) is_authority: bool,
}

/// The certificate that signs another.
pub(crate) struct Issuer {
    subject: Name,
    key_id: Option<OctetString>,
    public: BitString,
}

impl Issuer {
    /// From a certificate.
    pub(crate) fn parse(der: &[u8]) -> Option<Self> {
        let certificate = Certificate::from_der(der).ok()?;
        let said = certificate.tbs_certificate();
        let key_id = said.get_extension::<SubjectKeyIdentifier>().ok()?;
        Some(Self {
            subject: said.subject().clone(),
            key_id: key_id.map(|(_, id)| id.0),
            public: said.subject_public_key_info().subject_public_key.clone(),
        })
    }

    /// Whether it is of this key.
    pub(crate) fn is_of(&self, key: &RsaKey) -> bool {
        public(key).is_ok_and(|public| public.subject_public_key == self.public)
    }
}

fn public(key: &RsaKey) -> Result<SubjectPublicKeyInfo<Any, BitString>, builder::Error> {
    use rsa::signature::Keypair as _;
    Ok(SubjectPublicKeyInfo::from_key(&key.signing().verifying_key())?)
}

impl CertificateTemplate<'_> {
    /// The certificate in DER, for a key, signed by an issuer's key, or by its own.
    ///
    /// # Errors
    /// As Go's, such as a name that is not ASCII.
    pub(crate) fn sign(&self, key: &RsaKey, issuer: Option<(&Issuer, &RsaKey)>) -> Result<Vec<u8>, String> {
        if let Some(name) = self.names.iter().find(|name| !name.is_ascii()) {
            return Err(format!("x509: {name:?} cannot be encoded as an IA5String"));
        }
        let validity = Validity::new(moment(&self.not_before)?, moment(&self.not_after)?);
        let signed = || {
            let profile = Profile {
                said: self,
                subject: name(self.common_name)?,
                issuer: issuer.map(|(issuer, _)| issuer),
            };
            let serial = SerialNumber::new(&self.serial)?;
            let builder = CertificateBuilder::new(profile, serial, validity, public(key)?)?;
            let signing = issuer.map_or(key, |(_, key)| key).signing();
            let certificate = builder.build::<_, Signature>(&signing)?;
            Ok(certificate.to_der()?)
        };
        signed().map_err(|error: builder::Error| format!("x509: {error}"))
    }
}

/// The fields of a certificate that are Go's.
struct Profile<'a> {
    said: &'a CertificateTemplate<'a>,
    subject: Name,
    issuer: Option<&'a Issuer>,
}

impl BuilderProfile for Profile<'_> {
    fn get_issuer(&self, subject: &Name) -> Name {
        self.issuer.map_or(subject, |issuer| &issuer.subject).clone()
    }

    fn get_subject(&self) -> Name {
        self.subject.clone()
    }

    /// In Go's order, and as critical as there.
    fn build_extensions(
        &self,
        public: SubjectPublicKeyInfoRef<'_>,
        _: SubjectPublicKeyInfoRef<'_>,
        _: &TbsCertificate,
    ) -> builder::Result<Vec<Extension>> {
        let ca = self.said.is_authority;
        let mut usage = KeyUsages::DigitalSignature | KeyUsages::KeyEncipherment;
        if ca {
            usage |= KeyUsages::KeyCertSign;
        }
        let extended = ExtendedKeyUsage(vec![SERVER_AUTHENTICATION, CLIENT_AUTHENTICATION]);
        let mut all = vec![
            extension(true, &KeyUsage(usage))?,
            extension(false, &extended)?,
            extension(true, &BasicConstraints { ca, path_len_constraint: None })?,
        ];
        if ca {
            let id = OctetString::new(&Sha256::digest(public.subject_public_key.raw_bytes())[..20])?;
            all.push(extension(false, &SubjectKeyIdentifier(id))?);
        }
        // A certificate does not name the key of an issuer that has its own name.
        let other = self.issuer.filter(|issuer| issuer.subject != self.subject);
        if let Some(id) =
            other.and_then(|issuer| issuer.key_id.clone()).filter(|id| !id.as_bytes().is_empty())
        {
            let id = AuthorityKeyIdentifier { key_identifier: Some(id), ..Default::default() };
            all.push(extension(false, &id)?);
        }
        let names = self.alternative_names()?;
        if !names.0.is_empty() {
            all.push(extension(self.said.common_name.is_empty(), &names)?);
        }
        Ok(all)
    }
}

impl Profile<'_> {
    fn alternative_names(&self) -> builder::Result<SubjectAltName> {
        let mut all = Vec::new();
        for name in &self.said.names {
            all.push(GeneralName::DnsName(Ia5String::new(name)?));
        }
        all.extend(self.said.addresses.iter().map(|address| GeneralName::from(address.to_canonical())));
        Ok(SubjectAltName(all))
    }
}

fn extension<E: Encode + AssociatedOid>(critical: bool, value: &E) -> builder::Result<Extension> {
    Ok(Extension { extn_id: E::OID, critical, extn_value: OctetString::new(value.to_der()?)? })
}

/// A distinguished name of one common name, if there is one.
fn name(common_name: &str) -> builder::Result<Name> {
    let mut parts = RdnSequence::default();
    if !common_name.is_empty() {
        let is_printable = |byte: u8| byte.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&byte);
        let tag = if common_name.bytes().all(is_printable) { Tag::PrintableString } else { Tag::Utf8String };
        let value = Any::new(tag, common_name.as_bytes())?;
        let part = SetOfVec::try_from([AttributeTypeAndValue { oid: COMMON_NAME, value }])?;
        parts.push(RelativeDistinguishedName::from(part));
    }
    Ok(Name::from_der(&parts.to_der()?)?)
}

/// A moment, in the form that its year takes.
fn moment(time: &Time) -> Result<x509_cert::time::Time, String> {
    let civil = time.civil();
    let unrepresented =
        || format!("cannot represent the year {}: it takes one from 1970 to 9999", civil.year);
    let part = |number: i64| u8::try_from(number).map_err(|_| unrepresented());
    let year = u16::try_from(civil.year).map_err(|_| unrepresented())?;
    let [month, day] = [part(civil.month)?, part(civil.day)?];
    let [hour, minute, second] = [part(civil.hour)?, part(civil.minute)?, part(civil.second)?];
    let moment = DateTime::new(year, month, day, hour, minute, second).map_err(|_| unrepresented())?;
    Ok(moment.into())
}
