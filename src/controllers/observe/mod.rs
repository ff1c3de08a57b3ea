//! Watches into one store: the cluster cache of admission and controllers.

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

/// Kinds whose health makes an Instance ready; excludes Pods of Deployments and finished Pods of Jobs (KUDO
/// counted the latter as unhealthy for ever).
pub const SPEAKING: [&str; 2] = ["Deployment", "StatefulSet"];

/// A settled Instance.
#[cfg(test)]
fn settled() -> serde_json::Value {
    let text = include_str!("../../../crates/interlock-core/tests/data/instance-at-rest.json");
    serde_json::from_str(text).expect("JSON")
}
