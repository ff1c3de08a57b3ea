//! Which processes the machine was busy with: the load, the API server and what is measured share it.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

/// Clock ticks a second (`USER_HZ`), which Linux has fixed.
const TICKS: f64 = 100.0;

/// Processor time of all processes, by name, up to now.
pub struct Busy(Instant, BTreeMap<String, u64>);

impl Busy {
    pub fn now() -> Self {
        let mut used = BTreeMap::new();
        for process in fs::read_dir("/proc").expect("Linux").flatten() {
            // One that has ended meanwhile has none.
            let Ok(stat) = fs::read_to_string(process.path().join("stat")) else { continue };
            let Some((name, rest)) = stat.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')) else {
                continue;
            };
            // After the name: utime and stime are the 12th and 13th.
            let ticks = rest.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok());
            *used.entry(name.to_owned()).or_default() += ticks.sum::<u64>();
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
