//! Rollouts of DataPlanes: the children of the live side from the last-applied spec, those of the preview from the
//! spec, and the promotion between them.

pub mod added;
pub mod certificate;
pub mod changes;
pub mod children;
pub mod commit;
pub mod drift;
pub mod flavor_change;
pub mod follow;
pub mod gate_report;
pub mod gates;
pub mod heal_cause;
pub mod history;
pub mod housekeeping;
pub mod kept;
pub mod live_record;
pub mod object_side;
pub mod phase;
pub mod pod_reports;
pub mod promotion;
pub mod protect_live;
pub mod reconcile;
pub mod refused_child;
pub mod report;
pub mod route_names;
pub mod service_selector;
pub mod side;
pub mod sourced_flavor;
pub mod staged;
pub mod status;
pub mod summary;
pub mod take_over;
pub mod totals;
mod unguarded;
pub mod verbs;
pub mod view;
pub mod wanted;
pub mod watched;
pub mod watched_pods;

pub use promotion::staged_hash;

#[cfg(test)]
mod tests;
