//! The end of a command: its exit code, and the error if there is one.

use std::process::ExitCode;

/// Of a command that does something: 0 done, 1 failed.
pub(super) fn done(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, ExitCode::FAILURE),
    }
}

/// Of a command that decides: 0 yes, 1 no, 2 error.
pub(super) fn decided(answer: anyhow::Result<bool>) -> ExitCode {
    match answer {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => failed(&error, ExitCode::from(2)),
    }
}

/// Prints the error.
pub(super) fn failed(error: &anyhow::Error, code: ExitCode) -> ExitCode {
    eprintln!("error: {error:#}");
    code
}
