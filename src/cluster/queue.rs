//! A keyed work queue: each key at most once in it and at most once in work, with delays and an
//! exponential back-off per key.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// First delay after a failure; doubled with each.
const BACKOFF_FIRST: Duration = Duration::from_millis(250);
/// Longest delay after failures.
const BACKOFF_MOST: Duration = Duration::from_secs(60);

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
    working: HashSet<K>,
    /// Added while in work: due again when done, at this time.
    again: HashMap<K, Instant>,
    failures: HashMap<K, u32>,
    sequence: u64,
}

impl<K> Default for Queue<K> {
    fn default() -> Self {
        let state = State {
            due: BTreeMap::new(),
            index: HashMap::new(),
            working: HashSet::new(),
            again: HashMap::new(),
            failures: HashMap::new(),
            sequence: 0,
        };
        Self { state: Mutex::new(state), changed: Notify::new() }
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    fn state(&self) -> MutexGuard<'_, State<K>> {
        // No code that holds the lock panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a key, due now.
    pub fn add(&self, key: K) {
        self.add_after(key, Duration::ZERO);
    }

    /// Adds a key, due after a delay; an earlier due time stays.
    pub fn add_after(&self, key: K, delay: Duration) {
        let at = Instant::now() + delay;
        let mut state = self.state();
        if state.working.contains(&key) {
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
        loop {
            let notified = self.changed.notified();
            let wait = {
                let mut state = self.state();
                match state.take(Instant::now()) {
                    Ok(key) => {
                        if !state.due.is_empty() {
                            self.changed.notify_one();
                        }
                        return key;
                    }
                    Err(next) => next,
                }
            };
            match wait {
                Some(at) => {
                    tokio::select! {
                        () = notified => {}
                        () = tokio::time::sleep_until(at) => {}
                    }
                }
                None => notified.await,
            }
        }
    }

    /// The work on a key has ended.
    pub fn done(&self, key: &K) {
        let mut state = self.state();
        state.working.remove(key);
        if let Some(at) = state.again.remove(key) {
            state.schedule(key.clone(), at);
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Number of keys that wait, due or not.
    pub fn depth(&self) -> usize {
        self.state().due.len()
    }
}

impl<K: Clone + Eq + Hash> State<K> {
    fn schedule(&mut self, key: K, at: Instant) {
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

    fn take(&mut self, now: Instant) -> Result<K, Option<Instant>> {
        let Some(slot) = self.due.keys().next().copied() else { return Err(None) };
        if slot.0 > now {
            return Err(Some(slot.0));
        }
        let Some(key) = self.due.remove(&slot) else { return Err(None) };
        self.index.remove(&key);
        self.working.insert(key.clone());
        Ok(key)
    }
}

fn backoff(failures: u32) -> Duration {
    BACKOFF_FIRST.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(BACKOFF_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_is_in_work_once_and_comes_again_when_added_meanwhile() {
        let queue = Queue::default();
        queue.add("a");
        queue.add("a");
        assert_eq!(queue.next().await, "a");
        assert_eq!(queue.depth(), 0);
        queue.add("a");
        assert!(tokio::time::timeout(Duration::from_secs(1), queue.next()).await.is_err());
        queue.done(&"a");
        assert_eq!(queue.next().await, "a");
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_due_time_wins() {
        let queue = Queue::default();
        queue.add_after("a", Duration::from_secs(60));
        queue.add_after("a", Duration::from_secs(1));
        queue.add_after("a", Duration::from_secs(30));
        let start = Instant::now();
        assert_eq!(queue.next().await, "a");
        assert_eq!(start.elapsed().as_secs(), 1);
        assert_eq!(queue.depth(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_wait_longer_each_time_until_forgotten() {
        let queue = Queue::default();
        let mut waits = Vec::new();
        for _ in 0..3 {
            let start = Instant::now();
            queue.retry("a");
            queue.next().await;
            queue.done(&"a");
            waits.push(start.elapsed());
        }
        assert!(waits[0] < waits[1] && waits[1] < waits[2], "{waits:?}");
        queue.forget(&"a");
        let start = Instant::now();
        queue.retry("a");
        queue.next().await;
        assert!(start.elapsed() <= waits[0] + Duration::from_millis(2));
    }

    #[tokio::test(start_paused = true)]
    async fn two_workers_get_two_keys() {
        let queue = std::sync::Arc::new(Queue::default());
        let tasks: Vec<_> = (0..2)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move { queue.next().await })
            })
            .collect();
        tokio::task::yield_now().await;
        queue.add(1);
        queue.add(2);
        let mut got = Vec::new();
        for task in tasks {
            got.push(task.await.unwrap());
        }
        got.sort_unstable();
        assert_eq!(got, [1, 2]);
    }

    #[test]
    fn the_back_off_is_bounded() {
        assert_eq!(backoff(1), BACKOFF_FIRST);
        assert_eq!(backoff(u32::MAX), BACKOFF_MOST);
    }
}
