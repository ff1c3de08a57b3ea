//! Bounded lists, and the limits of what they show.

use jiff::Timestamp;
use serde::Serialize;

/// Maximum number of shown rows of each other list.
pub(super) const ROWS: usize = 100;
/// Longest name that is shown; those that the API server checks are not longer.
pub(super) const NAME_LIMIT: usize = 253;
/// Longest name of a plan, a phase or a step that is shown; these are free texts.
pub(super) const WORD_LIMIT: usize = 80;
/// Longest message that is shown.
pub(super) const MESSAGE_LIMIT: usize = 600;

/// The first of many.
#[derive(Debug, Serialize)]
pub(super) struct PageSection<T> {
    pub(super) total: usize,
    pub(super) shown: Vec<T>,
}

/// A time of a row; 0 is none.
pub(super) fn time(seconds: Option<u64>) -> Option<Timestamp> {
    let seconds = seconds.filter(|seconds| *seconds > 0)?;
    Timestamp::from_second(i64::try_from(seconds).ok()?).ok()
}
