//! RSA: keys, their PKCS #1 form, and signatures with SHA-256.

use num_bigint::BigUint;

use super::der::{self, DerElement, SEQUENCE};
use super::prime;
use crate::generator::Stream;
use crate::limits::{LimitReached, Meter};

/// The public exponent of made keys.
const EXPONENT: u32 = 65_537;

/// `DigestInfo` of a SHA-256 up to its bytes.
const SHA256: [u8; 19] = [
    0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00,
    0x04, 0x20,
];

/// A private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RsaKey {
    modulus: BigUint,
    exponent: BigUint,
    private: BigUint,
    primes: [BigUint; 2],
}

impl RsaKey {
    /// A key of these bits, a multiple of 128.
    pub(crate) fn generate(meter: &Meter, stream: &mut Stream, bits: usize) -> Result<Self, LimitReached> {
        let exponent = BigUint::from(EXPONENT);
        let one = BigUint::from(1_u8);
        loop {
            let p = prime::random(meter, stream, bits / 2)?;
            let q = prime::random(meter, stream, bits / 2)?;
            let order = (&p - &one) * (&q - &one);
            // Two equal primes, and those that the exponent divides, are as good as impossible.
            let Some(private) = exponent.modinv(&order).filter(|_| p != q) else { continue };
            return Ok(Self { modulus: &p * &q, exponent, private, primes: [p, q] });
        }
    }

    /// `x509.MarshalPKCS1PrivateKey`.
    pub(crate) fn der(&self) -> Vec<u8> {
        let [p, q] = &self.primes;
        let one = BigUint::from(1_u8);
        let parts = [
            BigUint::ZERO,
            self.modulus.clone(),
            self.exponent.clone(),
            self.private.clone(),
            p.clone(),
            q.clone(),
            &self.private % (p - &one),
            &self.private % (q - &one),
            q.modinv(p).unwrap_or_default(),
        ];
        der::sequence(&parts.each_ref().map(der::integer))
    }

    /// `x509.ParsePKCS1PrivateKey`, of keys with two primes.
    pub(crate) fn parse(der: &[u8]) -> Option<Self> {
        let mut reader = DerElement::only(der)?.inside(SEQUENCE)?;
        let mut numbers = Vec::new();
        for _ in 0..9 {
            numbers.push(reader.next_element()?.number()?);
        }
        let [version, modulus, exponent, private, p, q, ..] = numbers.as_slice() else { return None };
        let zero = BigUint::ZERO;
        let is_sound = reader.is_empty()
            && *version == zero
            && [modulus, exponent, private, p, q].into_iter().all(|number| *number > zero)
            && &(p * q) == modulus;
        is_sound.then(|| Self {
            modulus: modulus.clone(),
            exponent: exponent.clone(),
            private: private.clone(),
            primes: [p.clone(), q.clone()],
        })
    }

    /// The public key as PKCS #1 has it.
    pub(super) fn public_der(&self) -> Vec<u8> {
        der::sequence(&[der::integer(&self.modulus), der::integer(&self.exponent)])
    }

    /// A signature of PKCS #1 version 1.5; `None` if the key is too short for one.
    pub(super) fn sign(&self, digest: &[u8; 32]) -> Option<Vec<u8>> {
        let size = usize::try_from(self.modulus.bits().div_ceil(8)).ok()?;
        let padding = size.checked_sub(SHA256.len() + digest.len() + 3).filter(|padding| *padding >= 8)?;
        let message = [&[0, 1], vec![0xff; padding].as_slice(), &[0], &SHA256, digest].concat();
        let signature = BigUint::from_bytes_be(&message).modpow(&self.private, &self.modulus).to_bytes_be();
        Some([vec![0; size - signature.len()], signature].concat())
    }
}
