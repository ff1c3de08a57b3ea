//! RSA: keys of two primes, and their PKCS #1 form.

use crypto_bigint::{BoxedUint, NonZero};
use rsa::PrivateKey;
use rsa::pkcs1::der::Decode as _;
use rsa::pkcs1::{EncodeRsaPrivateKey as _, RsaPrivateKeyRef};
use rsa::pkcs1v15::SigningKey;
use rsa::sha2::Sha256;

use super::making::Making;
use super::prime;
use crate::error::Failure;
use crate::generator::Stream;

/// The public exponent of made keys.
const EXPONENT: u64 = 65_537;

/// Bytes of the largest modulus of a key that is given: the work of a signature grows with its third power.
const MAX_MODULUS: u32 = 1024;

/// A private key.
pub(crate) struct RsaKey(PrivateKey);

impl RsaKey {
    /// A key of these bits, a multiple of 16.
    pub(crate) fn generate(making: &mut Making<'_, '_>, stream: &Stream, bits: u32) -> Result<Self, Failure> {
        let exponent = BoxedUint::from(EXPONENT);
        // The exponent is a prime, so it has an inverse unless it divides `n - 1`.
        let divisor = NonZero::new(exponent.clone()).into_option();
        let is_divided =
            |n: &BoxedUint| divisor.as_ref().is_some_and(|divisor| n.rem_vartime(divisor).is_one().to_bool());
        let is_wanted = |n: &BoxedUint| prime::is_prime(n) && !is_divided(n);
        let p = making.number(0, prime::candidates(stream.part(0), bits / 2), is_wanted)?;
        let q = making.number(1, prime::candidates(stream.part(1), bits / 2), |q| *q != p && is_wanted(q))?;
        PrivateKey::from_p_q(p, q, exponent).map(Self).map_err(failed)
    }

    /// `x509.MarshalPKCS1PrivateKey`.
    pub(crate) fn der(&self) -> Result<Vec<u8>, Failure> {
        self.0.to_pkcs1_der().map(|der| der.as_bytes().to_vec()).map_err(failed)
    }

    /// `x509.ParsePKCS1PrivateKey`, of keys with two primes and at most 8192 bits.
    pub(crate) fn parse(der: &[u8]) -> Option<Self> {
        let key = RsaPrivateKeyRef::from_der(der).ok()?;
        let is_small = u32::from(key.modulus.len()) <= MAX_MODULUS;
        if is_small { key.try_into().ok().map(Self) } else { None }
    }

    /// What signs with it, in version 1.5 of PKCS #1 with SHA-256.
    pub(super) fn signing(&self) -> SigningKey<Sha256> {
        SigningKey::new(self.0.clone())
    }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(format!("failed to generate private key: {error}"))
}
