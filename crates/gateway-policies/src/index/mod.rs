//! All objects and policies, and what they came to. An event recomputes what it touches.
//!
//! Input: [`Event`]s in any order. Output: [`Changes`], and everything that can be asked of an [`Index`].

mod difference;
mod event;
mod finding;
mod observe;
mod output;
mod paths;
mod policies;
mod query;
mod recompute;
mod tally;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::attach::{self, RouteLinks, store_object};
use crate::kind::{PolicyClass, PolicyKind, Scope};
use crate::limits;
use crate::node::NodeKey;
use crate::object::Object;
use crate::path::Path;
use crate::policy::{Policy, PolicyId};
use crate::state::PolicyState;
use crate::store::{ObjectKey, Store, Stored};
use output::Output;
use work::{Journal, Work};

pub use difference::{Difference, OverBudget, Replacement};
pub use event::{Changes, Cost, Event, OutputKey, Subject};
pub use finding::Finding;

/// The topology, its policies and their outputs.
///
/// A clone is an independent copy. [`Index::difference`] says what one event would change, at the cost of that event.
#[derive(Clone)]
pub struct Index {
    kinds: BTreeMap<Arc<str>, Arc<dyn PolicyKind>>,
    controllers: Option<BTreeSet<String>>,
    store: Store,
    policies: policies::Policies,
    faults: BTreeMap<Subject, String>,
    links: BTreeMap<NodeKey, RouteLinks>,
    paths: paths::Paths,
    outputs: BTreeMap<OutputKey, Arc<Output>>,
    tallies: tally::Tallies,
    states: BTreeMap<PolicyId, Arc<PolicyState>>,
}

/// The replacement of an object or a policy as it is stored.
enum Change {
    Object(ObjectKey, Option<Object>),
    Policy(PolicyId, Option<Policy>),
}

impl Index {
    /// An index without objects. Of two kinds with one name the later counts.
    pub fn new(kinds: impl IntoIterator<Item = Arc<dyn PolicyKind>>) -> Self {
        Self {
            kinds: kinds.into_iter().map(|kind| (Arc::from(kind.name()), kind)).collect(),
            controllers: None,
            store: Store::default(),
            policies: policies::Policies::default(),
            faults: BTreeMap::new(),
            links: BTreeMap::new(),
            paths: paths::Paths::default(),
            outputs: BTreeMap::new(),
            tallies: tally::Tallies::default(),
            states: BTreeMap::new(),
        }
    }

    /// Restricts an index without objects to the GatewayClasses of these `controllerName`s.
    #[must_use]
    pub fn with_controllers(mut self, controllers: impl IntoIterator<Item = String>) -> Self {
        self.controllers = Some(controllers.into_iter().collect());
        self
    }

    /// Applies an event.
    pub fn apply(&mut self, event: Event) -> Changes {
        self.faults.remove(&event.subject());
        let change = match self.change(event) {
            Ok(change) => change,
            Err((subject, message)) => {
                self.faults.insert(subject, message);
                return Changes::default();
            }
        };
        let mut work = Work::default();
        let mut journal = Journal::default();
        self.carry_out(change, &mut work, &mut journal);
        self.recompute(work, &mut journal);
        journal.into_changes()
    }

    /// What an event stores; an error is a version that cannot be decoded.
    fn change(&self, event: Event) -> Result<Change, (Subject, String)> {
        Ok(match event {
            Event::Apply(object) => Change::Object(object.key(), Some(object)),
            Event::ApplyPolicy(policy) => {
                let last = self.policies.get(&policy.id);
                Change::Policy(policy.id.clone(), Some(policy.after(last)))
            }
            Event::Delete(Subject::Object(key)) => Change::Object(key, None),
            Event::Delete(Subject::Policy(id)) => Change::Policy(id, None),
            Event::Undecodable(subject, message) => return Err((subject, message)),
        })
    }

    /// Replaces an object or a policy, and marks what that touches. Returns the change that takes it back.
    fn carry_out(&mut self, change: Change, work: &mut Work, journal: &mut Journal) -> Option<Change> {
        match change {
            Change::Object(key, new) => {
                let Stored { old, routes } = store_object(&mut self.store, &key, new)?;
                journal.is_stored = true;
                work.routes += routes.len();
                for route in routes {
                    if work.is_over_budget() {
                        break;
                    }
                    self.link(&route, work, journal);
                }
                self.mark_policies_of(&key, work);
                Some(Change::Object(key, old))
            }
            Change::Policy(id, new) => {
                let old = self.policy_changed(&id, new, work)?;
                Some(Change::Policy(id, old))
            }
        }
    }

    /// Marks the policies that target an object or a section of it.
    fn mark_policies_of(&self, key: &ObjectKey, work: &mut Work) {
        let ObjectKey::Node(node) = key else { return };
        for policy in self.policies.of_object(node) {
            work.policies.insert(policy.id.clone());
            if self.class(&policy.id.kind) == PolicyClass::Direct {
                let targets = policy.targets.iter().filter(|target| target.object() == *node);
                work.outputs.extend(targets.map(|target| direct_key(&policy.id.kind, target)));
            }
        }
    }

    /// Links a route anew, and marks the outputs of the paths that appeared or vanished.
    fn link(&mut self, route: &NodeKey, work: &mut Work, journal: &mut Journal) {
        let controllers = self.controllers.as_ref();
        let links = self.store.route(route).map(|stored| attach::links(&self.store, controllers, stored));
        if self.links.get(route) == links.as_ref() {
            return;
        }
        let changed = self.paths.replace(route, links.as_ref());
        let old = match links {
            Some(links) => self.links.insert(route.clone(), links),
            None => self.links.remove(route),
        };
        journal.links.insert(route.clone(), old);
        work.paths += changed.len();
        let inherited = self.kinds.iter().filter(|(_, kind)| kind.class() == PolicyClass::Inherited);
        for (kind, _) in inherited {
            work.outputs.extend(changed.iter().map(|path| inherited_key(kind, path)));
        }
    }

    /// Replaces a policy. Returns the version of before; none where nothing changed.
    fn policy_changed(
        &mut self,
        id: &PolicyId,
        policy: Option<Policy>,
        work: &mut Work,
    ) -> Option<Option<Policy>> {
        let (before, after) = (self.policies.get(id), policy.as_ref());
        let targets = before.into_iter().chain(after).flat_map(|policy| policy.targets.iter().cloned());
        let targets: BTreeSet<NodeKey> = targets.collect();
        let counted = |index: &Self| -> Vec<Vec<PolicyId>> {
            targets.iter().map(|target| index.counted(target, &id.kind)).collect()
        };
        let counted_before = counted(self);
        let old = self.policies.replace(id, policy)?;
        let counted_after = counted(self);
        work.policies.insert(id.clone());
        for (target, (before, after)) in targets.iter().zip(counted_before.into_iter().zip(counted_after)) {
            if self.class(&id.kind) == PolicyClass::Direct {
                work.outputs.insert(direct_key(&id.kind, target));
            } else {
                work.outputs.extend(self.paths.through(target).map(|path| inherited_key(&id.kind, path)));
            }
            // Losers of a direct kind name their winner.
            work.policies.extend(before.into_iter().chain(after));
        }
        Some(old)
    }

    /// The policies of a kind that count on a target. The state of no other one there depends on who they are.
    fn counted(&self, target: &NodeKey, kind: &str) -> Vec<PolicyId> {
        self.attached(target, kind).map(|policy| policy.id.clone()).collect()
    }

    /// The policy of a direct kind that has a target.
    fn winner(&self, target: &NodeKey, kind: &str) -> Option<&Policy> {
        self.attached(target, kind).find(|policy| policy.block.is_some())
    }

    /// The policies of a kind that count on a node, the older one first.
    fn attached(&self, node: &NodeKey, kind: &str) -> impl Iterator<Item = &Policy> {
        let (most, most_rules) = match self.class(kind) {
            PolicyClass::Direct => (limits::CONFLICTS_PER_TARGET, usize::MAX),
            PolicyClass::Inherited => (limits::POLICIES_PER_TARGET, limits::RULES_PER_TARGET),
        };
        let most = if self.is_beyond(node, kind) { 0 } else { most };
        let mut rules = 0;
        self.policies.on(node, kind).take(most).take_while(move |policy| {
            rules += policy.block.as_ref().map_or(0, |block| block.rules.len());
            rules <= most_rules
        })
    }

    /// Whether a policy of a kind can have a node as its target.
    fn is_target(&self, node: &NodeKey, kind: &str) -> bool {
        self.store.has(node) && !self.is_beyond(node, kind)
    }

    /// Whether a node is a position, and a kind asks for names.
    fn is_beyond(&self, node: &NodeKey, kind: &str) -> bool {
        self.kinds.get(kind).is_some_and(|kind| !kind.has_positions()) && self.store.is_position(node)
    }

    fn class(&self, kind: &str) -> PolicyClass {
        self.kinds.get(kind).map_or(PolicyClass::Inherited, |kind| kind.class())
    }
}

fn inherited_key(kind: &Arc<str>, path: &Arc<Path>) -> OutputKey {
    OutputKey { kind: kind.clone(), scope: Scope::Path(path.clone()) }
}

fn direct_key(kind: &Arc<str>, target: &NodeKey) -> OutputKey {
    OutputKey { kind: kind.clone(), scope: Scope::Target(target.clone()) }
}
