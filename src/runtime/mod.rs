//! What every controller stands on: the work queue, the workers, the leader epoch, the index of watched
//! objects, the executor of effects, and the threads that render packages.

pub mod certificates;
pub mod controller;
pub mod executor;
pub mod gate;
pub mod gathered;
pub mod index;
pub mod pool;
pub mod queue;
pub mod reconciler;
pub mod refused;
pub mod rounds;
pub mod runner;
mod workers;
