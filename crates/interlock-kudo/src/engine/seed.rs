//! What the templates of a run draw from, so that one run renders the same bytes in any process.

use std::fmt;
use std::sync::Arc;

use go_template::{Generator, KeyStore, Keys};
use jiff::Timestamp;

/// A secret of the installation: its readers can compute the passwords and keys that templates generate.
#[derive(Clone, PartialEq, Eq)]
pub struct SeedKey(pub [u8; 32]);

impl fmt::Debug for SeedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeedKey")
    }
}

/// The secret, the start of the run, which is `now` in its templates, and the keys that were made.
#[derive(Clone, Copy, Debug)]
pub struct Seed<'a> {
    /// The secret.
    pub key: &'a SeedKey,
    /// When the run started.
    pub started: Timestamp,
    /// Keys that templates have made, for passes that render them again: a search that was interrupted goes on.
    pub keys: &'a Arc<KeyStore>,
}

impl Seed<'_> {
    /// The keys of one task: its templates share a budget, and what is kept of them is on the account of a namespace.
    pub(super) fn keys(self, namespace: &str) -> Keys {
        Keys::new(self.keys, namespace)
    }

    /// The generator of one template, by the uid of its Instance, the id of the run, the hash of the package, and
    /// the file: each run, and each template of it, draws other bytes.
    pub(super) fn generator(self, [instance, run, package, file]: [&str; 4]) -> Generator {
        Generator::derived(self.started, &self.key.0, &[instance, run, package, file])
    }
}
