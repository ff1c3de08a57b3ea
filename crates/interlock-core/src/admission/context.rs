//! What a decision rests on beside the request.

use super::door::{CacheWait, Config, Door};
use super::view::Lister;

/// Everything beside the request that a decision rests on.
#[derive(Clone, Copy)]
pub struct RuleContext<'a> {
    /// The webhook that was called.
    pub door: Door,
    /// Cross-object facts.
    pub view: &'a dyn Lister,
    /// What the process was started with.
    pub config: &'a Config,
    /// Whether to wait for an OperatorVersion.
    pub patience: CacheWait,
    /// Why the cache may lack other objects, where it may: rules that read them only warn.
    pub partial: Option<&'a str>,
}
