//! The command line: one file for each subcommand.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use interlock_core::kinds::Kinds;

use crate::telemetry::build;

pub mod check;
mod discovery;
mod exit;
mod files;
mod flags;
pub mod flavor;
mod follow;
pub mod package;
pub mod plan;
mod reader;
pub mod render;
pub mod run;
mod target;
pub mod topology;
pub mod uninstall;
pub mod verify;
mod watch;
pub mod why;

/// Keeps changes to Kubernetes custom resources safe while they are being carried out.
#[derive(Debug, Parser)]
#[command(name = "interlock", version = build::VERSION, long_version = build::LONG_VERSION)]
#[command(propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves the webhook and runs the controllers.
    Run(Box<run::RunArguments>),
    /// Prints all objects of an installation, as YAML.
    Render(Box<render::RenderArguments>),
    /// Checks whether an installation guards and works.
    Verify(Box<verify::VerifyArguments>),
    /// Removes Interlock from a cluster, and leaves what its packages made.
    Uninstall(Box<uninstall::UninstallArguments>),
    /// Installs, upgrades and uninstalls packages.
    Package(Box<package::PackageArguments>),
    /// Show, abort and retry the plans of an Instance.
    Plan(Box<plan::PlanCommand>),
    /// Decides as the webhook does, without a cluster: 0 allowed, 1 refused, 2 error.
    Check(Box<check::CheckArguments>),
    /// Prints the objects that Interlock watches, and the links between them.
    Topology(Box<topology::TopologyArguments>),
    /// Explains an object: its state, its dependencies, its writers and its recent history.
    Why(Box<why::WhyArguments>),
    /// Plans changes of a gateway's router flavor.
    Flavor(Box<flavor::FlavorArguments>),
}

/// Parses the arguments and runs the command, for these kinds. Exit codes: 0 done, 1 failed, 2 misused.
pub fn main(kinds: Kinds) -> ExitCode {
    match Cli::parse().command {
        Command::Run(arguments) => run::main(*arguments, kinds),
        Command::Render(arguments) => render::main(*arguments, kinds),
        Command::Verify(arguments) => verify::main(*arguments, kinds),
        Command::Uninstall(arguments) => uninstall::main(*arguments, kinds),
        Command::Package(arguments) => package::main(*arguments),
        Command::Plan(arguments) => plan::main(*arguments),
        Command::Check(arguments) => check::main(*arguments, kinds),
        Command::Topology(arguments) => topology::main(*arguments, kinds),
        Command::Why(arguments) => why::main(*arguments),
        Command::Flavor(arguments) => flavor::main(*arguments),
    }
}
