//! What fits of the limits of many namespaces: who has the most loses first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes of the limits of one Gateway, below what its EnvoyPatchPolicies hold.
pub(super) const OF_GATEWAY: usize = 10 << 20;
/// Bytes of the limits of one Limitador, below what a ConfigMap holds.
pub(super) const OF_LIMITADOR: usize = 800 << 10;

/// The bytes of limits: those that the policies of routes have, by namespace, and the others.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    of_routes: BTreeMap<Arc<str>, usize>,
    others: usize,
}

impl Sizes {
    /// Adds a limit; `namespace` is that of the route whose own policy it is of.
    pub(super) fn add(&mut self, namespace: Option<&Arc<str>>, bytes: usize) {
        match namespace {
            Some(namespace) => *self.of_routes.entry(namespace.clone()).or_default() += bytes,
            None => self.others += bytes,
        }
    }

    /// The namespaces whose routes lose their own limits, so that the others fit.
    pub(super) fn beyond(&self, most: usize) -> BTreeSet<Arc<str>> {
        let mut total = self.others + self.of_routes.values().sum::<usize>();
        let mut largest: Vec<_> = self.of_routes.iter().collect();
        largest.sort_by_key(|(_, bytes)| **bytes);
        let mut beyond = BTreeSet::new();
        while let Some((namespace, bytes)) = largest.pop().filter(|_| total > most) {
            total -= bytes;
            beyond.insert(namespace.clone());
        }
        beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_most_loses_first() {
        let mut sizes = Sizes::default();
        let [small, large, larger] = ["small", "large", "larger"].map(Arc::<str>::from);
        sizes.add(None, 50);
        sizes.add(Some(&small), 5);
        sizes.add(Some(&large), 20);
        [15, 15].iter().for_each(|bytes| sizes.add(Some(&larger), *bytes));
        assert_eq!(sizes.beyond(105), BTreeSet::new());
        assert_eq!(sizes.beyond(104), BTreeSet::from([larger.clone()]));
        assert_eq!(sizes.beyond(74), BTreeSet::from([larger.clone(), large.clone()]));
        assert_eq!(sizes.beyond(10), BTreeSet::from([larger, large, small]));
    }
}
