//! Tables and properties of the room as a whole.

mod known;
mod plans;
mod properties;
mod readings;
mod rules;
mod world;
