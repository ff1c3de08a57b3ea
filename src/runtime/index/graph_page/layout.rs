//! Where the boxes of a drawing are: columns from left to right, the lines between them as short as may be.

use interlock_core::kinds::page::{Drawing, DrawnNode};
use jiff::Timestamp;
use rust_sugiyama::configure::{Config, RankingType};
use serde::Serialize;

use super::drawing;
use crate::runtime::index::store::Store;

/// From the left edge of a column to that of the next.
const COLUMN: f64 = 224.0;
/// Between two boxes of a column.
const GAP: f64 = 12.0;
/// The height of a box without further lines.
const BOX: f64 = 46.0;
/// The height of a further line.
const LINE: f64 = 18.0;

/// A drawing with the place of each box, in pixels.
#[derive(Debug, Serialize)]
pub struct PlacedDrawing {
    #[serde(flatten)]
    drawing: Drawing,
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
struct Place {
    left: f64,
    top: f64,
    height: f64,
}

impl PlacedDrawing {
    /// Of the objects that are known at a time. The store is free again before anything is drawn.
    pub fn of(store: &Store, now: Timestamp) -> Self {
        let draw = drawing(&store.read(), store.kinds(), now);
        let drawing = draw();
        let places = places(&drawing);
        Self { drawing, places }
    }

    /// As JSON for the page.
    pub fn json(&self) -> Vec<u8> {
        // A struct of texts and numbers always serialises.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

fn height(node: &DrawnNode) -> f64 {
    node.lines.iter().fold(BOX, |height, _| height + LINE)
}

/// The library has rows from top to bottom, of which columns are made: what it takes for the width of a box is its
/// height. Graphs without a line between them come one below the other.
fn places(drawing: &Drawing) -> Vec<Place> {
    let nodes: Vec<(u32, (f64, f64))> =
        (0..).zip(&drawing.nodes).map(|(index, node)| (index, (height(node), COLUMN - GAP))).collect();
    let exists = |(from, to): &&(u32, u32)| [*from, *to].iter().all(|end| (*end as usize) < nodes.len());
    let edges: Vec<_> = drawing.edges.iter().filter(exists).copied().collect();
    let config = Config {
        vertex_spacing: GAP,
        // To try all neighbours costs six times as much, and saves few crossings of what is nearly a tree.
        transpose: false,
        ranking_type: RankingType::Up,
        ..Config::default()
    };
    let mut places = vec![Place::default(); nodes.len()];
    let mut bottom = 0.0;
    for (boxes, _, _) in rust_sugiyama::from_vertices_and_edges(&nodes, &edges, &config) {
        let boxes = || {
            boxes.iter().filter_map(|&(index, (middle, left))| {
                let height = height(drawing.nodes.get(index)?);
                Some((index, Place { left, top: middle - height / 2.0, height }))
            })
        };
        let above = boxes().map(|(_, place)| place.top).fold(f64::INFINITY, f64::min);
        let begin = bottom;
        for (index, place) in boxes() {
            let top = (place.top - above + begin).round();
            bottom = f64::max(bottom, top + place.height + GAP);
            places[index] = Place { top, ..place };
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use interlock_core::kinds::page::{DrawnLine, NODES};

    use super::*;

    fn drawing(lines: &[usize], edges: &[(u32, u32)]) -> Drawing {
        let node =
            |count: &usize| DrawnNode { lines: vec![DrawnLine::default(); *count], ..DrawnNode::default() };
        Drawing { nodes: lines.iter().map(node).collect(), edges: edges.to_vec(), total: lines.len() }
    }

    /// No two boxes of a column overlap, and what is below another is in a column to its right.
    fn assert_readable(drawing: &Drawing) {
        let places = places(drawing);
        for (from, to) in &drawing.edges {
            assert!(places[*from as usize].left < places[*to as usize].left, "{from} {to}: {places:?}");
        }
        let mut all = places.clone();
        all.sort_by(|one, other| (one.left, one.top).partial_cmp(&(other.left, other.top)).unwrap());
        for pair in all.windows(2).filter(|pair| pair[0].left == pair[1].left) {
            assert!(pair[0].top + pair[0].height <= pair[1].top, "{pair:?}");
        }
        assert!(places.iter().all(|place| place.top >= 0.0 && place.left >= 0.0), "{places:?}");
    }

    #[test]
    fn boxes_do_not_overlap() {
        assert!(places(&drawing(&[], &[])).is_empty());
        assert_readable(&drawing(&[0], &[]));
        assert_readable(&drawing(&[0, 2, 0, 5, 1], &[(0, 1), (0, 2), (1, 3), (2, 3), (0, 4)]));
        assert_readable(&drawing(&[0, 0, 3, 0], &[(0, 2), (1, 3)]));
    }

    #[test]
    fn a_thousand_boxes_are_placed() {
        let count = NODES as u32;
        let edges: Vec<_> =
            (1..count).map(|node| (if node < 40 { 0 } else { node % 39 + 1 }, node)).collect();
        assert_readable(&drawing(&vec![1; NODES], &edges));
    }
}
