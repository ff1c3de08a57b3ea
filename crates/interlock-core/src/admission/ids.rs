//! The rules about requests of every kind.

use crate::api::rule::rules;

rules! {
    /// The request cannot be evaluated.
    REQUEST_UNKNOWN = "request-unknown" in Requests;
    /// Only Interlock writes the last-applied spec.
    STAMP_MISMATCH = "stamp-mismatch" in Lock;
}
