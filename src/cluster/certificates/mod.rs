//! The built-in certificates: a CA and a leaf in a Secret that the replicas share, and the
//! caBundle of our webhook configurations.
//!
//! `need` decides on rotation from dates, `authority` makes CAs and leaves, `stored` is the Secret as a
//! value, `coherence` validates that its parts belong together, `trust` reads the caBundles, `leaving`
//! holds retiring CAs, `keeper` is the controller.

pub mod authority;
pub mod ca_bundle;
pub mod controller;
pub mod retiring_ca;
pub mod rotation;
pub mod stored;
pub mod validate;

pub use self::ca_bundle::Trust;
pub use self::controller::{Keeper, KeeperSettings};
pub use authority::KeyPem;
