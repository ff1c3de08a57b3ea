//! The Instance controller.
pub mod context;
pub mod pass;
pub mod record;
pub mod spec_secret;
pub mod subject;
pub mod writes;
