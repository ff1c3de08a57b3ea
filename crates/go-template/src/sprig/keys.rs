//! Keys, certificates, derived passwords and AES.

use std::net::IpAddr;
use std::rc::Rc;

use aes::Aes256;
use aes::cipher::{BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use super::coerce;
use super::random::stream;
use crate::crypto::certificate::{CertificateTemplate, Issuer};
use crate::crypto::making::Making;
use crate::crypto::rsa::RsaKey;
use crate::crypto::{dsa, p256, pem};
use crate::dynamic::{Certificate, Val};
use crate::error::Failure;
use crate::function::Type::{self, Int, List, Str, Uint32};
use crate::function::{Function, arg, fixed};
use crate::generator::Stream;
use crate::go::base64_bytes;
use crate::limits::{MAX_KEYS, Meter};
use crate::time::Time;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("genPrivateKey", &[Str], private_key),
    fixed("derivePassword", &[Uint32, Str, Str, Str, Str], derived_password),
    fixed("buildCustomCert", &[Str, Str], custom_certificate),
    fixed("genCA", &[Str, Int], authority),
    fixed("genSelfSignedCert", &[Str, List, List, Int], self_signed),
    fixed("genSignedCert", &[Str, List, List, Int, Type::Certificate], signed),
    fixed("encryptAES", &[Str, Str], encrypted),
    fixed("decryptAES", &[Str, Str], decrypted),
];

/// Costs of keys, of [`MAX_KEYS`]: about 20 ms of a processor each, whatever the luck of the search.
const RSA_4096: usize = 24;
const RSA_2048: usize = 3;
const DSA_2048: usize = 12;
const EC_256: usize = 1;

/// Cost of a derived password: scrypt with 32 MiB of memory.
const DERIVED: usize = 8;

/// Work of a call that finds its key made, and of reading a key that is given.
const CALL: usize = 16 << 10;

/// Bytes of a block of AES.
const BLOCK: usize = 16;

const LABEL_RSA: &str = "RSA PRIVATE KEY";

/// Charges for a key, before it is made.
fn charge_key(meter: &Meter, cost: usize) -> Result<(), Failure> {
    meter.read(CALL)?;
    meter.keys().charge(cost).map_err(|number| {
        Failure::new(format!(
            "key number {number} of this task is over its budget, which is {} keys of RSA with 4096 bits, {} of DSA, \
             {} derived passwords, {} certificates or {} keys of EC: make fewer, divide the task, or use \
             genPrivateKey \"ecdsa\"",
            MAX_KEYS / RSA_4096,
            MAX_KEYS / DSA_2048,
            MAX_KEYS / DERIVED,
            MAX_KEYS / RSA_2048,
            MAX_KEYS / EC_256,
        ))
    })
}

fn private_key(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let kind = arg::text(args, 0);
    let (cost, label) = match kind {
        b"" | b"rsa" => (RSA_4096, LABEL_RSA),
        b"dsa" => (DSA_2048, "DSA PRIVATE KEY"),
        b"ecdsa" => (EC_256, "EC PRIVATE KEY"),
        _ => return Ok(Val::str([b"Unknown type ", kind].concat())),
    };
    charge_key(meter, cost)?;
    meter.bytes(4 << 10)?;
    let mut stream = stream(meter)?;
    let mut making = Making::of(meter, &[label.as_bytes(), stream.key()]);
    if let Some([text]) = making.made() {
        return Ok(Val::str(&text[..]));
    }
    let der = match cost {
        RSA_4096 => RsaKey::generate(&mut making, &stream, 4096)?.der()?,
        DSA_2048 => dsa::generate(&mut making, &stream)?,
        _ => p256::generate(&mut stream)?,
    };
    let text = pem::encode(label, &der);
    making.finish(&[text.as_bytes()])?;
    Ok(Val::str(text))
}

const PASSWORD_SEED: &[u8] = b"com.lyndir.masterpassword";

/// Templates of the Master Password algorithm; each letter is a class of characters.
fn password_templates(kind: &[u8]) -> Vec<&'static str> {
    let templates = match kind {
        b"maximum" => "anoxxxxxxxxxxxxxxxxx axxxxxxxxxxxxxxxxxno",
        b"long" => {
            "CvcvnoCvcvCvcv CvcvCvcvnoCvcv CvcvCvcvCvcvno CvccnoCvcvCvcv CvccCvcvnoCvcv CvccCvcvCvcvno \
             CvcvnoCvccCvcv CvcvCvccnoCvcv CvcvCvccCvcvno CvcvnoCvcvCvcc CvcvCvcvnoCvcc CvcvCvcvCvccno \
             CvccnoCvccCvcv CvccCvccnoCvcv CvccCvccCvcvno CvcvnoCvccCvcc CvcvCvccnoCvcc CvcvCvccCvccno \
             CvccnoCvcvCvcc CvccCvcvnoCvcc CvccCvcvCvccno"
        }
        b"medium" => "CvcnoCvc CvcCvcno",
        b"short" => "Cvcn",
        b"basic" => "aaanaaan aannaaan aaannaaa",
        b"pin" => "nnnn",
        _ => "",
    };
    templates.split_whitespace().collect()
}

fn password_characters(class: u8) -> &'static [u8] {
    match class {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'A' => b"AEIOUBCDFGHJKLMNPQRSTVWXYZ",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

fn derived_password(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let (kind, password) = (arg::text(args, 1), arg::text(args, 2));
    let templates = password_templates(kind);
    if templates.is_empty() {
        return Ok(Val::str([b"cannot find password template ", kind].concat()));
    }
    charge_key(meter, DERIVED)?;
    meter.bytes(64)?;
    let lengthened = |text: &[u8]| {
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes();
        [PASSWORD_SEED, &length, text].concat()
    };
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("failed to derive password: {error}"));
    let salt = lengthened(arg::text(args, 3));
    let mut making = Making::of(meter, &[b"scrypt", password, &salt]);
    let key = match making.made() {
        Some([key]) => key.clone(),
        _ => {
            let parameters = scrypt::Params::new(15, 8, 2).map_err(|error| failed(&error))?;
            let mut key = [0; 64];
            scrypt::scrypt(password, &salt, &parameters, &mut key).map_err(|error| failed(&error))?;
            making.finish(&[&key])?;
            key.into()
        }
    };
    let counter = u32::try_from(arg::int(args, 0)).unwrap_or_default().to_be_bytes();
    let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(&key).map_err(|error| failed(&error))?;
    mac.update(&[lengthened(arg::text(args, 4)).as_slice(), &counter].concat());
    let seed = mac.finalize().into_bytes();
    let template = templates[usize::from(seed[0]) % templates.len()];
    let characters = template.bytes().zip(seed.iter().skip(1)).map(|(class, byte)| {
        let characters = password_characters(class);
        characters[usize::from(*byte) % characters.len()]
    });
    Ok(Val::str(characters.collect::<Vec<u8>>()))
}

fn custom_certificate(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    meter.bytes(arg::text(args, 0).len().saturating_add(arg::text(args, 1).len()).saturating_mul(2))?;
    let decoded = |at: usize, what: &str| {
        let bytes = base64_bytes(arg::text(args, at));
        bytes.map_err(|_| Failure::new(format!("unable to decode base64 {what}")))
    };
    meter.read(CALL)?;
    let (cert, key) = (decoded(0, "certificate")?, decoded(1, "private key")?);
    parse_issuer(&cert, "decodedCert")?;
    parse_key(&key, "key", "decodedKey")?;
    Ok(Val::Certificate(Rc::new(Certificate { cert: cert.into(), key: key.into() })))
}

fn parse_issuer(text: &[u8], name: &str) -> Result<Issuer, Failure> {
    let der = pem::decode(text).ok_or_else(|| Failure::new("unable to decode certificate"))?;
    Issuer::parse(&der).ok_or_else(|| {
        Failure::new(format!("error parsing certificate: {name}.Bytes: x509: malformed certificate"))
    })
}

fn parse_key(text: &[u8], what: &str, name: &str) -> Result<RsaKey, Failure> {
    let der = pem::decode(text).ok_or_else(|| Failure::new(format!("unable to decode {what}")))?;
    RsaKey::parse(&der).ok_or_else(|| {
        Failure::new(format!("error parsing prive key: {name}.Bytes: it is no RSA key of PKCS #1"))
    })
}

fn authority(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    made(meter, args, Names { addresses: Vec::new(), names: Vec::new(), days: arg::int(args, 1) }, true, None)
}

fn self_signed(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    made(meter, args, Names::of(meter, args)?, false, None)
}

fn signed(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let Some(Val::Certificate(by)) = args.get(4) else { return Err(coerce::nil_dereference()) };
    meter.bytes(by.cert.len().saturating_add(by.key.len()))?;
    let issuer = parse_issuer(&by.cert, "decodedSignerCert")?;
    let key = parse_key(&by.key, "key", "decodedSignerKey")?;
    if !issuer.is_of(&key) {
        let message =
            "error creating certificate: x509: provided PrivateKey doesn't match parent's PublicKey";
        return Err(Failure::new(message));
    }
    made(meter, args, Names::of(meter, args)?, false, Some((&issuer, &key)))
}

/// What a certificate is for, and how long.
struct Names {
    addresses: Vec<IpAddr>,
    names: Vec<String>,
    days: i64,
}

impl Names {
    fn of(meter: &Meter, args: &[Val]) -> Result<Self, Failure> {
        let not_a_text = |what: &str, value: &Val| -> Failure {
            match coerce::text(meter, value) {
                Ok(text) => {
                    Failure::new(format!("error {what}: {} is not a string", String::from_utf8_lossy(&text)))
                }
                Err(failure) => failure,
            }
        };
        let mut addresses = Vec::new();
        for value in arg::items(args, 1) {
            let Val::Str(text) = value else { return Err(not_a_text("parsing ip", value)) };
            let text = String::from_utf8_lossy(text);
            let address = text.parse().map_err(|_| Failure::new(format!("error parsing ip: {text}")))?;
            addresses.push(address);
        }
        let mut names = Vec::new();
        for value in arg::items(args, 2) {
            let Val::Str(text) = value else {
                return Err(not_a_text("processing alternate dns name", value));
            };
            meter.bytes(text.len())?;
            names.push(String::from_utf8_lossy(text).into_owned());
        }
        meter.items(names.len() + addresses.len())?;
        Ok(Self { addresses, names, days: arg::int(args, 3) })
    }
}

/// A certificate and its key, of 2048 bits.
fn made(
    meter: &Meter,
    args: &[Val],
    names: Names,
    is_authority: bool,
    issuer: Option<(&Issuer, &RsaKey)>,
) -> Result<Val, Failure> {
    charge_key(meter, RSA_2048)?;
    meter.bytes(8 << 10)?;
    let now = meter.now().map(|now| Time::of_second(now.as_second()));
    let now =
        now.ok_or(Failure::NoGenerator("this rendering has no clock: pass the certificate as a value"))?;
    let mut stream = stream(meter)?;
    let nanos = names.days.wrapping_mul(24 * 3_600_000_000_000);
    let wanted = CertificateTemplate {
        common_name: &arg::chars(args, 0),
        addresses: names.addresses,
        names: names.names,
        not_after: now.plus(nanos),
        not_before: now,
        serial: stream.bytes(16),
        is_authority,
    };
    let mut making = making(meter, &wanted, &stream, args.get(4));
    if let Some([cert, key]) = making.made() {
        return Ok(Val::Certificate(Rc::new(Certificate {
            cert: cert.as_ref().into(),
            key: key.as_ref().into(),
        })));
    }
    let key = RsaKey::generate(&mut making, &stream, 2048)?;
    let der = wanted
        .sign(&key, issuer)
        .map_err(|error| Failure::new(format!("error creating certificate: {error}")))?;
    let (cert, key) = (pem::encode("CERTIFICATE", &der), pem::encode(LABEL_RSA, &key.der()?));
    making.finish(&[cert.as_bytes(), key.as_bytes()])?;
    Ok(Val::Certificate(Rc::new(Certificate { cert: cert.as_bytes().into(), key: key.as_bytes().into() })))
}

/// The making of a certificate, which is a function of what it says, of the stream, and of the issuer.
fn making<'m, 'i>(
    meter: &'m Meter<'i>,
    wanted: &CertificateTemplate<'_>,
    stream: &Stream,
    issuer: Option<&Val>,
) -> Making<'m, 'i> {
    let times = [wanted.not_before.second, wanted.not_after.second, i64::from(wanted.is_authority)];
    let said = format!("{times:?} {:?} {:?} {:?}", wanted.common_name, wanted.addresses, wanted.names);
    let (cert, key): (&[u8], &[u8]) = match issuer {
        Some(Val::Certificate(by)) => (&by.cert, &by.key),
        _ => (&[], &[]),
    };
    Making::of(meter, &[b"certificate", stream.key(), said.as_bytes(), cert, key])
}

/// The cipher of a password, of which the first 32 bytes count.
fn cipher(password: &[u8]) -> Aes256 {
    let mut key = [0; 32];
    let length = password.len().min(key.len());
    key[..length].copy_from_slice(&password[..length]);
    Aes256::new(&key.into())
}

/// Work of encrypting or decrypting, which without the processor's instructions takes a while.
fn charge(meter: &Meter, length: usize) -> Result<(), Failure> {
    meter.bytes(length.saturating_mul(2))?;
    Ok(meter.read(length.saturating_mul(4))?)
}

/// AES in CBC mode; the text is behind a random first block.
fn encrypted(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let (password, text) = (arg::text(args, 0), arg::text(args, 1));
    if text.is_empty() {
        return Ok(Val::str(""));
    }
    charge(meter, text.len())?;
    let cipher = cipher(password);
    let padding = BLOCK - text.len() % BLOCK;
    let padded = [text, vec![padding as u8; padding].as_slice()].concat();
    let mut out = stream(meter)?.bytes(BLOCK);
    for plain in padded.chunks_exact(BLOCK) {
        let before = &out[out.len() - BLOCK..];
        let mixed: Vec<u8> = plain.iter().zip(before).map(|(a, b)| a ^ b).collect();
        let mut block = aes::Block::default();
        block.copy_from_slice(&mixed);
        cipher.encrypt_block(&mut block);
        out.extend_from_slice(&block);
    }
    Ok(Val::str(STANDARD.encode(out)))
}

fn decrypted(meter: &Meter, args: &[Val]) -> Result<Val, Failure> {
    let (password, text) = (arg::text(args, 0), arg::text(args, 1));
    if text.is_empty() {
        return Ok(Val::str(""));
    }
    charge(meter, text.len())?;
    let bytes = base64_bytes(text).map_err(|error| Failure::new(format!("illegal base64 data: {error}")))?;
    let cipher = cipher(password);
    if bytes.len() < BLOCK || bytes.len() % BLOCK != 0 {
        return Err(Failure::new("crypto/cipher: input not full blocks"));
    }
    let mut out = Vec::with_capacity(bytes.len());
    for (secret, before) in bytes[BLOCK..].chunks_exact(BLOCK).zip(bytes.chunks_exact(BLOCK)) {
        let mut block = aes::Block::default();
        block.copy_from_slice(secret);
        cipher.decrypt_block(&mut block);
        out.extend(block.iter().zip(before).map(|(a, b)| a ^ b));
    }
    let padding = out.last().map(|last| usize::from(*last));
    match padding.and_then(|padding| out.len().checked_sub(padding)) {
        Some(length) => Ok(Val::str(&out[..length])),
        None => Err(Failure::new("the password is another one, or the text is not encrypted")),
    }
}
