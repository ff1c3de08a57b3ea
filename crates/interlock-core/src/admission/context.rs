//! The inputs of a decision beside the request.

use jiff::Timestamp;

use super::endpoint::{CacheWait, Config, WebhookEndpoint};
use super::lister::Lister;

/// All inputs of a decision beside the request.
#[derive(Clone, Copy)]
pub struct RuleContext<'a> {
    /// The webhook that was called.
    pub endpoint: WebhookEndpoint,
    /// Facts about other objects.
    pub lister: &'a dyn Lister,
    /// The settings that the process was started with.
    pub config: &'a Config,
    /// When the request is decided on; `None` where nothing tells, so that texts name times, not ages.
    pub now: Option<Timestamp>,
    /// Whether to wait for an OperatorVersion.
    pub wait: CacheWait,
    /// Why the cache may lack other objects, if so: rules that read them only warn.
    pub partial: Option<&'a str>,
}
