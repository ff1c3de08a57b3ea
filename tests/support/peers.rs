//! Programs of others that tests and benchmarks run beside ours, built on first use.

use std::path::PathBuf;
use std::sync::LazyLock;

use super::process;

/// Folder with KUDO's client and manager.
static KUDO: LazyLock<PathBuf> = LazyLock::new(|| process::built("tests/peers/kudo/build"));

/// KUDO's own client, v0.19.0.
pub fn kubectl_kudo() -> PathBuf {
    KUDO.join("kubectl-kudo")
}

/// KUDO's own manager, v0.19.0: controllers and webhook.
pub fn kudo_manager() -> PathBuf {
    KUDO.join("kudo-manager")
}
