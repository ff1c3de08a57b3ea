//! `interlock man`: the manual pages, made of the same texts as --help.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command};

use crate::cli::common::error::CliError;
use crate::cli::common::{exit, output};

/// Flags of `interlock man`.
#[derive(Args, Debug)]
pub struct ManArguments {
    /// Folder to write a page for each command into; without it, the page of `interlock` is printed.
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
}

/// Prints or writes the pages of a command.
pub fn main(arguments: &ManArguments, command: Command) -> ExitCode {
    exit::done(write(arguments, command).map_err(anyhow::Error::from))
}

fn write(arguments: &ManArguments, command: Command) -> Result<(), CliError> {
    let Some(folder) = &arguments.into else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut page)
            .map_err(|error| CliError::refused("the page cannot be made").why(error.to_string()))?;
        return output::print(&String::from_utf8_lossy(&page));
    };
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    written.map_err(|error| {
        CliError::usage("the pages cannot be written")
            .place(folder.display().to_string())
            .why(error.to_string())
            .next("give a folder that you may write into with --into")
    })
}
