//! Storage of the facts of nodes: rows of equal length lie end to end, so a row takes only its cells.

use super::node_index::{NodeIndex, place};

/// Range of the facts of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FactRange {
    at: NodeIndex,
    /// Number of cells; a node that is only referenced has none.
    length: u8,
}

/// The facts of all nodes.
#[derive(Debug, Default)]
pub(super) struct FactStore {
    /// By length.
    rows: Vec<Rows>,
}

/// Rows of one length.
#[derive(Debug, Default)]
struct Rows {
    cells: Vec<u64>,
    free: Vec<NodeIndex>,
}

impl FactStore {
    /// The facts in a range.
    pub(super) fn at(&self, place: FactRange) -> &[u64] {
        let length = usize::from(place.length);
        let start = place.at as usize * length;
        self.rows.get(length).map_or(&[], |rows| &rows.cells[start..start + length])
    }

    /// Adds facts. A kind has a handful of them.
    pub(super) fn put(&mut self, facts: &[u64]) -> FactRange {
        let Ok(length @ 1..) = u8::try_from(facts.len()) else { return FactRange::default() };
        if self.rows.len() <= facts.len() {
            self.rows.resize_with(facts.len() + 1, Rows::default);
        }
        let rows = &mut self.rows[facts.len()];
        let at = match rows.free.pop() {
            Some(at) => {
                let start = at as usize * facts.len();
                rows.cells[start..start + facts.len()].copy_from_slice(facts);
                at
            }
            None => {
                rows.cells.extend_from_slice(facts);
                place(rows.cells.len() / facts.len() - 1)
            }
        };
        FactRange { at, length }
    }

    /// Frees a range of facts.
    pub(super) fn free(&mut self, place: FactRange) {
        if place.length > 0 {
            self.rows[usize::from(place.length)].free.push(place.at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_kept_apart_by_length_and_places_are_used_again() {
        let mut facts = FactStore::default();
        let (a, b, c) = (facts.put(&[1, 2]), facts.put(&[3]), facts.put(&[4, 5]));
        facts.free(a);
        assert_eq!(facts.put(&[6, 7]), a);
        assert_eq!((facts.at(a), facts.at(b), facts.at(c)), (&[6, 7][..], &[3][..], &[4, 5][..]));
        assert_eq!(facts.at(FactRange::default()), &[] as &[u64]);
        assert_eq!(facts.put(&[]), FactRange::default());
    }
}
