//! The built-in certificates: a CA and a leaf in a Secret that the replicas share, and the
//! caBundle of our webhook configurations.
//!
//! `need` decides from dates, `authority` makes, `stored` is the Secret as a value, `coherence`
//! tells whether its parts belong together, `trust` is what the API server accepts, `leaving` is
//! what it accepts a while longer, `keeper` brings them together.

pub mod authority;
pub mod coherence;
pub mod keeper;
pub mod leaving;
pub mod need;
pub mod stored;
pub mod trust;

pub use authority::KeyPem;
pub use keeper::{Keeper, Settings};
pub use trust::Trust;
