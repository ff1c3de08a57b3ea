//! What fits of the limits of many namespaces: each has its share.

use std::collections::BTreeMap;
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

    /// The bytes that each namespace may have, so that all fit: who has less than its share leaves the rest to the others.
    /// Where the limits of Gateways alone are too many, nothing is gained by taking from routes.
    pub(super) fn share(&self, most: usize) -> usize {
        let Some(mut left) = most.checked_sub(self.others) else { return usize::MAX };
        let mut sizes: Vec<usize> = self.of_routes.values().copied().collect();
        sizes.sort_unstable();
        for (index, size) in sizes.iter().enumerate() {
            let share = left / (sizes.len() - index);
            if *size > share {
                return share;
            }
            left -= size;
        }
        usize::MAX
    }
}

/// What namespaces have used of their share.
#[derive(Debug)]
pub(super) struct Shares {
    share: usize,
    used: BTreeMap<Arc<str>, usize>,
}

impl Shares {
    /// Nothing is used.
    pub(super) fn of(share: usize) -> Self {
        Self { share, used: BTreeMap::new() }
    }

    /// Whether a limit fits; one that is not of a route's own policy always does.
    pub(super) fn admits(&mut self, namespace: Option<&Arc<str>>, bytes: usize) -> bool {
        let Some(namespace) = namespace else { return true };
        let used = self.used.entry(namespace.clone()).or_default();
        let is_admitted = used.saturating_add(bytes) <= self.share;
        *used += if is_admitted { bytes } else { 0 };
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_namespace_has_its_share() {
        let mut sizes = Sizes::default();
        let [small, large, larger] = ["small", "large", "larger"].map(Arc::<str>::from);
        sizes.add(None, 50);
        sizes.add(Some(&small), 5);
        sizes.add(Some(&large), 20);
        [15, 15].iter().for_each(|bytes| sizes.add(Some(&larger), *bytes));
        for (most, share) in [(105, usize::MAX), (104, 29), (85, 15), (59, 3), (50, 0), (49, usize::MAX)] {
            assert_eq!(sizes.share(most), share, "{most}");
        }
        let mut shares = Shares::of(29);
        let admitted = [(&larger, 15), (&larger, 15), (&larger, 14), (&large, 20)];
        let admitted = admitted.map(|(namespace, bytes)| shares.admits(Some(namespace), bytes));
        assert_eq!(admitted, [true, false, true, true]);
        assert!(shares.admits(None, 1000));
    }
}
