//! The rules, one resource per file.

use super::RuleContext;
use super::request::{Request, RequestedObject};
use super::verdict::Verdict;

mod flavor_source;
mod gateway;
mod instance;
mod limits;
mod operator_version;
mod status;

/// Decides on a request of any user but the bookkeeping user.
pub(super) fn judge(request: &Request<'_>, context: &RuleContext<'_>) -> Verdict {
    match &request.subject {
        RequestedObject::Instance(operation) => instance::judge(request, operation, context),
        RequestedObject::InstanceStatus(change) => status::judge(*change),
        RequestedObject::OperatorVersion(operation) => operator_version::judge(request, operation, context),
        RequestedObject::Gateway(kind, operation) => gateway::judge(*kind, request, operation, context),
        RequestedObject::FlavorSource(kind, operation) => {
            flavor_source::judge(*kind, request, operation, context)
        }
        RequestedObject::Free => Verdict::allow(),
    }
}

/// Restores the fields that Interlock owns, when no rule can be evaluated.
pub(super) fn restore(request: &Request<'_>, context: &RuleContext<'_>) -> Verdict {
    match &request.subject {
        RequestedObject::Instance(operation) => instance::restore(request, operation, context),
        _ => Verdict::allow(),
    }
}
