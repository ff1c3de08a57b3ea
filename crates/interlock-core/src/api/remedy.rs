//! What to do about the reason of a condition: a sentence, and a command to copy.

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// In the imperative, one sentence.
    pub next: String,
    /// A command for a shell; it names nothing that a shell would take for more than a word.
    pub command: String,
}
