//! The built-in certificates: a CA and a leaf in a Secret that the replicas share, and the
//! caBundle of our webhook configurations.
//!
//! `need` decides on rotation from dates, `authority` makes CAs and leaves, `stored` is the Secret as a
//! value, `coherence` validates that its parts belong together, `trust` reads the caBundles, `leaving`
//! holds retiring CAs, `keeper` is the controller.

pub mod authority;
pub mod coherence;
pub mod keeper;
pub mod leaving;
pub mod need;
pub mod stored;
pub mod trust;

pub use authority::KeyPem;
pub use keeper::{Keeper, KeeperSettings};
pub use trust::Trust;
