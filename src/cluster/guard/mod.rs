//! Whether what guards is as it was installed: our webhook configurations, policies and bindings.
//! Edits of these are not admitted by anybody, so they can only be seen afterwards.
//!
//! `follow` watches, `compare` tells what differs, `standing` keeps it for those who act only
//! while a guard holds, `alarm` decides when people are told, `warden` brings them together.

mod alarm;
mod compare;
mod follow;
mod object;
mod standing;
mod warden;

pub use object::{Id, Kind, Seen};
pub use standing::{Guard, PolicyState, Standing};
pub use warden::{Teller, Warden};
