//! The descriptor of a kind: everything that is known of it. Webhook entries, policies, rights, watches, the
//! topology and the rules are derived from the list of descriptors ([`super::ALL`]).

pub mod cel;
mod kept;
mod policy;
mod right;
mod webhook;

pub use kept::Kept;
pub use policy::{IS_NOT, NOT_THE_CONTROLLER, Policy, PolicyOptions, PolicyScope, not_the_controller};
pub use policy::{only_where, policy_over};
pub use right::{READ, Right, Role, WRITE};
pub use webhook::{Calls, MatchCondition, MatchedObjects, OnFailure, WebhookEntry};

use std::sync::Arc;

use serde_json::Value;

use super::gauge::Gauges;
use super::inventory::DomainInventory;
use super::listed::ListedObjects;
use super::page::{Draw, PagePart, View};
use super::story::Story;
use crate::admission::kind::GuardedKind;
pub use crate::api::capability::Capability;
use crate::api::resource::Resource;
use crate::api::rule::Rule;
use crate::api::watched::Labelled;
use crate::reconcile::Reconciler;
use crate::topology::schema::DeclaredKind;
use crate::topology::snapshot::GraphSnapshot;

/// Everything that is known of a kind.
#[derive(Debug)]
pub struct Kind {
    /// How the API server serves it.
    pub resource: Resource,
    /// Whether and for what its objects are watched.
    pub watch: Option<Watch>,
    /// Its place in the topology: facts, links, and whom its events affect. A watched kind has one.
    pub schema: Option<&'static DeclaredKind>,
    /// How admission decides on its requests.
    pub admission: Option<&'static GuardedKind>,
    /// The requests that the API server sends.
    pub webhooks: &'static [WebhookEntry],
    /// The second layer: what CEL can express of its rules.
    pub policies: &'static [Policy],
    /// Rights beside those to read what is watched.
    pub rights: &'static [Right],
    /// Its rules.
    pub rules: &'static [Rule],
    /// Reconciles its objects, where that is a function of what was read.
    pub reconciler: Option<&'static Reconciler>,
    /// What its rules read of a list of objects, for decisions without a cluster; one kind of a domain has it for all.
    pub listed: Option<fn() -> Arc<dyn ListedObjects>>,
    /// What a process keeps of the objects of a domain beside their rows.
    pub inventory: Option<DomainInventory>,
    /// What the page about a process shows of its objects.
    pub page: Option<fn(&View<'_>) -> PagePart>,
    /// Draws the graph of its objects and of those around them, where the page has one: after the look at the cache,
    /// as it may take long.
    pub drawing: Option<fn(&View<'_>) -> Draw>,
    /// What metrics say of all its objects.
    pub gauges: Option<Gauges>,
    /// What `interlock why` tells of its objects.
    pub story: Option<&'static Story>,
    /// Facts of one object for `interlock topology`, beside those of the topology.
    pub node_facts: Option<NodeFacts>,
    /// What all objects of a domain together decide, for `interlock topology`; one kind of a domain has it for all.
    pub outline: Option<&'static Outline>,
}

/// Facts by name.
pub type NodeFacts = fn(&Value) -> Vec<(&'static str, String)>;

/// Links and facts that no object has alone.
#[derive(Debug)]
pub struct Outline {
    /// Whether it reads the objects of a kind, by group and kind.
    pub reads: fn(&str, &str) -> bool,
    /// Replaces links of a snapshot, and adds nodes and facts, by all objects that it reads.
    pub draw: fn(&[Value], &mut GraphSnapshot),
}

impl Kind {
    /// A kind of which nothing else is known.
    pub const fn new(resource: Resource) -> Self {
        Self {
            resource,
            watch: None,
            schema: None,
            admission: None,
            webhooks: &[],
            policies: &[],
            rights: &[],
            rules: &[],
            reconciler: None,
            listed: None,
            inventory: None,
            page: None,
            drawing: None,
            gauges: None,
            story: None,
            node_facts: None,
            outline: None,
        }
    }
}

/// The watch of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    /// The capability that needs its objects.
    pub capability: &'static Capability,
    /// Whether the capability runs only while the kind can be read; else it reads it where it exists.
    pub required: bool,
    /// Further capabilities that read it where it exists.
    pub also: &'static [&'static Capability],
    /// Only these labelled objects; `None` for all.
    pub labelled: Option<&'static Labelled>,
    /// The fields of `status` that Interlock writes: while its definition lacks one, the capability carries
    /// nothing out.
    pub status_fields: &'static [&'static str],
    /// What is kept of the objects for reconcilers; `None` = only rows of the topology.
    pub kept: Option<&'static Kept>,
}

impl Watch {
    /// A kind without which the capability does not run.
    pub const fn required(capability: &'static Capability) -> Self {
        Self { capability, required: true, also: &[], labelled: None, status_fields: &[], kept: None }
    }

    /// A kind that the capability reads where it exists.
    pub const fn optional(capability: &'static Capability) -> Self {
        Self { capability, required: false, also: &[], labelled: None, status_fields: &[], kept: None }
    }

    /// Further capabilities that read it where it exists.
    #[must_use]
    pub const fn also(self, also: &'static [&'static Capability]) -> Self {
        Self { also, ..self }
    }

    /// The capabilities that read its objects.
    pub fn readers(&self) -> impl Iterator<Item = &'static Capability> {
        std::iter::once(self.capability).chain(self.also.iter().copied())
    }

    /// Only these labelled objects.
    #[must_use]
    pub const fn labelled(self, labelled: &'static Labelled) -> Self {
        Self { labelled: Some(labelled), ..self }
    }

    /// What is kept of its objects for reconcilers.
    #[must_use]
    pub const fn kept(self, kept: &'static Kept) -> Self {
        Self { kept: Some(kept), ..self }
    }

    /// The fields of `status` that Interlock writes.
    #[must_use]
    pub const fn status_fields(self, status_fields: &'static [&'static str]) -> Self {
        Self { status_fields, ..self }
    }
}
