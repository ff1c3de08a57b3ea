//! The verbs of plan requests.

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanVerb {
    /// Ends the run.
    Abort {
        /// Whether the spec also reverts to the one last carried out in full.
        revert: bool,
    },
    /// Resumes or restarts a failed run.
    Retry,
    /// Ends the run, and starts its plan at the first step.
    Restart,
    /// Lets the run write nothing further.
    Pause,
    /// Lets a paused run go on.
    Resume,
    /// Retries a run that objects held which no Instance made, and takes them over.
    Adopt,
}

impl PlanVerb {
    pub const ALL: [Self; 7] = [
        Self::Abort { revert: false },
        Self::Abort { revert: true },
        Self::Retry,
        Self::Restart,
        Self::Pause,
        Self::Resume,
        Self::Adopt,
    ];

    /// The word in a request.
    pub fn word(self) -> &'static str {
        match self {
            Self::Abort { revert: false } => "abort",
            Self::Abort { revert: true } => "abort-revert",
            Self::Retry => "retry",
            Self::Restart => "restart",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Adopt => "adopt",
        }
    }

    /// Whether it retries a run that failed.
    pub fn retries(self) -> bool {
        matches!(self, Self::Retry | Self::Adopt)
    }

    /// The RBAC verb on `instances.kudo.dev` that a user needs for it.
    pub fn right(self) -> &'static str {
        match self {
            Self::Abort { .. } => "abort",
            other => other.word(),
        }
    }

    /// All words, for people: `a, b or c`.
    pub fn words() -> String {
        let [others @ .., last] = Self::ALL.map(Self::word);
        format!("{} or {last}", others.join(", "))
    }
}
