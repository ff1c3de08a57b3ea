//! What happened to an object, and what it changed.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::kind::Scope;
use crate::node::NodeKey;
use crate::object::Object;
use crate::policy::{Policy, PolicyId};
use crate::store::ObjectKey;

/// An object of the topology or a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// An object that decides about paths.
    Object(ObjectKey),
    /// A policy.
    Policy(PolicyId),
}

/// What happened to an object.
///
/// An object that is not available is not deleted: a caller that cannot read a kind sends no event, and everything
/// stays as it is.
#[derive(Clone, Debug)]
pub enum Event {
    /// An object was created or updated.
    Apply(Object),
    /// A policy was created or updated.
    ApplyPolicy(Policy),
    /// An object or a policy was deleted.
    Delete(Subject),
    /// A version cannot be decoded. The last decoded one stays in force, and the fault is listed.
    Undecodable(Subject, String),
}

impl Event {
    /// What it is about.
    pub fn subject(&self) -> Subject {
        match self {
            Self::Apply(object) => Subject::Object(object.key()),
            Self::ApplyPolicy(policy) => Subject::Policy(policy.id.clone()),
            Self::Delete(subject) | Self::Undecodable(subject, _) => subject.clone(),
        }
    }
}

/// The key of an output: a kind of policies, and a path or a target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutputKey {
    /// The name of the kind.
    pub kind: Arc<str>,
    /// The path or the target.
    pub scope: Scope,
}

/// What an event cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Routes that were linked anew.
    pub routes: usize,
    /// Outputs that were looked up anew.
    pub outputs: usize,
    /// Merges of policies. Outputs with the same policies share one.
    pub merges: usize,
    /// Policies whose state was computed anew.
    pub policies: usize,
}

/// What an event changed. Everything that is not listed is as before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Outputs that appeared, changed or vanished.
    pub outputs: BTreeSet<OutputKey>,
    /// Routes whose listeners, hostnames, refusals, rules or backends changed.
    pub routes: BTreeSet<NodeKey>,
    /// Policies whose state changed, or that vanished.
    pub policies: BTreeSet<PolicyId>,
    /// What finding it out cost.
    pub cost: Cost,
    /// Whether an object differs from its version before in what decides about paths, also where none is affected.
    pub is_stored: bool,
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.outputs.is_empty() && self.routes.is_empty() && self.policies.is_empty()
    }

    /// Adds the changes of another event.
    pub fn extend(&mut self, other: Self) {
        let Self { outputs, routes, policies, cost, is_stored } = other;
        self.is_stored |= is_stored;
        self.outputs.extend(outputs);
        self.routes.extend(routes);
        self.policies.extend(policies);
        self.cost.routes += cost.routes;
        self.cost.outputs += cost.outputs;
        self.cost.merges += cost.merges;
        self.cost.policies += cost.policies;
    }
}
