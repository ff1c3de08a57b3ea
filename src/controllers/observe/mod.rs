//! Watches into one store: what admission and the controllers know of the cluster.

mod body;
pub mod interlocks;
pub mod live;
pub mod store;
mod view;
pub mod watches;

pub use interlocks::Interlocks;
pub use store::{Kept, Store};
pub use watches::Observer;

/// Kinds whose health makes an Instance ready; Pods of Deployments and finished Pods of Jobs are
/// not asked (KUDO counted the latter as unhealthy for ever).
pub const SPEAKING: [&str; 2] = ["Deployment", "StatefulSet"];
