//! Tables and properties of the flavor rules as a whole.

mod known;
mod neighbours;
mod plans;
mod rules;
pub(super) mod world;
