//! A keyed work queue: each key is at most once queued and at most once in work, with delays, an
//! exponential back-off per key, and fairness groups: keys that may be slow together share a part of the
//! workers, so that the others stay free. A key may be in several groups.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// First delay after a failure; doubled with each.
const BACKOFF_FIRST: Duration = Duration::from_millis(250);
/// Longest delay after failures.
const BACKOFF_MOST: Duration = Duration::from_secs(60);

/// A fairness group: keys that share some of the workers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FairnessGroup {
    /// The common property of its keys.
    pub name: String,
    /// How many of them may be in work at once.
    pub share: usize,
}

/// The state of a fairness group.
#[derive(Debug)]
struct Traffic<K> {
    /// Slots of keys in work, and of keys that hold one while queued.
    places: usize,
    parked: VecDeque<K>,
}

impl<K> Default for Traffic<K> {
    fn default() -> Self {
        Self { places: 0, parked: VecDeque::new() }
    }
}

/// The queue; shared by reference.
#[derive(Debug)]
pub struct Queue<K> {
    state: Mutex<State<K>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<K> {
    due: BTreeMap<(Instant, u64), K>,
    index: HashMap<K, (Instant, u64)>,
    /// Keys in work, and their groups.
    working: HashMap<K, Vec<FairnessGroup>>,
    lanes: HashMap<FairnessGroup, Traffic<K>>,
    /// Due, and waiting for a slot in their groups.
    parked: HashSet<K>,
    /// Due, with a slot in a group.
    held: HashMap<K, FairnessGroup>,
    /// Added while in work: due again when done, at this time.
    again: HashMap<K, Instant>,
    failures: HashMap<K, u32>,
    sequence: u64,
    /// Nothing is queued while no worker runs.
    closed: bool,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        let state = State {
            due: BTreeMap::new(),
            index: HashMap::new(),
            working: HashMap::new(),
            lanes: HashMap::new(),
            parked: HashSet::new(),
            held: HashMap::new(),
            again: HashMap::new(),
            failures: HashMap::new(),
            sequence: 0,
            closed: false,
        };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    fn state(&self) -> MutexGuard<'_, State<K>> {
        // No code that holds the lock panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops all queued keys, and ignores new ones until [`Self::open`].
    pub fn close(&self) {
        self.state().close();
    }

    /// Accepts keys again; the caller adds those that became due meanwhile.
    pub fn open(&self) {
        self.state().closed = false;
    }

    /// Adds a key, due now.
    pub fn add(&self, key: K) {
        self.add_after(key, Duration::ZERO);
    }

    /// Adds a key, due after a delay; an earlier due time stays.
    pub fn add_after(&self, key: K, delay: Duration) {
        let at = Instant::now() + delay;
        let mut state = self.state();
        if state.closed {
            return;
        }
        if state.working.contains_key(&key) {
            let again = state.again.entry(key).or_insert(at);
            *again = (*again).min(at);
            return;
        }
        state.schedule(key, at);
        drop(state);
        self.changed.notify_one();
    }

    /// Adds a key after its back-off, which grows with each call until [`Self::forget`].
    pub fn retry(&self, key: K) {
        let failures = {
            let mut state = self.state();
            if state.closed {
                return;
            }
            let failures = state.failures.entry(key.clone()).or_insert(0);
            *failures = failures.saturating_add(1);
            *failures
        };
        self.add_after(key, backoff(failures));
    }

    /// Forgets the failures of a key.
    pub fn forget(&self, key: &K) {
        self.state().failures.remove(key);
    }

    /// The next key that is due; it is in work until [`Self::done`].
    pub async fn next(&self) -> K {
        self.next_in(|_| None::<FairnessGroup>).await
    }

    /// The next due key whose groups all have a free slot; it is in work until [`Self::done`].
    pub async fn next_in<L: IntoIterator<Item = FairnessGroup>>(&self, lanes: impl Fn(&K) -> L) -> K {
        loop {
            let notified = self.changed.notified();
            let next = self.state().take(Instant::now());
            match next {
                Ok(key) => {
                    // `lanes` may take a lock under which other threads add keys.
                    let lanes = lanes(&key).into_iter().collect();
                    let mut state = self.state();
                    let has_room = state.enter(&key, lanes);
                    if !state.due.is_empty() {
                        self.changed.notify_one();
                    }
                    if has_room {
                        return key;
                    }
                }
                Err(Some(at)) => {
                    tokio::select! {
                        () = notified => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                Err(None) => notified.await,
            }
        }
    }

    /// The work on a key has ended.
    pub fn done(&self, key: &K) {
        let mut state = self.state();
        let lanes = state.working.remove(key).unwrap_or_default();
        lanes.iter().for_each(|lane| state.leave(lane));
        if let Some(at) = state.again.remove(key) {
            state.schedule(key.clone(), at);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Releases the slots of a key that stays in work.
    pub fn give_place(&self, key: &K) {
        let mut state = self.state();
        let lanes = state.working.get_mut(key).map(std::mem::take).unwrap_or_default();
        if !lanes.is_empty() {
            lanes.iter().for_each(|lane| state.leave(lane));
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Number of queued keys, due or not.
    pub fn depth(&self) -> usize {
        let state = self.state();
        state.due.len() + state.parked.len()
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn schedule(&mut self, key: K, at: Instant) {
        if self.parked.contains(&key) {
            // The key is already due.
            return;
        }
        if let Some(old) = self.index.get(&key).copied() {
            if old.0 <= at {
                return;
            }
            self.due.remove(&old);
        }
        self.sequence += 1;
        let slot = (at, self.sequence);
        self.due.insert(slot, key.clone());
        self.index.insert(key, slot);
    }

    fn close(&mut self) {
        self.closed = true;
        self.due.clear();
        self.index.clear();
        self.again.clear();
        self.failures.clear();
        self.parked.clear();
        self.lanes.values_mut().for_each(|traffic| traffic.parked.clear());
        let held = std::mem::take(&mut self.held);
        held.values().for_each(|lane| self.leave(lane));
    }

    fn take(&mut self, now: Instant) -> Result<K, Option<Instant>> {
        let Some(slot) = self.due.keys().next().copied() else { return Err(None) };
        if slot.0 > now {
            return Err(Some(slot.0));
        }
        let Some(key) = self.due.remove(&slot) else { return Err(None) };
        self.index.remove(&key);
        self.working.insert(key.clone(), Vec::new());
        Ok(key)
    }

    /// Takes the slots for a key; where a group is full, parks the key there, which then holds no slot in
    /// another group.
    fn enter(&mut self, key: &K, lanes: Vec<FairnessGroup>) -> bool {
        let held = self.held.remove(key);
        let is_full = |lane: &&FairnessGroup| {
            held.as_ref() != Some(lane) && self.lanes.get(lane).is_some_and(|t| t.places >= lane.share)
        };
        let full = lanes.iter().find(is_full).cloned();
        if let Some(held) = held.as_ref().filter(|held| full.is_some() || !lanes.contains(held)) {
            self.leave(held);
        }
        if let Some(full) = full {
            self.lanes.entry(full).or_default().parked.push_back(key.clone());
            self.parked.insert(key.clone());
            self.working.remove(key);
            // The key is already due.
            self.again.remove(key);
            return false;
        }
        for lane in lanes.iter().filter(|lane| held.as_ref() != Some(lane)) {
            self.lanes.entry(lane.clone()).or_default().places += 1;
        }
        self.working.insert(key.clone(), lanes);
        true
    }

    /// Hands a slot of a group to the key that has waited longest, or frees it.
    fn leave(&mut self, lane: &FairnessGroup) {
        let Some(traffic) = self.lanes.get_mut(lane) else { return };
        let Some(key) = traffic.parked.pop_front() else {
            traffic.places -= 1;
            if traffic.places == 0 {
                self.lanes.remove(lane);
            }
            return;
        };
        self.parked.remove(&key);
        self.held.insert(key.clone(), lane.clone());
        self.schedule(key, Instant::now());
    }
}

fn backoff(failures: u32) -> Duration {
    BACKOFF_FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(BACKOFF_MOST)
}

#[cfg(test)]
mod tests;
