//! Errors of a change of flavor.

use crate::cli::common::error::CliError;
use crate::cli::kong::rollout::data_plane::DataPlaneRef;

/// How often a write is tried again that another client's write came before.
pub(super) const TRIES: u32 = 10;

/// The error of a change that does not go on.
pub(super) fn unchanged(plane: &DataPlaneRef) -> CliError {
    CliError::refused(format!("the router flavor of DataPlane {} is not changed", plane.key()))
}

/// The error of a write that other writes came before again and again.
pub(super) fn contended(plane: &DataPlaneRef) -> CliError {
    CliError::unreached(format!("the router flavor of DataPlane {} is not changed", plane.key()))
        .why("it, or its producer, is changed all the time")
        .next("try again")
}
