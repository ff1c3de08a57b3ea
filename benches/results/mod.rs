//! What the benchmarks found: a table for people, `target/bench/results.json` for machines.
//!
//! A missed goal is said plainly and fails nothing: numbers depend on the machine.

#![allow(dead_code, reason = "no benchmark needs all of it")]

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// One number beside another.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was measured, with its unit.
    pub name: String,
    /// Our number.
    pub ours: f64,
    /// The number beside it; absent where the goal is absolute.
    pub other: Option<f64>,
    /// What the other number is of.
    pub of: String,
    /// Ours over the other, the median over rounds.
    pub ratio: Option<f64>,
    /// What is to be reached; absent where a row only explains another.
    pub goal: Option<Goal>,
    /// Whether it is reached.
    pub holds: Option<bool>,
}

/// A bound for the ratio, or for our number where there is no ratio.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

impl Goal {
    fn holds(self, found: f64) -> bool {
        match self {
            Self::AtLeast(bound) => found >= bound,
            Self::AtMost(bound) => found <= bound,
        }
    }
}

impl Serialize for Goal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(bound) => write!(f, ">= {bound}"),
            Self::AtMost(bound) => write!(f, "<= {bound}"),
        }
    }
}

impl Row {
    /// A number beside another one; the ratio is judged.
    pub fn beside(name: &str, ours: f64, (of, other): (&str, f64), ratio: f64, goal: Option<Goal>) -> Self {
        let holds = goal.map(|goal| goal.holds(ratio));
        Self {
            name: name.to_owned(),
            ours,
            other: Some(other),
            of: of.to_owned(),
            ratio: Some(ratio),
            goal,
            holds,
        }
    }

    /// A count beside another one, which may be none at all; neither is judged.
    pub fn counted(name: &str, ours: f64, (of, other): (&str, f64)) -> Self {
        let row = Self::beside(name, ours, (of, other), ours / other, None);
        Self { ratio: row.ratio.filter(|ratio| ratio.is_finite()), ..row }
    }

    /// A number that is judged alone.
    pub fn alone(name: &str, ours: f64, goal: Option<Goal>) -> Self {
        let holds = goal.map(|goal| goal.holds(ours));
        Self { name: name.to_owned(), ours, other: None, of: String::new(), ratio: None, goal, holds }
    }
}

/// The middle one; of two, the lower.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

/// Prints the rows, and puts them into the file in place of what stood there under their names.
pub fn report(rows: &[Row]) {
    print(rows);
    let path = file();
    let mut all: Vec<Value> =
        std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let same = |old: &Value, new: &Row| old["name"] == new.name && old["of"] == new.of;
    all.retain(|old| !rows.iter().any(|new| same(old, new)));
    all.extend(rows.iter().map(|row| json!(row)));
    let folder = path.parent().expect("a folder");
    std::fs::create_dir_all(folder).expect("a folder for the results");
    std::fs::write(&path, format!("{:#}\n", Value::Array(all))).expect("results written");
    println!("\nwritten to {}", path.display());
}

fn file() -> PathBuf {
    folder().join("results.json")
}

/// What benchmarks write, `target/bench`: they start where the project is, as cargo and make do it.
pub fn folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Path::new(&target).join("bench")
}

fn print(rows: &[Row]) {
    let mut table = vec![["", "ours", "other", "ratio", "goal", "holds"].map(str::to_owned)];
    for row in rows {
        let name =
            if row.of.is_empty() { row.name.clone() } else { format!("{}, beside {}", row.name, row.of) };
        let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        let holds = match row.holds {
            Some(true) => "yes",
            Some(false) => "MISSED",
            None => "-",
        };
        let goal = row.goal.map_or_else(|| "-".to_owned(), |goal| goal.to_string());
        table.push([name, number(row.ours), cell(row.other), cell(row.ratio), goal, holds.to_owned()]);
    }
    let widths: Vec<usize> =
        (0..6).map(|column| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)).collect();
    println!();
    for row in table {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        println!("{}", cells.collect::<Vec<_>>().join("  "));
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
