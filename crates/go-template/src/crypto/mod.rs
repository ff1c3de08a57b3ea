//! Keys and certificates as Go's `crypto` makes and writes them, from a stream of random bytes.
//!
//! Keys are made for templates, whose authors read them: the arithmetic is not constant-time.

pub(super) mod certificate;
pub(super) mod der;
pub(super) mod dsa;
pub(super) mod p256;
pub(super) mod pem;
mod prime;
pub(super) mod rsa;
