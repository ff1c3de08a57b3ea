//! A review as one of the requests that rules are written for: per subject and per operation,
//! with everything that the operation needs.

use super::refusal::{Code, Refusal};
use super::review::{Kind, Object, Review};
use crate::api::kong;
use crate::api::meta;
use crate::api::object::Gvk;
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

/// What rules know of a kind.
#[derive(Clone, Copy)]
enum Known {
    Instance,
    OperatorVersion,
    Operator,
    Gateway(SubjectKind),
    FlavorSource(SourceKind),
}

/// Group, version and kind of what rules can be asked about.
const KINDS: [(&str, &str, &str, Known); 7] = [
    (meta::KUDO_GROUP, meta::KUDO_VERSION, "Instance", Known::Instance),
    (meta::KUDO_GROUP, meta::KUDO_VERSION, "OperatorVersion", Known::OperatorVersion),
    (meta::KUDO_GROUP, meta::KUDO_VERSION, "Operator", Known::Operator),
    (kong::GROUP, kong::VERSION, "DataPlane", Known::Gateway(SubjectKind::DataPlane)),
    ("apps", "v1", "Deployment", Known::Gateway(SubjectKind::Deployment)),
    ("", "v1", "ConfigMap", Known::FlavorSource(SourceKind::ConfigMap)),
    ("", "v1", "Secret", Known::FlavorSource(SourceKind::Secret)),
];

/// The kinds that rules can be asked about; a request about another one is refused.
pub fn kinds() -> impl Iterator<Item = Gvk> {
    KINDS.iter().map(|(group, version, kind, _)| Gvk {
        group: (*group).to_owned(),
        version: (*version).to_owned(),
        kind: (*kind).to_owned(),
    })
}

/// The name of a kind that rules can be asked about, as a constant.
pub fn kind_name(kind: &str) -> Option<&'static str> {
    KINDS.iter().map(|(_, _, name, _)| *name).find(|name| *name == kind)
}

fn known(kind: &Kind<'_>) -> Option<Known> {
    let (group, version, kind) = (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str());
    KINDS.iter().find(|(g, v, k, _)| (*g, *v, *k) == (group, version, kind)).map(|(.., known)| *known)
}

fn subject<'a>(review: &'a Review<'a>) -> Result<Subject<'a>, Box<Refusal>> {
    let sub_resource = review.sub_resource.as_deref().unwrap_or_default();
    match (known(&review.kind), sub_resource) {
        // Of its subresources only `scale` changes a spec, and that no flavor.
        (Some(Known::Gateway(gateway)), "") => Ok(Subject::Gateway(gateway, operation(review)?)),
        (Some(Known::FlavorSource(source)), _) => Ok(Subject::FlavorSource(source, operation(review)?)),
        (Some(Known::Instance), "") => Ok(Subject::Instance(operation(review)?)),
        (Some(Known::Instance), "status") => match operation(review)? {
            Operation::Update(change) => Ok(Subject::InstanceStatus(change)),
            _ => Err(unknown("the status of an Instance can only be updated".to_owned())),
        },
        (Some(Known::OperatorVersion), "") => Ok(Subject::OperatorVersion(operation(review)?)),
        (Some(Known::OperatorVersion), "status") | (Some(Known::Operator), "" | "status") => {
            Ok(Subject::Free)
        }
        _ => Err(unknown(not_known(&review.kind, sub_resource))),
    }
}

/// What is said of a kind or subresource that no rule knows.
fn not_known(kind: &Kind<'_>, sub_resource: &str) -> String {
    let (group, version, kind) = (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str());
    if (group, version) != (meta::KUDO_GROUP, meta::KUDO_VERSION) {
        return format!(
            "this webhook decides on {}, on gateways and on sources of their flavors, not on {:?}",
            meta::KUDO_API_VERSION,
            format!("{group}/{version}, Kind={kind}")
        );
    }
    match sub_resource {
        "" => format!("kind {kind:?} is not known here"),
        sub => format!("subresource {sub:?} of kind {kind:?} is not known here"),
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
