//! `interlock guard`: when objects of a kind count as being changed, and whether given ones do.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::cli::common::exit::decided;

mod presets;
mod test;

/// Flags of `interlock guard`.
#[derive(Args, Debug)]
pub struct GuardCommand {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Lists the presets: for which kinds it is known when an object is being changed.
    Presets(presets::PresetsFlags),
    /// Says of given objects whether they are being changed, and what becomes of a change; without a cluster.
    Test(test::TestFlags),
}

/// Runs the command.
pub fn main(arguments: GuardCommand) -> ExitCode {
    let done = match arguments.verb {
        Verb::Presets(flags) => presets::run(&flags),
        Verb::Test(flags) => test::run(&flags),
    };
    decided(done.map(|()| true))
}
