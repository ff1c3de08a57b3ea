//! A review as one of the requests that rules handle: by resource and operation, with everything that
//! the operation needs.

use super::denial::{Code, Denial};
use super::review::{Review, ReviewKind, ReviewObject};
use crate::api::kong;
use crate::api::meta;
use crate::api::object::Gvk;
use crate::api::rule::Rule;
use crate::kinds::data_plane::flavor::gateway_ref::GatewayKind;
use crate::kinds::data_plane::flavor::sources::SourceKind;

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
    /// The requested object and operation.
    pub subject: RequestedObject<'a>,
}

/// The requested object and operation, by kind.
#[derive(Debug)]
pub enum RequestedObject<'a> {
    /// An Instance.
    Instance(Operation<'a>),
    /// `status` of an Instance.
    InstanceStatus(ObjectChange<'a>),
    /// An OperatorVersion.
    OperatorVersion(Operation<'a>),
    /// A DataPlane, or a Deployment that runs Kong.
    Gateway(GatewayKind, Operation<'a>),
    /// A ConfigMap or Secret that flavors may come from.
    FlavorSource(SourceKind, Operation<'a>),
    /// An unrestricted kind or operation.
    Free,
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

impl<'a> Request<'a> {
    /// The request of a review, or a denial of a malformed one.
    pub fn read(review: &'a Review<'a>) -> Result<Self, Box<Denial>> {
        let subject = subject(review)?;
        let metadata = match &subject {
            RequestedObject::Instance(operation)
            | RequestedObject::OperatorVersion(operation)
            | RequestedObject::Gateway(_, operation)
            | RequestedObject::FlavorSource(_, operation) => match operation {
                Operation::Create(object) | Operation::Delete(object) => Some(&object.metadata),
                Operation::Update(change) => Some(&change.old.metadata),
            },
            RequestedObject::InstanceStatus(change) => Some(&change.old.metadata),
            RequestedObject::Free => None,
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

/// The kinds that the rules handle.
#[derive(Clone, Copy)]
enum Known {
    Instance,
    OperatorVersion,
    Operator,
    Gateway(GatewayKind),
    FlavorSource(SourceKind),
}

/// Group, version and kind of the objects that the rules handle.
const KINDS: [(&str, &str, &str, Known); 7] = [
    (meta::KUDO_GROUP, meta::KUDO_VERSION, "Instance", Known::Instance),
    (meta::KUDO_GROUP, meta::KUDO_VERSION, "OperatorVersion", Known::OperatorVersion),
    (meta::KUDO_GROUP, meta::KUDO_VERSION, "Operator", Known::Operator),
    (kong::GROUP, kong::VERSION, "DataPlane", Known::Gateway(GatewayKind::DataPlane)),
    ("apps", "v1", "Deployment", Known::Gateway(GatewayKind::Deployment)),
    ("", "v1", "ConfigMap", Known::FlavorSource(SourceKind::ConfigMap)),
    ("", "v1", "Secret", Known::FlavorSource(SourceKind::Secret)),
];

/// The kinds that the rules handle; requests for other kinds are denied.
pub fn kinds() -> impl Iterator<Item = Gvk> {
    KINDS.iter().map(|(group, version, kind, _)| Gvk {
        group: (*group).to_owned(),
        version: (*version).to_owned(),
        kind: (*kind).to_owned(),
    })
}

/// The name of a kind that the rules handle, as a constant.
pub fn kind_name(kind: &str) -> Option<&'static str> {
    KINDS.iter().map(|(_, _, name, _)| *name).find(|name| *name == kind)
}

fn known(kind: &ReviewKind<'_>) -> Option<Known> {
    let (group, version, kind) = (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str());
    KINDS.iter().find(|(g, v, k, _)| (*g, *v, *k) == (group, version, kind)).map(|(.., known)| *known)
}

fn subject<'a>(review: &'a Review<'a>) -> Result<RequestedObject<'a>, Box<Denial>> {
    let sub_resource = review.sub_resource.as_deref().unwrap_or_default();
    match (known(&review.kind), sub_resource) {
        // Of its subresources only `scale` changes a spec, and it changes no flavor.
        (Some(Known::Gateway(gateway)), "") => Ok(RequestedObject::Gateway(gateway, operation(review)?)),
        (Some(Known::FlavorSource(source)), _) => {
            Ok(RequestedObject::FlavorSource(source, operation(review)?))
        }
        (Some(Known::Instance), "") => Ok(RequestedObject::Instance(operation(review)?)),
        (Some(Known::Instance), "status") => match operation(review)? {
            Operation::Update(change) => Ok(RequestedObject::InstanceStatus(change)),
            _ => Err(unknown("the status of an Instance can only be updated".to_owned())),
        },
        (Some(Known::OperatorVersion), "") => Ok(RequestedObject::OperatorVersion(operation(review)?)),
        (Some(Known::OperatorVersion), "status") | (Some(Known::Operator), "" | "status") => {
            Ok(RequestedObject::Free)
        }
        _ => Err(unknown(not_known(&review.kind, sub_resource))),
    }
}

/// The message about a kind or subresource that no rule handles.
fn not_known(kind: &ReviewKind<'_>, sub_resource: &str) -> String {
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

fn unknown(sentence: String) -> Box<Denial> {
    Box::new(
        Denial::forbidden(Rule::RequestUnknown, sentence)
            .next("compare the rules of the webhook configuration with `interlock render webhooks`"),
    )
}

fn incomplete(operation: &str, missing: &str) -> Box<Denial> {
    Box::new(Denial {
        code: Code::BadRequest,
        ..Denial::forbidden(Rule::RequestUnknown, format!("the review of a {operation} has no {missing}"))
            .next(format!(
                "send request.{missing} as the API server does; `interlock check` judges objects without a review"
            ))
    })
}
