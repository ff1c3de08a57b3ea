//! What the templates of a run draw from, so that one run renders the same bytes in any process.

use std::fmt;

use go_template::Generator;
use jiff::Timestamp;

/// A secret of the installation: its readers can compute the passwords and keys that templates generate.
#[derive(Clone, PartialEq, Eq)]
pub struct SeedKey(pub [u8; 32]);

impl fmt::Debug for SeedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeedKey")
    }
}

/// The secret, and the start of the run, which is `now` in its templates.
#[derive(Clone, Copy, Debug)]
pub struct Seed<'a> {
    /// The secret.
    pub key: &'a SeedKey,
    /// When the run started.
    pub started: Timestamp,
}

impl Seed<'_> {
    /// The generator of one template, by the uid of its Instance, the id of the run, the hash of the package, and
    /// the file: each run, and each template of it, draws other bytes.
    pub(super) fn generator(self, [instance, run, package, file]: [&str; 4]) -> Generator {
        Generator::derived(self.started, &self.key.0, &[instance, run, package, file])
    }
}
