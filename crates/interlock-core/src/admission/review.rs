//! A review as received, borrowed from the body.

use std::borrow::Cow;

use super::size_budget;
use super::size_budget::SizeBudget;
use super::string_map::StringMap;
use crate::api::json::Raw;
use crate::api::text::Text;

/// `request` of a review, reduced to the fields that rules read.
#[derive(Debug, Default)]
pub struct Review<'a> {
    /// Identity of the request, repeated in the response.
    pub uid: Text<'a>,
    /// Kind of the object, after conversion to what the webhook is registered for.
    pub kind: ReviewKind<'a>,
    /// Subresource, absent for the object itself.
    pub sub_resource: Option<Text<'a>>,
    /// Name; absent in the mutating call of a CREATE with generateName, and in deletecollection.
    pub name: Option<Text<'a>>,
    /// Namespace.
    pub namespace: Option<Text<'a>>,
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: Text<'a>,
    /// The requesting user.
    pub user_info: UserInfo<'a>,
    /// The new object.
    pub object: Option<ReviewObject<'a>>,
    /// The old object.
    pub old_object: Option<ReviewObject<'a>>,
    /// Whether the request is a dry run.
    pub dry_run: Option<bool>,
    /// Bytes of `object` as JSON.
    pub object_size: usize,
}

/// Kind of the object of a review.
#[derive(Debug, Default)]
pub struct ReviewKind<'a> {
    /// Group.
    pub group: Text<'a>,
    /// Version.
    pub version: Text<'a>,
    /// Kind.
    pub kind: Text<'a>,
}

/// User of a review.
#[derive(Debug, Default)]
pub struct UserInfo<'a> {
    /// Name of the user.
    pub username: Option<Text<'a>>,
}

/// An object of a review; most of it stays text until a rule reads it.
#[derive(Debug, Default)]
pub struct ReviewObject<'a> {
    /// Metadata, reduced to the fields that rules read.
    pub metadata: ReviewMetadata<'a>,
    /// The spec.
    pub spec: Option<Raw<'a>>,
    /// Its `parameters`, if they map names to strings and the spec differs from that of the object read
    /// before.
    pub parameters: Option<StringMap<'a>>,
    /// The status.
    pub status: Option<Raw<'a>>,
    /// The data of a ConfigMap or Secret.
    pub data: Option<Raw<'a>>,
}

/// Metadata, reduced to the fields that rules read.
#[derive(Debug, Default)]
pub struct ReviewMetadata<'a> {
    /// Name; absent in the mutating call of a CREATE with generateName.
    pub name: Option<Text<'a>>,
    /// Prefix from which the server generates a name.
    pub generate_name: Option<Text<'a>>,
    /// Namespace.
    pub namespace: Option<Text<'a>>,
    /// Identity; on UPDATE only that of `oldObject` counts, as a PUT may leave it out.
    pub uid: Option<Text<'a>>,
    /// Version in etcd.
    pub resource_version: Option<Text<'a>>,
    /// When the object was created.
    pub creation_timestamp: Option<Text<'a>>,
    /// Set when the object is being deleted.
    pub deletion_timestamp: Option<Text<'a>>,
    /// Finalizers.
    pub finalizers: Option<Vec<Text<'a>>>,
    /// Labels; read only for the few kinds that are selected by one.
    pub labels: Option<Raw<'a>>,
    /// Annotations.
    pub annotations: Annotations<'a>,
    /// Counts changes of the spec.
    pub generation: Option<Raw<'a>>,
    /// Managed fields: long, and never read.
    pub managed_fields: Option<Raw<'a>>,
}

/// Annotations: ours as text, of others only the size.
#[derive(Debug, Default)]
pub struct Annotations<'a> {
    /// Whether the object has the map at all.
    pub present: bool,
    /// Whether the map has the key of the last-applied annotation, with any value.
    pub has_stamp: bool,
    /// `interlock.dev/last-applied-spec`, as received.
    pub stamp: Option<Raw<'a>>,
    /// Bytes of `plan.interlock.dev/history` with its key, counted as `others` are; 0 without it.
    pub history: usize,
    /// Bytes of the keys and of the JSON of the values of all others: at least as many as the API
    /// server counts.
    pub others: usize,
    /// Those that rules read ([`super::kind::GuardedKind::annotations`]), as received; in `history` or among the others.
    own: Vec<(&'static str, Raw<'a>)>,
}

impl<'a> Annotations<'a> {
    /// Keeps the value of an annotation that rules read; of two with one key the later counts.
    pub(super) fn keep(&mut self, key: &'static str, value: Raw<'a>) {
        match self.own.iter_mut().find(|(known, _)| *known == key) {
            Some((_, known)) => *known = value,
            None => self.own.push((key, value)),
        }
    }

    /// The value of an annotation that rules read, as received.
    pub fn own(&self, key: &str) -> Option<Raw<'a>> {
        self.own.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    /// The text of an annotation that rules read; `None` if it is no string.
    pub fn own_text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.own(key)?.text().ok().map(|text| text.0)
    }

    /// The size budget for the last-applied annotation in an object of that size.
    pub fn room(&self, size: usize) -> SizeBudget {
        let stamp = self.stamp_json().map_or(0, str::len);
        SizeBudget { annotations: self.others, object: size.saturating_sub(stamp) }
    }

    /// The JSON of the last-applied annotation: equal if the annotations are, as one writer wrote both.
    pub fn stamp_json(&self) -> Option<&'a str> {
        self.stamp.map(Raw::get)
    }

    /// Whether all annotations surely fit together: JSON is never shorter than the text it encodes.
    pub fn surely_fit(&self) -> bool {
        size_budget::holds(self.others, self.stamp_json(), self.history)
    }

    /// The last-applied annotation.
    pub fn stamp_text(&self) -> Option<Cow<'a, str>> {
        self.stamp?.text().ok().map(|text| text.0)
    }
}
