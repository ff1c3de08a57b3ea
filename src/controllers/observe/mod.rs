//! Watches into one store: what admission and the controllers know of the cluster.

pub mod interlocks;
pub mod store;
pub mod watches;

pub use interlocks::Interlocks;
pub use store::Store;
pub use watches::Observer;
