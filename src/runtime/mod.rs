//! What every controller stands on: the work queue, the index of watched objects, and the threads that
//! render packages.

pub mod index;
pub mod pool;
pub mod queue;
