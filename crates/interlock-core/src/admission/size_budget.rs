//! The size budget for the last-applied annotation.
//!
//! The annotation holds a spec only if it cannot make a legal write fail: all annotations of an object
//! together are limited to 256 KiB, and client-side apply keeps a copy of the object there; etcd takes
//! 1.5 MiB for the whole write, and a write that fits only without managedFields silently loses them.

use crate::api::meta;

/// Largest spec that is kept inline, as JSON.
pub const SPEC_LIMIT: usize = 32 * 1024;
/// Limit of all annotations together with an inline spec.
pub const ANNOTATIONS_LIMIT: usize = 192 * 1024;
/// Limit of the whole object with an inline spec.
pub const OBJECT_LIMIT: usize = 1024 * 1024;
/// All annotations together: `TotalAnnotationSizeLimitB` of the API server.
pub const ANNOTATIONS_MAX: usize = 256 * 1024;
/// Limit of the whole object; beyond it even a bare hash is omitted, as etcd would reject it.
pub const OBJECT_MAX: usize = 1536 * 1024 - 4 * 1024;

/// The sizes that the last-applied annotation has to fit beside.
#[derive(Clone, Copy, Debug)]
pub struct SizeBudget {
    /// Bytes of all annotations that are not ours; they take precedence over the history of runs.
    pub annotations: usize,
    /// Bytes of the object as JSON, without its present last-applied annotation.
    pub object: usize,
}

impl SizeBudget {
    /// Whether a last-applied annotation fits, given limits of all annotations and of the whole object.
    pub fn fits(&self, text: &str, annotations: usize, object: usize) -> bool {
        if self.annotations + meta::LAST_APPLIED_SPEC.len() + text.len() > annotations {
            return false;
        }
        if self.object.saturating_add(2 * text.len()) <= object {
            return true;
        }
        let escapes: usize = text.bytes().map(|b| usize::from(b == b'"') + usize::from(b == b'\\')).sum();
        self.object + text.len() + escapes <= object
    }
}

/// Whether all annotations together fit: others, the last-applied one, and the history with its key.
pub fn holds(others: usize, stamp: Option<&str>, history: usize) -> bool {
    holds_bytes(others, stamp.map(str::len), history)
}

/// The same, for a last-applied annotation of that many bytes.
pub fn holds_bytes(others: usize, stamp: Option<usize>, history: usize) -> bool {
    let stamp = stamp.map_or(0, |bytes| meta::LAST_APPLIED_SPEC.len() + bytes);
    others + stamp + history <= ANNOTATIONS_MAX
}
