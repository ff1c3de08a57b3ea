//! A change of a DataPlane's router flavor, carried out hop by hop: each hop is staged, and promoted when the pods of
//! the preview hold a configuration.
//!
//! [`facts`] reads an object, [`next_move`] decides, and a command carries the moves out; [`edit`] is what a hop
//! writes, [`producer`] what is done with the ingress controller. [`outage`] is the way without running pods.

pub mod edit;
pub mod facts;
pub mod next_move;
pub mod outage;
pub mod preview_producer;
pub mod producer;
pub mod refusal;

#[cfg(test)]
mod tests;
