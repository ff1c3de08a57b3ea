//! Keys of the curve P-256.

use p256::SecretKey;

use crate::error::Failure;
use crate::generator::Stream;

/// A private key as `x509.MarshalECPrivateKey` writes it.
pub(crate) fn generate(stream: &mut Stream) -> Result<Vec<u8>, Failure> {
    loop {
        // Numbers that are no key, as they are not below the order of the curve, are one of four billion.
        let Ok(key) = SecretKey::from_slice(&stream.bytes(32)) else { continue };
        let failed = |error| Failure::new(format!("failed to generate private key: {error}"));
        return Ok(key.to_sec1_der().map_err(failed)?.to_vec());
    }
}
