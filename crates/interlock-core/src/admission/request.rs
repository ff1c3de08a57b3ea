//! A review as a request: the operation with everything that it needs.

use super::denial::{Code, Denial};
use super::review::{Review, ReviewMetadata, ReviewObject};
use crate::admission::ids::REQUEST_UNKNOWN;

/// A request that the rules handle.
#[derive(Debug)]
pub struct Request<'a> {
    /// Namespace of the object.
    pub namespace: &'a str,
    /// Name of the object, empty in the mutating call of a CREATE with generateName.
    pub name: &'a str,
    /// The requesting user.
    pub user: &'a str,
    /// Upper bound of the bytes of the object as JSON.
    pub size: usize,
    /// The operation on the object, or on a subresource of it.
    pub operation: Operation<'a>,
}

/// The operation on an object.
#[derive(Debug)]
pub enum Operation<'a> {
    /// The object is created.
    Create(&'a ReviewObject<'a>),
    /// The object is updated.
    Update(ObjectChange<'a>),
    /// The object is deleted.
    Delete(&'a ReviewObject<'a>),
}

/// An object before and after.
#[derive(Clone, Copy, Debug)]
pub struct ObjectChange<'a> {
    /// After.
    pub object: &'a ReviewObject<'a>,
    /// Before.
    pub old: &'a ReviewObject<'a>,
}

impl<'a> Operation<'a> {
    /// Uid of the object as stored; empty for one that is created.
    pub fn uid(&self) -> &'a str {
        match self {
            Self::Create(_) => "",
            Self::Update(_) | Self::Delete(_) => self.metadata().uid.as_deref().unwrap_or_default(),
        }
    }

    /// Metadata of the object as stored, or as it would be created.
    fn metadata(&self) -> &'a ReviewMetadata<'a> {
        match self {
            Self::Create(object) | Self::Delete(object) => &object.metadata,
            Self::Update(change) => &change.old.metadata,
        }
    }
}

impl<'a> Request<'a> {
    /// The request of a review about a guarded kind, or a denial of a malformed one.
    pub fn read(review: &'a Review<'a>) -> Result<Self, Box<Denial>> {
        let operation = operation(review)?;
        let metadata = operation.metadata();
        let name = metadata.name.as_deref().or(review.name.as_deref());
        let namespace = review.namespace.as_deref().or(metadata.namespace.as_deref());
        Ok(Self {
            namespace: namespace.unwrap_or_default(),
            name: name.unwrap_or_default(),
            size: review.object_size,
            user: review.user_info.username.as_deref().unwrap_or_default(),
            operation,
        })
    }
}

fn operation<'a>(review: &'a Review<'a>) -> Result<Operation<'a>, Box<Denial>> {
    let object = review.object.as_ref();
    let old = review.old_object.as_ref();
    match (review.operation.as_str(), object, old) {
        ("CREATE", Some(object), _) => Ok(Operation::Create(object)),
        ("UPDATE", Some(object), Some(old)) => Ok(Operation::Update(ObjectChange { object, old })),
        ("DELETE", _, Some(old)) => Ok(Operation::Delete(old)),
        ("CREATE", None, _) => Err(incomplete("CREATE", "object")),
        ("UPDATE", None, _) => Err(incomplete("UPDATE", "object")),
        ("UPDATE", _, None) => Err(incomplete("UPDATE", "oldObject")),
        ("DELETE", _, None) => Err(incomplete("DELETE", "oldObject")),
        (other, ..) => Err(unknown(format!("operation {other:?} is not known here"))),
    }
}

/// The denial of a request that no rule handles.
pub fn unknown(sentence: String) -> Box<Denial> {
    Box::new(Denial::forbidden(REQUEST_UNKNOWN, sentence).next(
        "compare the rules of `kubectl get validatingwebhookconfigurations -o yaml` with `interlock render \
                 webhooks`",
    ))
}

fn incomplete(operation: &str, missing: &str) -> Box<Denial> {
    Box::new(Denial {
        code: Code::BadRequest,
        ..Denial::forbidden(REQUEST_UNKNOWN, format!("the review of a {operation} has no {missing}"))
            .next(format!(
                "send request.{missing} as the API server does; `kubectl apply --dry-run=server` and `interlock check` judge \
                 objects without a review"
            ))
    })
}
