//! The command line: one file for each subcommand.

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use interlock_core::kinds::Kinds;

use crate::telemetry::build;

pub mod check;
mod common;
pub mod completion;
pub mod explain;
pub mod gateway;
pub mod guard;
pub mod kong;
pub mod kudo;
pub mod man;
pub mod override_object;
pub mod render;
pub mod run;
pub mod topology;
pub mod uninstall;
pub mod verify;
pub mod version;
pub mod why;

/// The same for every command.
const EXIT_CODES: &str = "\
Exit codes:
  0  done; the answer is yes
  1  refused, failed, or different; the answer is no
  2  the arguments are wrong, or an input cannot be read
  3  the API server was not reached, an object was not found, or a wait ran out of time";

/// Keeps changes to Kubernetes custom resources safe while they are being carried out.
#[derive(Debug, Parser)]
#[command(name = "interlock", version = build::VERSION, long_version = build::LONG_VERSION)]
#[command(propagate_version = true, after_help = EXIT_CODES)]
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
    /// Removes Interlock from a cluster, and leaves the objects of packages.
    Uninstall(Box<uninstall::UninstallArguments>),
    /// Installs, upgrades and uninstalls packages.
    Package(Box<kudo::package::PackageArguments>),
    /// Renders a template of a package with given values, without a cluster.
    Template(Box<kudo::template::TemplateArguments>),
    /// Shows, triggers, aborts and retries the plans of Instances.
    Plan(Box<kudo::plan::PlanCommand>),
    /// Says without a cluster what the API server and the webhook would refuse of these manifests: 0 nothing, 1
    /// something.
    Check(Box<check::CheckArguments>),
    /// Prints the objects that Interlock watches, and the links between them.
    Topology(Box<topology::TopologyArguments>),
    /// Shows which policies of the Gateway API act where, and why; from a cluster or from files.
    Policies(Box<gateway::policies::PoliciesCommand>),
    /// Shows when objects of a kind count as being changed, and says of given objects whether they are.
    Guard(Box<guard::GuardCommand>),
    /// Explains an object: its state, its dependencies, its writers and its recent history.
    Why(Box<why::WhyArguments>),
    /// Explains a rule, a condition or a reason, without a cluster.
    Explain(explain::ExplainArguments),
    /// Plans changes of a gateway's router flavor, and carries them out.
    Flavor(Box<kong::flavor::FlavorArguments>),
    /// Lets one user make a change that one rule refuses, of one Instance, for a while.
    Override(Box<override_object::OverrideCommand>),
    /// Shows, promotes and aborts the staged change of a DataPlane.
    Rollout(Box<kong::rollout::RolloutCommand>),
    /// Prints the version of this program, of the API server, and of Interlock in the cluster.
    Version(Box<version::VersionArguments>),
    /// Prints a script that completes commands and flags in a shell.
    Completion(completion::CompletionArguments),
    /// Prints the manual page, or writes the pages of all commands.
    Man(man::ManArguments),
}

/// The command line as it was called: as a plug-in of kubectl, usage lines begin with `kubectl interlock`.
fn command() -> clap::Command {
    let command = Cli::command();
    if common::invoked::by_kubectl() { command.bin_name(common::invoked::AS_PLUGIN) } else { command }
}

/// Parses the arguments and runs the command, for these kinds.
pub fn main(kinds: Kinds) -> ExitCode {
    let parsed = Cli::from_arg_matches(&command().get_matches());
    match parsed.unwrap_or_else(|error| error.exit()).command {
        Command::Run(arguments) => run::main(*arguments, kinds),
        Command::Render(arguments) => render::main(*arguments, kinds),
        Command::Verify(arguments) => verify::main(*arguments, kinds),
        Command::Uninstall(arguments) => uninstall::main(*arguments, kinds),
        Command::Package(arguments) => kudo::package::main(*arguments),
        Command::Template(arguments) => kudo::template::main(*arguments),
        Command::Plan(arguments) => kudo::plan::main(*arguments),
        Command::Check(arguments) => check::main(*arguments, kinds),
        Command::Topology(arguments) => topology::main(*arguments, kinds),
        Command::Policies(arguments) => gateway::policies::main(*arguments),
        Command::Guard(arguments) => guard::main(*arguments),
        Command::Why(arguments) => why::main(*arguments),
        Command::Explain(arguments) => explain::main(&arguments),
        Command::Flavor(arguments) => kong::flavor::main(*arguments),
        Command::Override(arguments) => override_object::main(*arguments),
        Command::Rollout(arguments) => kong::rollout::main(*arguments),
        Command::Version(arguments) => version::main(*arguments),
        Command::Completion(arguments) => completion::main(&arguments, Cli::command()),
        Command::Man(arguments) => man::main(&arguments, Cli::command()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flags that clash between a command and what it shares are found here, not by the first user.
    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
