//! The templates of a package, rendered as its plans would, without a cluster.

use std::sync::Arc;
use std::time::Duration;

use interlock_kudo::engine::seed::{Seed, SeedKey};
use interlock_kudo::engine::trial;
use interlock_kudo::engine::trial::{TrialFindings, TrialLimits};
use interlock_kudo::package::Package;
use jiff::Timestamp;

use crate::runtime::pool::Deadline;

/// Longest time of a processor that the templates of one task may take, as in a run.
const OF_TASK: Duration = Duration::from_secs(2);
/// Longest time of a processor that all templates with all values may take.
const OF_ALL: Duration = Duration::from_secs(20);

/// What fails, and what nothing uses.
pub(in crate::cli) fn findings(package: &Package) -> TrialFindings {
    let keys = Arc::default();
    // Nothing of it is kept: two calls say the same.
    let seed = Seed { key: &SeedKey([0; 32]), started: Timestamp::UNIX_EPOCH, keys: &keys };
    let (task, all) = (Deadline::alone(OF_TASK), Deadline::alone(OF_ALL));
    trial::findings(package, seed, TrialLimits { task: &task, all: &all })
}
