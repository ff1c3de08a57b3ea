//! Limits the bytes of rendered objects that passes hold at the same time, in each namespace and in all: a
//! pass that exceeds a limit beside the others is put off.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that the passes of one namespace hold together, unless there is only one. Comparison, projection
/// and requests make up to six copies of them.
const MOST: usize = 8 << 20;

/// Bytes that all passes hold together, unless there is only one. One namespace leaves a part to others: a
/// pass alone holds at most [`interlock_kudo::engine::render_cache::MOST`] plus the rendering of one task.
const MOST_OF_ALL: usize = 24 << 20;

/// A pass that holds no more than this is not put off because of other namespaces: small packages run
/// beside large ones. It counts in its own namespace all the same, where many small ones add up.
const SMALL: usize = 64 << 10;

/// Bytes held by all passes.
#[derive(Debug, Default)]
pub(super) struct HeldBudget(Mutex<HashMap<String, usize>>);

impl HeldBudget {
    fn bytes(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        // Changes of the map do not panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes held by one pass, until this is dropped.
#[derive(Debug)]
pub struct Hold {
    held: Arc<HeldBudget>,
    namespace: String,
    bytes: usize,
}

impl Hold {
    pub(super) fn new(held: Arc<HeldBudget>, namespace: &str) -> Self {
        Self { held, namespace: namespace.to_owned(), bytes: 0 }
    }

    /// Sets the bytes that the pass holds; returns whether they fit beside the others.
    pub fn set(&mut self, bytes: usize) -> bool {
        if bytes == self.bytes {
            return true;
        }
        let mut all = self.held.bytes();
        let others = all.get(&self.namespace).copied().unwrap_or_default().saturating_sub(self.bytes);
        let everybody = all.values().sum::<usize>().saturating_sub(self.bytes);
        let fits = |others: usize, most| others == 0 || others.saturating_add(bytes) <= most;
        if !fits(others, MOST) || (bytes > SMALL && !fits(everybody, MOST_OF_ALL)) {
            return false;
        }
        self.bytes = bytes;
        match others + bytes {
            0 => all.remove(&self.namespace),
            sum => all.insert(self.namespace.clone(), sum),
        };
        true
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_of_a_namespace_share_what_they_hold() {
        let held = Arc::new(HeldBudget::default());
        let hold = |namespace| Hold::new(held.clone(), namespace);
        let (mut one, mut two, mut other) = (hold("a"), hold("a"), hold("b"));
        assert!(one.set(MOST * 2), "the only one may go on, whatever it holds");
        assert!(!two.set(1) && other.set(MOST));
        assert!(one.set(MOST - 1) && two.set(1) && !two.set(2));
        drop(one);
        assert!(two.set(MOST));
        drop((two, other));
        assert!(held.bytes().is_empty());
    }

    #[test]
    fn many_small_passes_of_a_namespace_are_no_way_round() {
        let held = Arc::new(HeldBudget::default());
        let mut passes: Vec<_> = (0..1_000).map(|_| Hold::new(held.clone(), "a")).collect();
        let held = passes.iter_mut().filter_map(|pass| pass.set(SMALL).then_some(SMALL)).sum::<usize>();
        assert_eq!(held, MOST);
    }

    #[test]
    fn namespaces_share_what_they_hold() {
        let held = Arc::new(HeldBudget::default());
        let hold = |namespace| Hold::new(held.clone(), namespace);
        let (mut one, mut two, mut three) = (hold("a"), hold("b"), hold("c"));
        assert!(one.set(MOST * 2) && two.set(MOST), "one namespace leaves room for another");
        assert!(!three.set(SMALL + 1) && three.set(SMALL));
        drop(one);
        assert!(three.set(MOST_OF_ALL - MOST));
    }
}
