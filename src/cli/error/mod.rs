//! Errors of commands in one shape: what failed, where, why, and what to do next.

mod api;
mod chain;
mod plain;
mod shape;

pub(super) use self::api::{AtAddress, api, of_api, of_client, of_watch, reason};
pub(super) use self::chain::from_anyhow;
pub(super) use self::plain::plain;
pub(super) use self::shape::{CliError, Exit};
