//! Controllers come and go with their CustomResourceDefinitions.
//!
//! One watch of the definitions, one state machine for each declared [`Capability`]. Nothing is
//! polled, nothing needs a restart, and nothing ends the process because a kind goes away.
//!
//! *Unavailable is not empty*: while a capability does not run nothing is decided, so nothing is
//! written or deleted because of what cannot be seen.

mod capability;
mod definitions;
mod driver;
mod feed;
mod handle;
mod kind;
mod need;
mod optional;
mod state;
mod step;
mod tended;
mod tracked;

pub use capability::{Capability, Kind, Mode, Modes};
pub use definitions::Definitions;
pub use driver::{Listener, Setup, Supervisor};
pub use feed::Sink;
pub use handle::{Assignment, Handle, Watches, Watching};
pub use kind::GRACE;
pub use need::Needer;
pub use state::{
    ANSWER_DEADLINE, Answer, Epoch, KindStatus, Lack, Missing, Refused, Sight, Snapshot, State, Status, Verb,
};
pub use step::{Facts, Machine, START_DEADLINE, Seen, Step, Turn, Work};
