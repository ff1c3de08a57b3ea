//! ConfigMaps and Secrets that the router flavors of gateways come from.

pub mod rules;
