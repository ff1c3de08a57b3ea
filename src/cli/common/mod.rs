//! What the commands share: targets, waiting, output, errors.

pub(in crate::cli) mod discovery;
pub(in crate::cli) mod error;
pub(in crate::cli) mod exit;
pub(in crate::cli) mod files;
pub(in crate::cli) mod flags;
pub(in crate::cli) mod gaps;
pub(in crate::cli) mod installation;
pub(in crate::cli) mod invoked;
pub(in crate::cli) mod object_ref;
pub(in crate::cli) mod output;
pub(in crate::cli) mod progress;
pub(in crate::cli) mod reader;
pub(in crate::cli) mod target;
