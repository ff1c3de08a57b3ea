//! The rendered memory limit for a process, by a cgroup of its own.

use std::fs;
use std::path::PathBuf;

/// That of the rendered Deployment.
const LIMIT: &str = "536870912";

/// A cgroup with one process in it, removed when that has ended.
pub struct Limited(PathBuf);

impl Limited {
    /// `None` where none can be made.
    pub fn of(pid: u32) -> Option<Self> {
        // Version 2, then version 1.
        let kinds = [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];
        kinds.into_iter().find_map(|(root, limit)| {
            let folder = PathBuf::from(root).join(format!("interlock-bench-{pid}"));
            fs::create_dir(&folder).ok()?;
            let limited = Self(folder);
            // The file is there only where the controller is; else the folder is one like any other.
            let file = limited.0.join(limit);
            if !file.exists() {
                return None;
            }
            fs::write(file, LIMIT).ok()?;
            fs::write(limited.0.join("cgroup.procs"), pid.to_string()).ok()?;
            Some(limited)
        })
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        // Fails while the process is in it.
        let _ = fs::remove_dir(&self.0);
    }
}
