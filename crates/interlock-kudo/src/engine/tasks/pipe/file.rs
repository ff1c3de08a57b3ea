//! A file of a Pod, as a task names it.

use std::path::Path;

use crate::api::PipeSpec;

/// Event reason of a file that cannot be taken, as KUDO names it.
pub(super) const PIPE_TASK_ERROR: &str = "PipeTaskError";

/// Path of a file in the Pod.
pub(super) fn path(file: &PipeSpec) -> &str {
    let given = file.file.as_deref().filter(|path| !path.is_empty());
    given.or(file.env_file.as_deref()).unwrap_or_default()
}

/// The last part of a file's path.
pub(super) fn base_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}
