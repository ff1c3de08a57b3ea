//! The rules, one resource per file.

use crate::admission::RuleContext;
use crate::admission::decision::Verdict;
use crate::admission::request::{Request, RequestedObject};

/// Decides on a request of any user but the bookkeeping user.
pub(crate) fn judge(request: &Request<'_>, context: &RuleContext<'_>) -> Verdict {
    match &request.subject {
        RequestedObject::Instance(operation) => super::instance::rules::judge(request, operation, context),
        RequestedObject::InstanceStatus(change) => super::instance::rules::status::judge(*change),
        RequestedObject::OperatorVersion(operation) => {
            super::operator_version::rules::judge(request, operation, context)
        }
        RequestedObject::Gateway(kind, operation) => {
            super::data_plane::rules::judge(*kind, request, operation, context)
        }
        RequestedObject::FlavorSource(kind, operation) => {
            super::flavor_source::rules::judge(*kind, request, operation, context)
        }
        RequestedObject::Free => Verdict::allow(),
    }
}

/// Restores the fields that Interlock owns, when no rule can be evaluated.
pub(crate) fn restore(request: &Request<'_>, context: &RuleContext<'_>) -> Verdict {
    match &request.subject {
        RequestedObject::Instance(operation) => super::instance::rules::restore(request, operation, context),
        _ => Verdict::allow(),
    }
}
