//! Real packages and sources of peers, which are not part of the project.

use std::path::{Path, PathBuf};

use super::announce;

/// A file or folder below `INTERLOCK_SHARED` (default `../shared`). `None` = the test is
/// skipped, which is printed. Under CI a skip fails where the folder itself is there.
#[track_caller]
pub fn find(what: &str) -> Option<PathBuf> {
    let root = std::env::var_os("INTERLOCK_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let path = root.join(what);
    if path.exists() {
        return Some(path);
    }
    let said = format!("skipped: {} is not there; INTERLOCK_SHARED names its folder", path.display());
    assert!(
        !(root.is_dir() && std::env::var_os("CI").is_some_and(|ci| ci == "true")),
        "{said}; under CI that is a failure, as {} is there",
        root.display()
    );
    announce(&said);
    None
}
