//! All code that calls the API server. It knows effects and wire types, and no rule.

pub mod apply;
pub mod arrivals;
pub mod authorize;
pub mod bare;
pub mod binding;
pub mod certificates;
pub mod client;
pub mod crds;
pub mod events;
pub mod guard;
pub mod kinds;
pub mod lease;
pub mod list;
pub mod path;
pub mod queue;
pub mod read;
pub mod requests;
pub mod supervisor;
pub mod watch;
pub mod write_limit;
