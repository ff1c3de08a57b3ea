//! Glue, one folder a capability: event -> facts -> pure decision -> effects.

pub mod instance;
pub mod observe;
