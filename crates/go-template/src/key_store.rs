//! Keys that were made, and how far interrupted searches for keys are, so that the next try goes on from there.
//! A key is a function of its inputs, so what is kept changes nothing but the time that it takes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Keys of the renderings that share a [`Keys`], each as often as its work counts: 24 for one of RSA with
/// 4096 bits, 12 for DSA, 8 for a derived password, 3 for a certificate, 1 for EC.
pub const MAX_KEYS: usize = 192;

/// Bytes of all keys that a [`KeyStore`] keeps: those of 30 tasks at the least, each with as many as it may
/// make.
pub const MAX_KEYS_KEPT: usize = 8 << 20;

/// What a key is a function of, as a hash.
pub(super) type KeyId = [u8; 32];

/// Bytes of a made key that is kept; one with many names is made again of its primes.
const MAX_KEPT: usize = 32 << 10;

/// Bytes of an entry besides its texts.
const ENTRY: usize = 256;

/// How far a key is.
#[derive(Clone, Default)]
pub(super) struct KeySearch {
    /// Numbers that are found, or the texts of a made key.
    pub(super) found: Vec<Box<[u8]>>,
    /// Candidates for the next number that were none.
    pub(super) tried: usize,
    /// Whether the key is made.
    pub(super) is_made: bool,
}

impl KeySearch {
    fn bytes(&self) -> usize {
        ENTRY + self.found.iter().map(|part| part.len()).sum::<usize>()
    }
}

/// The keys of all renderings of a process, within [`MAX_KEYS_KEPT`]. Where more are made, those of the owner that
/// has the most give way, the one first that was asked for longest ago.
#[derive(Default)]
pub struct KeyStore(Mutex<Shelves>);

// Keys stay out of logs.
impl std::fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyStore").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Shelves {
    owners: BTreeMap<Arc<str>, Shelf>,
    bytes: usize,
    /// Counts what is asked for and kept.
    turn: u64,
}

#[derive(Default)]
struct Shelf {
    keys: BTreeMap<KeyId, (KeySearch, u64)>,
    bytes: usize,
}

impl KeyStore {
    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        // Changes of the maps do not panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, owner: &str, id: &KeyId) -> Option<KeySearch> {
        let mut shelves = self.shelves();
        shelves.turn += 1;
        let now = shelves.turn;
        let (progress, turn) = shelves.owners.get_mut(owner)?.keys.get_mut(id)?;
        *turn = now;
        Some(progress.clone())
    }

    fn keep(&self, owner: &Arc<str>, id: KeyId, progress: &KeySearch) {
        if progress.bytes() > MAX_KEPT {
            return;
        }
        let mut shelves = self.shelves();
        shelves.turn += 1;
        let entry = (progress.clone(), shelves.turn);
        let shelf = shelves.owners.entry(owner.clone()).or_default();
        let before = shelf.keys.insert(id, entry).map_or(0, |(before, _)| before.bytes());
        shelf.bytes = shelf.bytes + progress.bytes() - before;
        shelves.bytes = shelves.bytes + progress.bytes() - before;
        while shelves.bytes > MAX_KEYS_KEPT {
            shelves.drop_one();
        }
    }
}

impl Shelves {
    fn drop_one(&mut self) {
        let Some((owner, shelf)) = self.owners.iter_mut().max_by_key(|(_, shelf)| shelf.bytes) else {
            self.bytes = 0;
            return;
        };
        let oldest = shelf.keys.iter().min_by_key(|(_, (_, turn))| *turn).map(|(id, _)| *id);
        if let Some((dropped, _)) = oldest.and_then(|id| shelf.keys.remove(&id)) {
            shelf.bytes -= dropped.bytes();
            self.bytes -= dropped.bytes();
        }
        if shelf.keys.is_empty() {
            let owner = owner.clone();
            self.owners.remove(&owner);
        }
    }
}

/// The keys that some renderings make together, such as those of one task: they share the budget [`MAX_KEYS`], and
/// find what earlier tries have made.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    store: Arc<KeyStore>,
    owner: Arc<str>,
    spent: Arc<AtomicUsize>,
    count: Arc<AtomicUsize>,
    kept: Arc<AtomicBool>,
}

impl Keys {
    /// A budget of its own. The owner is on whose account keys are kept.
    pub fn new(store: &Arc<KeyStore>, owner: &str) -> Self {
        Self { store: store.clone(), owner: owner.into(), ..Self::default() }
    }

    /// Charges for a key.
    ///
    /// # Errors
    /// The budget does not suffice; with the number of the key.
    pub(super) fn charge(&self, cost: usize) -> Result<(), usize> {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let spent = self.spent.fetch_add(cost, Ordering::Relaxed) + cost;
        if spent > MAX_KEYS { Err(number) } else { Ok(()) }
    }

    pub(super) fn find(&self, id: &KeyId) -> KeySearch {
        self.store.find(&self.owner, id).unwrap_or_default()
    }

    /// Whether these renderings have made a key, or went on in the search for one: after an interruption, the next
    /// try begins where they ended.
    pub fn have_progressed(&self) -> bool {
        self.kept.load(Ordering::Relaxed)
    }

    pub(super) fn keep(&self, id: KeyId, progress: &KeySearch) {
        self.kept.store(true, Ordering::Relaxed);
        self.store.keep(&self.owner, id, progress);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(bytes: usize) -> KeySearch {
        KeySearch { found: vec![vec![7; bytes].into()], tried: 0, is_made: true }
    }

    fn id(number: usize) -> KeyId {
        let mut id = [0; 32];
        id[..8].copy_from_slice(&number.to_be_bytes());
        id
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_largest_owner_gives_way() {
        let store = Arc::new(KeyStore::default());
        let (small, large) = (Keys::new(&store, "small"), Keys::new(&store, "large"));
        small.keep(id(0), &made(1000));
        let more = 2 * MAX_KEYS_KEPT / 10_000;
        for number in 0..more {
            large.keep(id(number), &made(10_000));
            large.find(&id(0));
        }
        assert!(store.shelves().bytes <= MAX_KEYS_KEPT);
        assert!(small.find(&id(0)).is_made, "the other owner's is there");
        assert!(large.find(&id(0)).is_made, "what was asked for last is there");
        assert!(!large.find(&id(1)).is_made && large.find(&id(more - 1)).is_made);
        assert!(!small.find(&id(1)).is_made, "owners find their own");
    }

    #[test]
    fn what_is_kept_again_is_counted_once() {
        let store = Arc::new(KeyStore::default());
        let keys = Keys::new(&store, "a");
        for bytes in [10, 1000, 10] {
            keys.keep(id(0), &made(bytes));
            assert_eq!(store.shelves().bytes, ENTRY + bytes);
        }
        keys.keep(id(1), &made(MAX_KEPT));
        assert!(!keys.find(&id(1)).is_made, "it is too large");
    }

    #[test]
    fn a_budget_is_shared_by_clones_and_names_the_key() {
        let keys = Keys::default();
        assert_eq!(keys.clone().charge(MAX_KEYS - 1), Ok(()));
        assert_eq!(keys.charge(1), Ok(()));
        assert_eq!(keys.charge(1), Err(3));
    }

    #[test]
    fn keys_are_not_printed() {
        let keys = Keys::default();
        keys.keep(id(0), &made(10));
        assert!(!format!("{keys:?}").contains('7'));
    }
}
