//! Wakes the tasks that wait for one object to enter the cache, and no others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use interlock_core::api::object::NamespacedName;
use tokio::sync::watch;

/// Awaited objects of one kind, by key.
#[derive(Debug, Default)]
pub struct Arrivals {
    awaited: Mutex<HashMap<NamespacedName, watch::Sender<()>>>,
}

impl Arrivals {
    /// Starts to wait for a key. Read the cache once more after this: the object may have arrived before.
    pub fn expect(self: &Arc<Self>, key: &NamespacedName) -> Arrival {
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        let sender = awaited.entry(key.clone()).or_insert_with(|| watch::Sender::new(()));
        Arrival { news: sender.subscribe(), key: key.clone(), of: self.clone() }
    }

    /// The object of this key is in the cache.
    pub fn arrived(&self, key: &NamespacedName) {
        let awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = awaited.get(key) {
            sender.send_replace(());
        }
    }

    /// Number of awaited keys.
    pub fn keys(&self) -> usize {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// One wait; it ends when dropped.
#[derive(Debug)]
pub struct Arrival {
    news: watch::Receiver<()>,
    key: NamespacedName,
    of: Arc<Arrivals>,
}

impl Arrival {
    /// Returns after the next arrival.
    pub async fn next(&mut self) {
        if self.news.changed().await.is_err() {
            // The sender lives as long as this waits for it.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        let mut awaited = self.of.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        // This receiver is still counted.
        if awaited.get(&self.key).is_some_and(|sender| sender.receiver_count() <= 1) {
            awaited.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn only_those_that_wait_for_the_key_are_woken() {
        let arrivals = Arc::new(Arrivals::default());
        let [one, other] = ["one", "other"].map(|name| NamespacedName::new("a", name));
        let (mut first, mut second) = (arrivals.expect(&one), arrivals.expect(&one));
        let mut third = arrivals.expect(&other);
        assert!(first.next().now_or_never().is_none());
        arrivals.arrived(&one);
        assert!(first.next().now_or_never().is_some() && second.next().now_or_never().is_some());
        assert!(third.next().now_or_never().is_none());
        assert!(first.next().now_or_never().is_none(), "once for each arrival");
        drop(first);
        arrivals.arrived(&one);
        assert!(second.next().now_or_never().is_some(), "it still waits");
        drop((second, third));
        assert_eq!(arrivals.keys(), 0);
    }
}
