//! Keys and certificates in the forms of Go's `crypto`, from a stream of random bytes. Arithmetic, encodings and
//! signatures are those of RustCrypto; what is here draws from the stream, and lets a search be interrupted.

pub(super) mod certificate;
pub(super) mod dsa;
pub(super) mod making;
pub(super) mod p256;
pub(super) mod pem;
mod prime;
pub(super) mod rsa;
