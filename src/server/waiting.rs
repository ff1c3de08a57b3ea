//! Limits the reviews that wait for an OperatorVersion: a body stays in memory while its review waits, so
//! one namespace must not use up the share of all reviews.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// An amount of waiting reviews.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub reviews: usize,
    /// Bytes of their bodies.
    pub bytes: usize,
}

impl Amount {
    fn plus(self, bytes: usize) -> Self {
        Self { reviews: self.reviews + 1, bytes: self.bytes.saturating_add(bytes) }
    }

    fn minus(self, bytes: usize) -> Self {
        Self { reviews: self.reviews.saturating_sub(1), bytes: self.bytes.saturating_sub(bytes) }
    }

    fn is_within(self, most: Self) -> bool {
        self.reviews <= most.reviews && self.bytes <= most.bytes
    }
}

/// The limits of waiting reviews.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitBounds {
    pub per_namespace: Amount,
    pub total: Amount,
}

/// The waiting reviews.
#[derive(Debug)]
pub struct Waiting {
    bounds: WaitBounds,
    now: Mutex<Now>,
}

#[derive(Debug, Default)]
struct Now {
    total: Amount,
    namespaces: HashMap<String, Amount>,
}

impl Waiting {
    /// No review waits yet.
    pub fn new(bounds: WaitBounds) -> Arc<Self> {
        Arc::new(Self { bounds, now: Mutex::default() })
    }

    /// A slot for a review of a namespace with a body of so many bytes; `None` = it must not wait.
    pub fn enter(self: &Arc<Self>, namespace: &str, bytes: usize) -> Option<WaitingSlot> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let total = now.total.plus(bytes);
        let own = now.namespaces.get(namespace).copied().unwrap_or_default().plus(bytes);
        if !total.is_within(self.bounds.total) || !own.is_within(self.bounds.per_namespace) {
            return None;
        }
        now.total = total;
        now.namespaces.insert(namespace.to_owned(), own);
        Some(WaitingSlot { of: self.clone(), namespace: namespace.to_owned(), bytes })
    }
}

/// The slot of one waiting review, released when dropped.
#[derive(Debug)]
pub struct WaitingSlot {
    of: Arc<Waiting>,
    namespace: String,
    bytes: usize,
}

impl Drop for WaitingSlot {
    fn drop(&mut self) {
        let mut now = self.of.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.total = now.total.minus(self.bytes);
        let own = now.namespaces.get(&self.namespace).copied().unwrap_or_default().minus(self.bytes);
        if own.reviews == 0 {
            now.namespaces.remove(&self.namespace);
        } else {
            now.namespaces.insert(self.namespace.clone(), own);
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const BOUNDS: WaitBounds = WaitBounds {
        per_namespace: Amount { reviews: 2, bytes: 10 },
        total: Amount { reviews: 4, bytes: 15 },
    };

    /// Which of the reviews get a slot, in their order.
    #[rstest]
    #[case::all(&[("a", 1), ("a", 1), ("b", 1), ("b", 1)], &[true, true, true, true])]
    #[case::number_of_a_namespace(&[("a", 1), ("a", 1), ("a", 1), ("b", 1)], &[true, true, false, true])]
    #[case::bytes_of_a_namespace(&[("a", 6), ("a", 5), ("b", 6)], &[true, false, true])]
    #[case::a_small_one_after_a_large_one(&[("a", 11), ("a", 10)], &[false, true])]
    #[case::number_of_all(&[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1)], &[true, true, true, true, false])]
    #[case::bytes_of_all(&[("a", 8), ("b", 8), ("c", 7)], &[true, false, true])]
    fn places(#[case] reviews: &[(&str, usize)], #[case] expected: &[bool]) {
        let waiting = Waiting::new(BOUNDS);
        let places: Vec<_> =
            reviews.iter().map(|(namespace, bytes)| waiting.enter(namespace, *bytes)).collect();
        assert_eq!(places.iter().map(Option::is_some).collect::<Vec<_>>(), expected);
        drop(places);
        let now = waiting.now.lock().unwrap();
        assert_eq!((now.total, now.namespaces.len()), (Amount::default(), 0));
    }
}
