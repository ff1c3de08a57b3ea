//! Watches into one store: what admission and the controllers know of the cluster.

mod asked;
mod body;
mod instances;
pub mod interlocks;
pub mod live;
mod packages;
pub mod room;
mod row;
mod share;
pub mod store;
mod told;
mod view;
pub mod watches;

pub use body::Child;
pub use instances::KeptInstance;
pub use interlocks::Interlocks;
pub use store::Store;
pub use watches::Observer;

/// Kinds whose health makes an Instance ready; Pods of Deployments and finished Pods of Jobs are
/// not asked (KUDO counted the latter as unhealthy for ever).
pub const SPEAKING: [&str; 2] = ["Deployment", "StatefulSet"];

/// An Instance at rest, as its own room knows one.
#[cfg(test)]
fn settled() -> serde_json::Value {
    let text = include_str!("../../../crates/interlock-core/tests/data/instance-at-rest.json");
    serde_json::from_str(text).expect("JSON")
}
