//! A guarded kind, as admission knows it: whose reviews it answers, and which function decides on them.

use super::RuleContext;
use super::decision::Decision;
use super::denial::Denial;
use super::lister::{CacheState, Lister};
use super::request::{Request, unknown};
use super::review::{Review, ReviewKind};
use crate::api::resource::Resource;

/// Decides on a request about an object of one kind.
pub type Decide = fn(&Request<'_>, &RuleContext<'_>) -> Decision;

/// A kind whose requests the rules decide on. Its folder in `kinds` declares it.
#[derive(Debug)]
pub struct GuardedKind {
    /// How the API server serves it. The webhooks receive its best version, whatever the client wrote.
    pub resource: Resource,
    /// The capability whose cache its rules need; without one, they decide by the object alone, or know
    /// themselves what is missing.
    pub capability: Option<&'static str>,
    /// The annotations whose values its rules read, beside the last-applied one.
    pub annotations: &'static [&'static str],
    /// Decides on the object.
    pub decide: Decide,
    /// Completes the object while no rule can be evaluated: restores the fields that Interlock owns.
    pub restore: Decide,
    /// Its subresources with rules of their own.
    pub sub_resources: &'static [SubResource],
}

/// A subresource of a guarded kind.
#[derive(Debug)]
pub struct SubResource {
    /// Name, such as `status`.
    pub name: &'static str,
    /// Decides on a write of it.
    pub decide: Decide,
}

/// Allows every request unchanged.
pub fn allow(_: &Request<'_>, _: &RuleContext<'_>) -> Decision {
    Decision::allow()
}

/// What decides on a request.
#[derive(Clone, Copy, Debug)]
pub struct Handler {
    kind: &'static GuardedKind,
    decide: Decide,
    /// Whether it is a subresource that is written.
    of_sub_resource: bool,
}

impl Handler {
    /// What decides on a review; a denial where none of the kinds does.
    pub fn of(review: &Review<'_>, kinds: &[&'static GuardedKind]) -> Result<Self, Box<Denial>> {
        let sub_resource = review.sub_resource.as_deref().unwrap_or_default();
        handler(&review.kind, sub_resource, kinds)
            .ok_or_else(|| unknown(not_known(&review.kind, sub_resource, kinds)))
    }

    /// How much of what the rules read the cache has.
    pub fn cache(&self, lister: &dyn Lister) -> CacheState {
        self.kind.capability.map(|capability| lister.cache(capability)).unwrap_or_default()
    }

    /// Decides by the rules.
    pub fn decide(&self, request: &Request<'_>, context: &RuleContext<'_>) -> Decision {
        (self.decide)(request, context)
    }

    /// Restores the fields that Interlock owns, while no rule can be evaluated.
    pub fn restore(&self, request: &Request<'_>, context: &RuleContext<'_>) -> Decision {
        if self.of_sub_resource { Decision::allow() } else { (self.kind.restore)(request, context) }
    }
}

/// The kind of a review, and what decides on its object or on that subresource.
fn handler(kind: &ReviewKind<'_>, sub_resource: &str, kinds: &[&'static GuardedKind]) -> Option<Handler> {
    let is = |guarded: &&&GuardedKind| {
        let Resource { group, kind: name, .. } = guarded.resource;
        kind.kind.as_str() == name
            && kind.group.as_str() == group
            && kind.version.as_str() == guarded.resource.version()
    };
    let guarded = *kinds.iter().find(is)?;
    let decide = match sub_resource {
        "" => guarded.decide,
        name => guarded.sub_resources.iter().find(|sub| sub.name == name)?.decide,
    };
    Some(Handler { kind: guarded, decide, of_sub_resource: !sub_resource.is_empty() })
}

/// The message about a kind or subresource that no rule handles.
fn not_known(kind: &ReviewKind<'_>, sub_resource: &str, kinds: &[&'static GuardedKind]) -> String {
    let (group, version, kind) = (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str());
    let served =
        |guarded: &&GuardedKind| (guarded.resource.group, guarded.resource.version()) == (group, version);
    if !kinds.iter().any(served) {
        let names: Vec<String> = kinds.iter().map(|guarded| guarded.resource.name()).collect();
        let written = format!("{group}/{version}, Kind={kind}");
        return format!("this webhook decides on {}, not on {written:?}", names.join(", "));
    }
    match sub_resource {
        "" => format!("kind {kind:?} is not known here"),
        sub => format!("subresource {sub:?} of kind {kind:?} is not known here"),
    }
}
