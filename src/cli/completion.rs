//! `interlock completion`: a script that completes commands and flags in a shell.

use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::cli::common::{exit, output};

/// Flags of `interlock completion`.
#[derive(Args, Debug)]
pub struct CompletionArguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script for a command.
pub fn main(arguments: &CompletionArguments, mut command: Command) -> ExitCode {
    let mut script = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(arguments.shell, &mut command, name, &mut script);
    exit::done(output::print(&String::from_utf8_lossy(&script)).map_err(anyhow::Error::from))
}
