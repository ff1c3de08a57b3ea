//! Starts and stops controllers with their CustomResourceDefinitions.
//!
//! One watch of the definitions, one state machine for each declared [`Capability`]. Nothing is
//! polled, nothing needs a restart, and nothing ends the process because a kind is removed.
//!
//! *Unavailable is not empty*: while a capability does not run, its controller decides nothing, so missing
//! data never causes a write or a deletion.

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

pub use capability::{Capability, CapabilityKind, Mode, Modes};
pub use definitions::Definitions;
pub use driver::{Listener, Setup, Supervisor};
pub use feed::Sink;
pub use handle::{Assignment, Handle, Watches, Watching};
pub use kind::GRACE;
pub use need::KindRequester;
pub use state::{
    ANSWER_DEADLINE, ApiVerb, CapabilityPhase, CapabilitySnapshot, CapabilityStatus, Epoch, KindStatus,
    Missing, NotReadyReason, RefusedKind, UnavailableAnswer, WatchState,
};
pub use step::{
    CapabilityFacts, CapabilityStep, CapabilityTransition, Machine, RequiredKind, START_DEADLINE, Work,
};
