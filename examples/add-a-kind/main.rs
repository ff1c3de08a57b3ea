//! Interlock with one more guarded kind, a `Backup` that belongs to an Instance: its folder, and one line here.
//! `docs/add-a-kind.md` goes through it.
//!
//! ```console
//! $ cargo run -p add-a-kind -- topology events
//! $ cargo run -p add-a-kind -- render webhooks
//! ```

use std::process::ExitCode;

mod backup;

fn main() -> ExitCode {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let kinds = interlock::kinds::all().iter().copied().chain([&backup::KIND]).collect();
    interlock::cli::main(Vec::leak(kinds))
}
