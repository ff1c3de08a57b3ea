//! The rules, one subject a file.

use super::Context;
use super::request::{Request, Subject};
use super::verdict::Verdict;

mod flavor_source;
mod gateway;
mod instance;
mod limits;
mod operator_version;
mod status;

/// Decides on a request of anybody but the bookkeeping user.
pub(super) fn judge(request: &Request<'_>, context: &Context<'_>) -> Verdict {
    match &request.subject {
        Subject::Instance(operation) => instance::judge(request, operation, context),
        Subject::InstanceStatus(change) => status::judge(*change),
        Subject::OperatorVersion(operation) => operator_version::judge(request, operation, context),
        Subject::Gateway(kind, operation) => gateway::judge(*kind, request, operation, context),
        Subject::FlavorSource(kind, operation) => flavor_source::judge(*kind, request, operation, context),
        Subject::Free => Verdict::allow(),
    }
}

/// Puts back what is Interlock's own, where no rule can be asked.
pub(super) fn restore(request: &Request<'_>, context: &Context<'_>) -> Verdict {
    match &request.subject {
        Subject::Instance(operation) => instance::restore(request, operation, context),
        _ => Verdict::allow(),
    }
}
