//! The rules, one subject a file.

use super::RuleContext;
use super::request::{Request, RequestedObject};
use super::verdict::Verdict;

mod flavor_source;
mod gateway;
mod instance;
mod limits;
mod operator_version;
mod status;

/// Decides on a request of anybody but the bookkeeping user.
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

/// Puts back what is Interlock's own, where no rule can be asked.
pub(super) fn restore(request: &Request<'_>, context: &RuleContext<'_>) -> Verdict {
    match &request.subject {
        RequestedObject::Instance(operation) => instance::restore(request, operation, context),
        _ => Verdict::allow(),
    }
}
