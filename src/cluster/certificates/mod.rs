//! The built-in certificates: a CA and a leaf in a Secret that the replicas share, and the
//! caBundle of our webhook configurations.

pub mod authority;

pub use authority::KeyPem;
