//! Crypto provider and the list of kinds; everything else is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    // One provider for the webhook's TLS and the client's; a second call would be an error, but
    // nothing has run before this line.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    interlock::cli::main(interlock::kinds::all())
}
