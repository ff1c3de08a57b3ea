//! Tables and properties of the flavor rules as a whole.

mod known;
mod neighbours;
mod overview;
mod plans;
mod properties;
mod readings;
mod rules;
mod world;
