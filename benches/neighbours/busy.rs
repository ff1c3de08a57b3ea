//! Which processes the machine was busy with: the load, the API server and what is measured share it.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use crate::support::process::Used;

/// Clock ticks a second.
const TICKS: f64 = 100.0;

/// Processor time of all processes, by name, up to now.
pub struct Busy(Instant, BTreeMap<String, u64>);

impl Busy {
    pub fn now() -> Self {
        let mut used = BTreeMap::new();
        let entries = fs::read_dir("/proc").expect("Linux").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        for process in pids.filter_map(Used::by) {
            *used.entry(process.name).or_default() += process.ticks;
        }
        Self(Instant::now(), used)
    }

    /// Processors that each name has kept busy since `before`, where that is more than a hundredth.
    pub fn since(&self, before: &Self) -> String {
        let seconds = self.0.duration_since(before.0).as_secs_f64();
        let processors = |name: &str, ticks: u64| {
            (ticks - before.1.get(name).copied().unwrap_or_default().min(ticks)) as f64 / TICKS / seconds
        };
        let all = self.1.iter().map(|(name, ticks)| (name, processors(name, *ticks)));
        let busy = all.filter(|(_, part)| *part > 0.01);
        busy.map(|(name, part)| format!("{name} {part:.2}")).collect::<Vec<_>>().join(", ")
    }
}
