//! What the decisions of every domain stand on, and no domain.
//!
//! Admission: bytes -> typed [`admission::request`] -> rules -> verdict and patch -> bytes. Reconcile: event -> affected root
//! ([`topology`]) -> [`reconcile::View`] -> effects as data ([`effect`]). A kind is a [`kinds::Kind`], from which all that is
//! known of it is derived.
//!
//! There is no client, clock, randomness, thread or file among the dependencies: time and ids are
//! arguments, and what has to be read is named in what a decision returns.

#![deny(missing_docs)]

pub mod admission;
pub mod api;
pub mod certificate;
pub mod config_digest;
pub mod effect;
pub mod health;
pub mod kinds;
pub mod last_applied;
pub mod reconcile;
pub mod rejection;
pub mod strategic_merge;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod topology;
