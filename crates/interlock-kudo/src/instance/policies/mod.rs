//! The rules about Instances that CEL can express.
//!
//! They see the object after the webhook's mutation, under the user's identity, so the webhook's own changes
//! must pass too: `planExecution` as `{plan, uid, NEVER_RUN}`.

mod instance_policy;
mod lock_in_cel;
mod plan_request;
mod status;
mod version_reference;
mod writes;

pub use plan_request::VERBS;
pub use status::STATUS;
pub use version_reference::VERSIONS;
pub use writes::{FREEZE, LOCK, PLAN_EXECUTION};

use interlock_core::kinds::descriptor::Policy;

pub const POLICIES: &[Policy] = &[
    writes::freeze,
    writes::lock,
    writes::plan_execution,
    status::status,
    plan_request::verbs,
    version_reference::versions,
];
