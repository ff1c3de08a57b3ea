//! What the chart comes to, with the options.

use serde_json::Value;

use super::{InstallOptions, Part, objects};

mod chart;
mod monitoring;
mod rights;
mod workload;

fn of(part: Part, options: &InstallOptions) -> Vec<Value> {
    objects(part, options).unwrap()
}

/// What the options add to the objects of the default ones.
fn added(part: Part, options: &InstallOptions) -> Vec<Value> {
    let plain = of(part, &InstallOptions::default());
    of(part, options).into_iter().filter(|object| !plain.contains(object)).collect()
}
