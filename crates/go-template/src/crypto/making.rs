//! The making of one key, which goes on where an earlier try was interrupted.

use crypto_bigint::BoxedUint;
use sha2::{Digest as _, Sha256};

use crate::key_store::{KeyId, KeySearch};
use crate::limits::{LimitReached, Meter};

/// A key in the making, or one that was made before.
pub(crate) struct Making<'m, 'i> {
    meter: &'m Meter<'i>,
    id: KeyId,
    progress: KeySearch,
}

impl<'m, 'i> Making<'m, 'i> {
    /// The key that is a function of these inputs.
    pub(crate) fn of(meter: &'m Meter<'i>, inputs: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for input in inputs {
            // The length keeps apart what would else be the same bytes joined.
            hash.update((input.len() as u64).to_be_bytes());
            hash.update(input);
        }
        let id = hash.finalize().into();
        Self { meter, id, progress: meter.keys().find(&id) }
    }

    /// The key's texts, if it was made before.
    pub(crate) fn made(&self) -> Option<&[Box<[u8]>]> {
        self.progress.is_made.then_some(&self.progress.found)
    }

    /// Keeps the key's texts for renderings that make it again.
    ///
    /// # Errors
    /// The rendering is interrupted.
    pub(crate) fn finish(&mut self, texts: &[&[u8]]) -> Result<(), LimitReached> {
        let found = texts.iter().map(|text| Box::from(*text)).collect();
        self.meter.keys().keep(self.id, &KeySearch { found, tried: 0, is_made: true });
        self.meter.ask()
    }

    /// The first wanted number among candidates, which are infinitely many; it is the key's number `at`, after
    /// those before it. At least one candidate is tried before an interrupt is heeded, so that each try gets
    /// further.
    ///
    /// # Errors
    /// The rendering is interrupted.
    pub(super) fn number(
        &mut self,
        at: usize,
        mut candidate: impl FnMut() -> BoxedUint,
        is_wanted: impl Fn(&BoxedUint) -> bool,
    ) -> Result<BoxedUint, LimitReached> {
        if let Some(found) = self.progress.found.get(at) {
            return Ok(BoxedUint::from_be_slice_vartime(found));
        }
        for _ in 0..self.progress.tried {
            candidate();
        }
        loop {
            let number = candidate();
            let is_found = is_wanted(&number);
            if is_found {
                self.progress.found.push(number.to_be_bytes());
                self.progress.tried = 0;
            } else {
                self.progress.tried += 1;
            }
            let asked = self.meter.ask();
            if is_found || asked.is_err() {
                self.meter.keys().keep(self.id, &self.progress);
            }
            asked?;
            if is_found {
                return Ok(number);
            }
        }
    }
}
