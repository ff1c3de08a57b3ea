//! Gateway API, `Ingress` and `Service`: where traffic enters, and where it goes.

pub mod gateway;
pub mod ingress;
pub mod route;
pub mod service;
