//! Version information of this binary.

use interlock_core::api::docs::DocsUrl;

/// Version of the crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Commit, in release builds or where `INTERLOCK_COMMIT` was set; else `dev`.
pub const COMMIT: &str = env!("INTERLOCK_COMMIT");
/// Compiler.
pub const RUSTC: &str = env!("INTERLOCK_RUSTC");
/// Version of the Kubernetes types.
pub const KUBERNETES_TYPES: &str = "v1_36";

/// For `--version`.
pub const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (commit ",
    env!("INTERLOCK_COMMIT"),
    ", ",
    env!("INTERLOCK_RUSTC"),
    ", k8s v1_36)"
);

/// `interlock/VERSION (OS/ARCH) COMMIT`, as client-go spells it.
pub fn user_agent(part: &str) -> String {
    let os = std::env::consts::OS;
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("interlock/{VERSION} ({os}/{arch}) {COMMIT}{part}")
}

/// Where the documentation of this version can be read: in the repository, if the crate declares one.
pub fn docs() -> Option<DocsUrl> {
    DocsUrl::of_repository(env!("CARGO_PKG_REPOSITORY"), VERSION)
}
