//! A change of an Instance: what it leads to, for the webhook and the reconciler alike.

pub mod baseline;
pub mod conditions;
pub mod creation;
pub mod drift;
pub mod history;
pub mod lock;
pub mod next;
pub mod plan_request;
pub mod readiness;
pub mod settled;
pub mod spec_change;
pub mod uid;
pub mod validate;
pub mod wake_ups;
