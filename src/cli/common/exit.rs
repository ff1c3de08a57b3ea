//! The end of a command: its exit code, and the error if there is one. All errors are printed here.

use std::process::ExitCode;

use interlock_core::api::display::printable;

use super::error::{CliError, Exit, from_anyhow};
use super::invoked::as_called;

/// Of a command that does something: 0 done, else the code of the error, 1 where it has none.
pub(in crate::cli) fn done(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, Exit::Refused),
    }
}

/// Of a command that decides: 0 yes, 1 no, else the code of the error, 2 where it has none.
pub(in crate::cli) fn decided(answer: anyhow::Result<bool>) -> ExitCode {
    match answer {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(Exit::Refused.code()),
        Err(error) => failed(&error, Exit::Usage),
    }
}

/// Prints an error; its exit code, or this one where it has none.
pub(in crate::cli) fn failed(error: &anyhow::Error, exit: Exit) -> ExitCode {
    print(&from_anyhow(error, exit))
}

pub(in crate::cli) fn print(error: &CliError) -> ExitCode {
    eprint!("{}", printable(&as_called(&error.text())));
    ExitCode::from(error.exit().code())
}
