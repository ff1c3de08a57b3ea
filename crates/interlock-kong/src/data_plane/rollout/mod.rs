//! Rollouts of DataPlanes: the children of the live side from the last-applied spec, those of the preview from the
//! spec, and the promotion between them.
//!
//! [`reconcile`] decides a pass: what is live ([`live_record`]), which children each side shall have ([`wanted`], made by
//! [`children`] and compared by [`drift`]), where the rollout stands ([`phase`], by [`gates`]), and the [`status`].
//! [`report`] is what people and programs read back from a DataPlane, and what they may ask of it. [`history`] keeps
//! former specs, [`take_over`] takes DataPlanes over from Kong's operator, and [`flavor_change`] changes a router flavor
//! hop by hop.

pub mod children;
pub mod drift;
pub mod flavor_change;
pub mod gates;
pub mod history;
pub mod kept;
pub mod live_record;
pub mod phase;
pub mod promotion;
pub mod protect_live;
pub mod reconcile;
pub mod refused_child;
pub mod report;
pub mod side;
pub mod sourced_flavor;
pub mod status;
pub mod take_over;
pub mod view;
pub mod wanted;
pub mod watched;

pub use promotion::staged_hash;

#[cfg(test)]
mod tests;
