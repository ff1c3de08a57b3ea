//! Plan requests: `VERB/RUN-UID/NONCE` in an annotation, with a reason in another one.
//!
//! A request applies once, to the run that it names. An abort is over when its run has ended, a pause or
//! resume when the status records its nonce, and a retry, adoption or restart runs under a uid that is a function of the
//! request, so that any replica that finds the request finds its result, too.

mod objection;
mod request;
mod resolution;
mod runs;
mod verb;

pub use objection::{RequestObjection, RequestPreconditions, validate};
pub use request::{NONCE, PendingRequest, PlanRequest, REASON_LIMIT, RUN_LIMIT, RequestError, check_reason};
pub use resolution::{RequestResolution, resolve};
pub use runs::{RunState, Runs};
pub use verb::PlanVerb;

#[cfg(test)]
mod tests;
