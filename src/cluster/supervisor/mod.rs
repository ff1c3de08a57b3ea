//! Starts and stops controllers with their CustomResourceDefinitions.
//!
//! One watch of the definitions, one state machine for each declared [`Capability`]. Nothing is
//! polled, nothing needs a restart, and nothing ends the process because a kind is removed.
//!
//! *Unavailable is not empty*: while a capability does not run, its controller decides nothing, so missing
//! data never causes a write or a deletion.

mod capability;
mod capability_state;
mod definitions;
mod driver;
mod event_sink;
mod handle;
mod kind;
mod machine;
mod optional;
mod publish;
mod state;
mod watch_request;
mod watch_task;

pub use self::event_sink::Sink;
pub use self::machine::{
    CapabilityFacts, CapabilityStep, CapabilityTransition, Machine, RequiredKind, START_DEADLINE, Work,
};
pub use self::watch_request::KindRequester;
pub use capability::{Capability, CapabilityKind, CapabilityKinds, Mode, Modes};
pub use definitions::Definitions;
pub use driver::{Listener, Setup, Supervisor};
pub use handle::{Assignment, Handle, Watches, Watching};
pub use kind::UNUSED_GRACE;
pub use state::{
    ANSWER_DEADLINE, ApiVerb, CapabilityPhase, CapabilitySnapshot, CapabilityStatus, Epoch, KindStatus,
    Missing, NotReadyReason, RefusedKind, UnavailableAnswer, WatchState,
};
