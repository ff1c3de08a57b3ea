//! Arguments and crypto provider; everything else is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    interlock::cli::main()
}
