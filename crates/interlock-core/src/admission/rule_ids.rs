//! The rules about requests of every kind.

use crate::api::rule::rules;

rules! {
    /// The request cannot be evaluated.
    REQUEST_UNKNOWN = "request-unknown" in Requests;
}
