//! A kind whose objects commands name.

/// What messages call the objects of a kind.
pub(in crate::cli) struct ObjectKind {
    pub(in crate::cli) kind: &'static str,
    /// The resource, as rights name it.
    pub(in crate::cli) resource: &'static str,
    /// What `interlock render` prints the definition with; empty for a built-in kind.
    pub(in crate::cli) definitions: &'static str,
}
