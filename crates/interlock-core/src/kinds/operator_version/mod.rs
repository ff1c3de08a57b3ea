//! `OperatorVersion`: an installed package.

pub mod links;
pub mod rules;
