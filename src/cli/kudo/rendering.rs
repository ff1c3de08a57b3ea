//! Rendering without a cluster: the flags for what templates draw from, which are the time and what is random, and the
//! trial of all templates of a package, as its plans would render them.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::{digest, rand};
use clap::Args;
use interlock_kudo::engine::seed::{Seed, SeedKey};
use interlock_kudo::engine::trial;
use interlock_kudo::engine::trial::{TrialFindings, TrialLimits};
use interlock_kudo::package::Package;
use jiff::Timestamp;

use crate::cli::common::error::CliError;
use crate::cli::common::flags::duration;
use crate::runtime::pool::Deadline;

/// Longest time of a processor that the templates of one task may take, as in a run.
const OF_TASK: Duration = Duration::from_secs(2);
/// Longest time of a processor that all templates with all values may take.
const OF_ALL: Duration = Duration::from_secs(20);

/// The time, the seed, and the time limit of a rendering.
#[derive(Args, Debug)]
pub(in crate::cli) struct GeneratorFlags {
    /// Any text, from which passwords, keys and uuids are computed: the same text gives the same values. By
    /// default they differ each time.
    #[arg(long, value_name = "TEXT")]
    seed: Option<String>,
    /// Value of `now`, such as 2026-11-25T21:00:00Z; by default the current time.
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
    /// Longest time of a processor for rendering the templates of one task.
    #[arg(long, env = "INTERLOCK_RENDER_LIMIT", default_value = "2s", value_parser = duration)]
    render_limit: Duration,
}

impl GeneratorFlags {
    /// The key of this seed, or a random one.
    pub(in crate::cli) fn key(&self) -> Result<SeedKey, CliError> {
        let mut key = [0; 32];
        match &self.seed {
            Some(text) => key.copy_from_slice(digest::digest(&digest::SHA256, text.as_bytes()).as_ref()),
            None => rand::fill(&mut key).map_err(|_| {
                CliError::refused("the system has no random bytes")
                    .next("give a seed: `--seed TEXT`, of which the passwords and keys follow")
            })?,
        }
        Ok(SeedKey(key))
    }

    /// What `now` is.
    pub(in crate::cli) fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(Timestamp::now)
    }

    /// Interrupts what takes too long, as in a run.
    pub(in crate::cli) fn deadline(&self) -> Deadline {
        Deadline::alone(self.render_limit)
    }
}

/// What fails in the templates of a package, and what nothing uses.
pub(in crate::cli) fn findings(package: &Package) -> TrialFindings {
    let keys = Arc::default();
    // Nothing of it is kept: two calls say the same.
    let seed = Seed { key: &SeedKey([0; 32]), started: Timestamp::UNIX_EPOCH, keys: &keys };
    let (task, all) = (Deadline::alone(OF_TASK), Deadline::alone(OF_ALL));
    trial::findings(package, seed, TrialLimits { task: &task, all: &all })
}
