//! Validates objects by the schema of their CustomResourceDefinition, as the Kubernetes API server does,
//! without one.
//!
//! [`Definition::read`] takes a CustomResourceDefinition of `apiextensions.k8s.io/v1`, and
//! [`Definition::validate`] an object of it, and what it was before where it is an update. The answer is the
//! object as the API server would store it (defaults set), the [`FieldError`]s, and the rules that were not
//! evaluated ([`Unevaluated`]): nothing is passed over silently.
//!
//! The order is the API server's: unknown fields as `kubectl apply` reports them (`--validate=strict`), nulls
//! and defaults, metadata, the structural schema, uniqueness of lists, and the CEL rules of
//! `x-kubernetes-validations`, which are asked only where the rest found nothing that blocks them. An update
//! keeps what is wrong already and did not change ("ratcheting").
//!
//! It has no clock, no files and no client. Work is limited: each CEL expression by its size, its nesting and
//! the steps that it could take on the values at hand ([`limits`]), each pattern by its compiled size.

#![deny(missing_docs)]

mod cel;
mod conversion;
mod correlation;
mod cost;
mod defaults;
mod definition;
pub mod expression;
mod field_error;
mod formats;
mod go_text;
pub mod limits;
mod lists;
mod metadata;
mod patterns;
mod rules;
mod schema;
mod structural;
pub mod syntax;
mod unknown;
mod validate;

pub use definition::{Definition, DefinitionError, DefinitionVersion};
pub use field_error::{ErrorKind, FieldError, PathPart, Unevaluated};
pub use validate::Validation;

#[cfg(test)]
mod tests;
