//! Errors of commands in one shape: what failed, where, why, and what to do next.

mod api;
mod chain;
mod plain;
mod shape;

pub(in crate::cli) use self::api::{AtAddress, api, of_api, of_client, of_watch, reason};
pub(in crate::cli) use self::chain::from_anyhow;
pub(in crate::cli) use self::plain::plain;
pub(in crate::cli) use self::shape::{CliError, Exit};
