//! `interlock flavor`: plans the hops from one router flavor of a gateway to another, carries them out, and
//! diagnoses gateways that are stuck between flavors.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::cli::common::exit;
use crate::cli::common::target::{block_on, finish};

mod change;
mod cluster;
mod diagnose;
mod plan;

/// Flags of `interlock flavor`.
#[derive(Args, Debug)]
pub struct FlavorArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Prints the hops to another flavor, the checks of each, and what would be refused, for a gateway of the
    /// cluster or of a file: 0 every hop is allowed, or with --outage the way without pods, 1 a hop is
    /// refused.
    Plan(Box<plan::PlanArguments>),
    /// Changes the flavor of a DataPlane, one hop after the other: 0 the flavor is live, or without --wait
    /// one step is done, 1 refused or failed.
    Change(Box<change::ChangeArguments>),
    /// Finds what blocks gateways, and prints the next command: mixed flavors, pods that never become ready,
    /// a producer with an old flavor: 0 no problem was found, 1 one was.
    Diagnose(diagnose::DiagnoseArguments),
}

/// Runs the command.
pub fn main(arguments: FlavorArguments) -> ExitCode {
    match arguments.command {
        Command::Plan(arguments) => exit::decided(plan::run(&arguments)),
        Command::Change(arguments) => block_on(change::run(&arguments)),
        Command::Diagnose(arguments) => exit::decided(finish(diagnose::run(&arguments))),
    }
}
