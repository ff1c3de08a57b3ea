//! The fair queue: namespaces take turns, and none exceeds its share of running work.

use std::collections::{HashMap, VecDeque};

/// Waiting work, by namespace.
#[derive(Debug)]
pub(super) struct FairQueue<W> {
    /// Maximum running work of one namespace.
    share: usize,
    /// Namespaces with waiting work, in the order of their turns.
    order: VecDeque<String>,
    waiting: HashMap<String, VecDeque<W>>,
    /// Running work of each namespace.
    working: HashMap<String, usize>,
}

impl<W> FairQueue<W> {
    /// An empty queue; `share` is at least 1.
    pub(super) fn new(share: usize) -> Self {
        Self { share: share.max(1), order: VecDeque::new(), waiting: HashMap::new(), working: HashMap::new() }
    }

    /// Adds work, behind the waiting work of its namespace.
    pub(super) fn add(&mut self, namespace: &str, work: W) {
        let waiting = self.waiting.entry(namespace.to_owned()).or_default();
        if waiting.is_empty() {
            self.order.push_back(namespace.to_owned());
        }
        waiting.push_back(work);
    }

    /// The work of the first namespace that is within its share; it is in work until
    /// [`Self::done`].
    pub(super) fn take(&mut self) -> Option<(String, W)> {
        let within = |namespace: &String| self.working.get(namespace).is_none_or(|n| *n < self.share);
        let at = self.order.iter().position(within)?;
        let namespace = self.order.remove(at)?;
        let waiting = self.waiting.get_mut(&namespace)?;
        let work = waiting.pop_front()?;
        if waiting.is_empty() {
            self.waiting.remove(&namespace);
        } else {
            self.order.push_back(namespace.clone());
        }
        *self.working.entry(namespace.clone()).or_default() += 1;
        Some((namespace, work))
    }

    /// Work of a namespace has ended.
    pub(super) fn done(&mut self, namespace: &str) {
        if let Some(working) = self.working.get_mut(namespace) {
            *working = working.saturating_sub(1);
            if *working == 0 {
                self.working.remove(namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    /// Work is added (`a1`), taken (`?`, with what is taken, or `-` for nothing) or ends (`!a`).
    #[rstest]
    #[case::in_order("a1 a2 ?a1 !a ?a2", 1)]
    #[case::the_share_is_kept("a1 a2 ?a1 ?- !a ?a2", 1)]
    #[case::a_wider_share("a1 a2 a3 ?a1 ?a2 ?- !a ?a3", 2)]
    #[case::another_goes_past("a1 a2 b1 ?a1 ?b1 ?- !b ?- !a ?a2", 1)]
    #[case::turns("a1 a2 a3 b1 b2 c1 ?a1 ?b1 ?c1 ?a2 ?b2 ?a3 ?-", 3)]
    #[case::turns_in_shares("a1 a2 a3 b1 b2 ?a1 !a ?b1 !b ?a2 !a ?b2 !b ?a3 !a ?-", 1)]
    #[case::nothing("?-", 1)]
    #[case::a_share_of_none_is_one("a1 ?a1 ?-", 0)]
    fn namespaces_take_turns(#[case] course: &str, #[case] share: usize) {
        let mut turns: FairQueue<String> = FairQueue::new(share);
        for (i, word) in course.split(' ').enumerate() {
            let (first, rest) = word.split_at(1);
            match first {
                "?" => {
                    let taken = turns.take();
                    let taken = taken.map_or("-".to_owned(), |(namespace, work)| {
                        assert_eq!(namespace, work[..1]);
                        work
                    });
                    assert_eq!(taken, rest, "at {i} in {course}");
                }
                "!" => turns.done(rest),
                namespace => turns.add(namespace, word.to_owned()),
            }
        }
        assert!(turns.waiting.len() == turns.order.len(), "{turns:?}");
    }
}
