//! What stands at one moment, and how much may still happen.

use super::cluster::Cluster;
use super::users::{Edit, Way};

/// The stored objects, and the process that sleeps.
#[derive(Clone)]
pub struct Situation {
    pub cluster: Cluster,
    pub sleeper: Option<Sleeper>,
}

/// A process that sleeps.
#[derive(Clone)]
pub struct Sleeper {
    /// What its watches had shown.
    pub cached: Cluster,
    pub before_request: usize,
    /// What it fell asleep on.
    pub left: Cluster,
}

/// What is left to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub edits: usize,
    /// Which edits these may be.
    pub of: &'static [(Edit, Way)],
    pub deletions: usize,
    pub crashes: usize,
    /// How often another process takes itself for the leader too, and falls asleep.
    pub sleepers: usize,
    /// How often another controller changes a label while one sleeps.
    pub conflicts: usize,
}

impl Budget {
    fn counts(&self) -> [usize; 5] {
        [self.edits, self.deletions, self.crashes, self.sleepers, self.conflicts]
    }

    /// How many events are left.
    pub fn left(&self) -> usize {
        self.counts().iter().sum()
    }

    /// Whether all that may happen with the other may happen with this one.
    pub fn covers(&self, other: &Self) -> bool {
        self.counts().iter().zip(other.counts()).all(|(own, others)| *own >= others)
    }

    /// Whether an event of that kind may happen.
    pub fn may_happen(&self, kind: Kind) -> bool {
        match kind {
            Kind::WakesUp => self.sleepers > 0,
            _ => self.spend(kind).is_some(),
        }
    }

    /// What is left after an event of that kind; `None` where none is.
    pub fn spend(mut self, kind: Kind) -> Option<Self> {
        let count = match kind {
            Kind::Passes | Kind::WakesUp => return Some(self),
            Kind::Dies => &mut self.crashes,
            Kind::FallsAsleep => &mut self.sleepers,
            Kind::Edited => &mut self.edits,
            Kind::Deleted => &mut self.deletions,
            Kind::Labelled => &mut self.conflicts,
        };
        *count = count.checked_sub(1)?;
        Some(self)
    }
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A process reconciles.
    Passes,
    /// It dies after a write.
    Dies,
    /// It falls asleep before a request.
    FallsAsleep,
    /// The process that sleeps goes on.
    WakesUp,
    /// A user edits the Instance.
    Edited,
    /// A user deletes it.
    Deleted,
    /// Another controller changes a label.
    Labelled,
}

impl Kind {
    pub const ALL: [Self; 7] = [
        Self::Passes,
        Self::Dies,
        Self::FallsAsleep,
        Self::WakesUp,
        Self::Edited,
        Self::Deleted,
        Self::Labelled,
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    Created { admitted: bool },
    Passes,
    Dies { after_writes: usize },
    FallsAsleep { before_request: usize },
    WakesUp,
    Edited(Edit, Way),
    Deleted,
    Labelled,
}

impl Event {
    /// Its kind; the creation has none.
    pub fn kind(&self) -> Option<Kind> {
        Some(match self {
            Self::Created { .. } => return None,
            Self::Passes => Kind::Passes,
            Self::Dies { .. } => Kind::Dies,
            Self::FallsAsleep { .. } => Kind::FallsAsleep,
            Self::WakesUp => Kind::WakesUp,
            Self::Edited(..) => Kind::Edited,
            Self::Deleted => Kind::Deleted,
            Self::Labelled => Kind::Labelled,
        })
    }
}
