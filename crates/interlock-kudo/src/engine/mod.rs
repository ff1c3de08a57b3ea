//! KUDO's plan engine as pure functions: packages, triggers, the progress of runs, and edits that
//! bypassed admission. No client, no clock.

pub mod rendered_kinds;

pub mod adoption;
pub mod advance;
pub mod api_warnings;
mod children;
pub mod cluster_scoped;
pub mod dependencies_hash;
pub mod enhance;
pub mod errors;
pub mod lookup;
pub mod manifests;
pub mod merge;
pub mod ownership;
pub mod pipes;
pub mod pod_references;
pub mod progress;
mod prune;
pub mod removed_apis;
pub mod render;
pub mod render_cache;
pub mod run;
pub mod seed;
pub mod sharing;
pub mod state;
pub mod tasks;
pub mod trial;
pub mod validate;
