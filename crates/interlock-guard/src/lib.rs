//! Whether an object is being changed, and which change of it is refused meanwhile.
//!
//! Input: a guard, which is a [`Preset`] or a guard's own expressions, and an object as the API server has it. Output: why
//! the object is busy, and the guarded paths that a change touches. A busy object is one of which an earlier change of the
//! guarded paths is still being carried out; an object that failed, lost pods or is being scaled is not.
//!
//! - [`api`]: a guard as people write it; [`spec`] checks and compiles it.
//! - [`preset`]: what is known of kinds, as data.
//! - [`busy`]: the expressions that say that an object is busy.
//! - [`paths`]: what of an object is guarded.
//! - [`judgement`]: what becomes of a change.

#![deny(missing_docs)]

pub mod api;
pub mod busy;
pub mod judgement;
pub mod paths;
pub mod preset;
mod presets;
pub mod spec;

pub use self::preset::Preset;
pub use self::presets::{generic, named, of_kind, presets};
