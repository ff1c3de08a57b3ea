//! The rules, one subject a file.

use super::Context;
use super::request::{Request, Subject};
use super::verdict::Verdict;

mod status;

/// Decides on a request of anybody but the bookkeeping user.
pub(super) fn judge(request: &Request<'_>, _context: &Context<'_>) -> Verdict {
    match &request.subject {
        Subject::InstanceStatus(change) => status::judge(*change),
        _ => Verdict::allow(),
    }
}
