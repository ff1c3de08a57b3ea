//! How many bytes of rendered objects passes hold at the same time, by namespace: a pass that holds
//! more than fits beside the others of its namespace is put off, unless it is the only one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that the passes of one namespace hold together. They are copied a few times while they are
/// compared and sent.
const MOST: usize = 32 << 20;

/// What all passes hold.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<HashMap<String, usize>>);

impl Held {
    fn bytes(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        // Changes of the map do not panic half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one pass holds, until this is dropped.
#[derive(Debug)]
pub struct Hold {
    held: Arc<Held>,
    namespace: String,
    bytes: usize,
}

impl Hold {
    pub(super) fn new(held: Arc<Held>, namespace: &str) -> Self {
        Self { held, namespace: namespace.to_owned(), bytes: 0 }
    }

    /// The pass holds this much; whether it fits beside the others of its namespace.
    pub fn set(&mut self, bytes: usize) -> bool {
        if bytes == self.bytes {
            return true;
        }
        let mut all = self.held.bytes();
        let others = all.get(&self.namespace).copied().unwrap_or_default().saturating_sub(self.bytes);
        if others > 0 && others.saturating_add(bytes) > MOST {
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
        let held = Arc::new(Held::default());
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
}
