//! Everything that talks to the API server. It knows effects and wire types, and no rule.

pub mod apply;
pub mod events;
pub mod kinds;
pub mod queue;
pub mod watch;
