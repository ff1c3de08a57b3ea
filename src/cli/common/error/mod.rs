//! Errors of commands in one shape: what failed, where, why, and what to do next.

mod api;
mod shape;

pub(in crate::cli) use self::api::{AtAddress, api, causes, of_api, of_client, of_watch, reason};
pub(in crate::cli) use self::shape::{CliError, Exit, plain};
