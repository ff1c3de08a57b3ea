//! A review as one of the requests that rules are written for: per subject and per operation,
//! with everything that the operation needs.

use super::refusal::{Code, Refusal};
use super::review::{Object, Review};
use crate::api::kong;
use crate::api::meta;
use crate::api::rule::Rule;
use crate::rollout::flavor::sources::SourceKind;
use crate::rollout::flavor::subject::SubjectKind;

/// A request that rules can be asked about.
#[derive(Debug)]
pub struct Request<'a> {
    /// Namespace of the object.
    pub namespace: &'a str,
    /// Name of the object, empty in the mutating call of a CREATE with generateName.
    pub name: &'a str,
    /// User who asks.
    pub user: &'a str,
    /// Bytes of the object as JSON, or more.
    pub size: usize,
    /// What is asked.
    pub subject: Subject<'a>,
}

/// What is asked, by kind.
#[derive(Debug)]
pub enum Subject<'a> {
    /// An Instance.
    Instance(Operation<'a>),
    /// `status` of an Instance.
    InstanceStatus(Change<'a>),
    /// An OperatorVersion.
    OperatorVersion(Operation<'a>),
    /// A DataPlane, or a Deployment that runs Kong.
    Gateway(SubjectKind, Operation<'a>),
    /// A ConfigMap or Secret that flavors may come from.
    FlavorSource(SourceKind, Operation<'a>),
    /// A kind or an operation that no rule restricts.
    Free,
}

/// What happens to an object.
#[derive(Debug)]
pub enum Operation<'a> {
    /// It comes to be.
    Create(&'a Object<'a>),
    /// It changes.
    Update(Change<'a>),
    /// It goes.
    Delete(&'a Object<'a>),
}

/// An object before and after.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// After.
    pub object: &'a Object<'a>,
    /// Before.
    pub old: &'a Object<'a>,
}

impl<'a> Request<'a> {
    /// The request of a review, or why there is none.
    pub fn read(review: &'a Review<'a>) -> Result<Self, Box<Refusal>> {
        let subject = subject(review)?;
        let metadata = match &subject {
            Subject::Instance(operation)
            | Subject::OperatorVersion(operation)
            | Subject::Gateway(_, operation)
            | Subject::FlavorSource(_, operation) => match operation {
                Operation::Create(object) | Operation::Delete(object) => Some(&object.metadata),
                Operation::Update(change) => Some(&change.old.metadata),
            },
            Subject::InstanceStatus(change) => Some(&change.old.metadata),
            Subject::Free => None,
        };
        let name = metadata.and_then(|m| m.name.as_deref()).or(review.name.as_deref());
        let namespace = review.namespace.as_deref().or(metadata.and_then(|m| m.namespace.as_deref()));
        Ok(Self {
            namespace: namespace.unwrap_or_default(),
            name: name.unwrap_or_default(),
            size: review.object_size,
            user: review.user_info.username.as_deref().unwrap_or_default(),
            subject,
        })
    }
}

fn subject<'a>(review: &'a Review<'a>) -> Result<Subject<'a>, Box<Refusal>> {
    let kind = &review.kind;
    if let Some(gateway) = gateway(review) {
        return Ok(Subject::Gateway(gateway, operation(review)?));
    }
    if let Some(source) = flavor_source(review) {
        return Ok(Subject::FlavorSource(source, operation(review)?));
    }
    if kind.group.as_str() != meta::KUDO_GROUP || kind.version.as_str() != meta::KUDO_VERSION {
        return Err(unknown(format!(
            "this webhook decides on {}, on gateways and on sources of their flavors, not on {:?}",
            meta::KUDO_API_VERSION,
            format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind)
        )));
    }
    match (kind.kind.as_str(), review.sub_resource.as_deref().unwrap_or_default()) {
        ("Instance", "") => Ok(Subject::Instance(operation(review)?)),
        ("Instance", "status") => match operation(review)? {
            Operation::Update(change) => Ok(Subject::InstanceStatus(change)),
            _ => Err(unknown("the status of an Instance can only be updated".to_owned())),
        },
        ("OperatorVersion", "") => Ok(Subject::OperatorVersion(operation(review)?)),
        ("OperatorVersion", "status") | ("Operator", "" | "status") => Ok(Subject::Free),
        (kind, "") => Err(unknown(format!("kind {kind:?} is not known here"))),
        (kind, sub) => Err(unknown(format!("subresource {sub:?} of kind {kind:?} is not known here"))),
    }
}

/// The object itself; of subresources only `scale` changes a spec, and that no flavor.
fn gateway(review: &Review<'_>) -> Option<SubjectKind> {
    let kind = &review.kind;
    let sub_resource = review.sub_resource.as_deref().unwrap_or_default();
    match (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str(), sub_resource) {
        (kong::GROUP, kong::VERSION, "DataPlane", "") => Some(SubjectKind::DataPlane),
        ("apps", "v1", "Deployment", "") => Some(SubjectKind::Deployment),
        _ => None,
    }
}

fn flavor_source(review: &Review<'_>) -> Option<SourceKind> {
    let kind = &review.kind;
    match (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str()) {
        ("", "v1", "ConfigMap") => Some(SourceKind::ConfigMap),
        ("", "v1", "Secret") => Some(SourceKind::Secret),
        _ => None,
    }
}

fn operation<'a>(review: &'a Review<'a>) -> Result<Operation<'a>, Box<Refusal>> {
    let object = review.object.as_ref();
    let old = review.old_object.as_ref();
    match (review.operation.as_str(), object, old) {
        ("CREATE", Some(object), _) => Ok(Operation::Create(object)),
        ("UPDATE", Some(object), Some(old)) => Ok(Operation::Update(Change { object, old })),
        ("DELETE", _, Some(old)) => Ok(Operation::Delete(old)),
        ("CREATE", None, _) => Err(incomplete("CREATE", "object")),
        ("UPDATE", None, _) => Err(incomplete("UPDATE", "object")),
        ("UPDATE", _, None) => Err(incomplete("UPDATE", "oldObject")),
        ("DELETE", _, None) => Err(incomplete("DELETE", "oldObject")),
        (other, ..) => Err(unknown(format!("operation {other:?} is not known here"))),
    }
}

fn unknown(sentence: String) -> Box<Refusal> {
    Box::new(
        Refusal::forbidden(Rule::RequestUnknown, sentence)
            .next("compare the rules of the webhook configuration with `interlock render webhooks`"),
    )
}

fn incomplete(operation: &str, missing: &str) -> Box<Refusal> {
    Box::new(Refusal {
        code: Code::BadRequest,
        ..Refusal::forbidden(Rule::RequestUnknown, format!("the review of a {operation} has no {missing}"))
            .next(format!(
                "send request.{missing} as the API server does; `interlock check` judges objects without a review"
            ))
    })
}
