//! The built-in certificates: a CA and a leaf in a Secret that the replicas share, and the
//! caBundle of our webhook configurations.
//!
//! `rotation` decides from dates, `authority` makes CAs and leaves, `stored` is the Secret as a
//! value, `validate` checks that its parts belong together, `ca_bundle_watch` reads the caBundles, `retiring_ca`
//! holds retiring CAs, `controller` writes the Secret and the caBundles.
//!
//! `signing` is another CA of the same form, for what belongs to objects of users.

pub mod authority;
pub mod ca_bundle_watch;
pub mod controller;
pub mod retiring_ca;
pub mod rotation;
pub mod signing;
pub mod stored;
pub mod validate;

pub use self::ca_bundle_watch::CaBundles;
pub use self::controller::{CertificateController, CertificateSettings};
pub use authority::KeyPem;
