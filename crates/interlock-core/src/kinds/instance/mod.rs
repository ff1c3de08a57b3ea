//! `Instance`: the object that the plans of its OperatorVersion run on.

pub mod change;
pub mod last_applied;
pub mod links;
pub mod parameters;
pub mod rules;
pub mod spec;
pub mod status;
pub mod status_wire;
