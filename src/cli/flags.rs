//! What flags of several commands are made of.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::admission::Freeze;
use crate::api::object::NamespacedName;

/// How strictly a locked Instance is frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FreezeFlag {
    /// No change of the spec while a plan is scheduled or runs.
    Strict,
    /// As KUDO: a change that triggers the running plan restarts it.
    SamePlan,
}

impl From<FreezeFlag> for Freeze {
    fn from(flag: FreezeFlag) -> Self {
        match flag {
            FreezeFlag::Strict => Self::Strict,
            FreezeFlag::SamePlan => Self::SamePlan,
        }
    }
}

/// How long something is waited for at the most.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Limit {
    /// Longest wait.
    #[arg(long, default_value = "5m", value_parser = duration)]
    pub(super) timeout: Duration,
}

/// `1h30m`, `15s`, `500ms`, `90d`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let span: jiff::SignedDuration = match text.strip_suffix('d').map(str::parse::<u32>) {
        Some(Ok(days)) => jiff::SignedDuration::from_hours(i64::from(days) * 24),
        _ => text.parse().map_err(|error| format!("{error}; write it as 15s, 500ms or 90d"))?,
    };
    Duration::try_from(span).map_err(|_| "a duration cannot be negative".to_owned())
}

/// `NAMESPACE/NAME`.
pub(super) fn namespaced_name(text: &str) -> Result<NamespacedName, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(NamespacedName::new(namespace, name))
        }
        _ => Err("write it as NAMESPACE/NAME".to_owned()),
    }
}
