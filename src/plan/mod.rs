//! KUDO's plan engine as a pure room: what a package means, what a change triggers, how a run
//! goes on, and what an edit that admission never saw leads to. No client, no clock.

pub mod advance;
pub mod apply;
pub mod basis;
pub mod bench;
pub mod check;
pub mod claims;
pub mod delete;
pub mod drift;
pub mod enhance;
pub mod errors;
pub mod health;
pub mod history;
pub mod judge;
pub mod keep;
pub mod kinds;
pub mod lock;
pub mod merge;
pub mod next;
pub mod number;
pub mod objection;
pub mod observe;
pub mod package;
pub mod packaged;
pub mod params;
pub mod progress;
pub mod render;
pub mod rendered;
pub mod run;
pub mod state;
pub mod task;
pub mod task_kind;
pub mod trigger;
pub mod uid;
pub mod values;
pub mod verb;
