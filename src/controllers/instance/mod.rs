//! The Instance controller.
pub mod subject;
