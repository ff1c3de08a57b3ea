//! Watches into one store: the cluster cache of admission and controllers.

mod affected;
pub mod current_kinds;
pub mod gateways;
pub mod graph_page;
mod instances;
pub mod interlocks;
mod kept_objects;
mod lister;
mod object_bytes;
pub mod observer;
mod operator_versions;
mod packages;
mod queries;
pub mod reread;
mod size_budget;
pub mod store;
mod tables;

pub use self::object_bytes::Child;
pub use instances::KeptInstance;
pub use interlocks::Interlocks;
pub use lister::IndexLister;
pub use observer::Observer;
pub use store::Store;

/// A settled Instance.
#[cfg(test)]
fn settled() -> serde_json::Value {
    let text = include_str!("../../../crates/interlock-kudo/tests/data/instance-at-rest.json");
    serde_json::from_str(text).expect("JSON")
}
