//! Flags for what templates draw from: the time, and what is random.

use std::time::Duration;

use aws_lc_rs::{digest, rand};
use clap::Args;
use interlock_kudo::engine::seed::SeedKey;
use jiff::Timestamp;

use crate::cli::common::error::CliError;
use crate::cli::common::flags::duration;
use crate::runtime::pool::Deadline;

/// The time, the seed, and the time limit of a rendering.
#[derive(Args, Debug)]
pub(in crate::cli) struct GeneratorFlags {
    /// Any text, from which passwords, keys and uuids follow: the same text renders the same ones. By default they
    /// are others each time.
    #[arg(long, value_name = "TEXT")]
    seed: Option<String>,
    /// What `now` is, as 2026-11-25T21:00:00Z; by default the time.
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
    /// Longest time of a processor that rendering the templates of one task may take.
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
