//! All objects and policies, and what they came to. An event recomputes what it touches.
//!
//! Input: [`Event`]s in any order. Output: [`Changes`], and everything that can be asked of an [`Index`].

mod event;
mod observe;
mod paths;
mod policies;
mod query;
mod tally;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::attach::{self, RouteLinks};
use crate::effective::{self, EffectivePolicy};
use crate::kind::{PolicyClass, PolicyKind, Scope};
use crate::limits;
use crate::node::NodeKey;
use crate::path::Path;
use crate::policy::{Policy, PolicyId};
use crate::state::{PolicyState, TargetState};
use crate::store::{ObjectKey, Store};

pub use event::{Changes, Event, OutputKey, Subject};

/// The topology, its policies and their outputs.
///
/// A clone is an independent copy: apply a change to it to see what the change would do.
#[derive(Clone)]
pub struct Index {
    kinds: BTreeMap<Arc<str>, Arc<dyn PolicyKind>>,
    controllers: Option<BTreeSet<String>>,
    store: Store,
    policies: policies::Policies,
    faults: BTreeMap<Subject, String>,
    links: BTreeMap<NodeKey, RouteLinks>,
    paths: paths::Paths,
    outputs: BTreeMap<OutputKey, EffectivePolicy>,
    tallies: tally::Tallies,
    states: BTreeMap<PolicyId, PolicyState>,
}

/// What an event made necessary.
#[derive(Default)]
struct Work {
    outputs: BTreeSet<OutputKey>,
    policies: BTreeSet<PolicyId>,
    routes: BTreeSet<NodeKey>,
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
        let mut work = Work::default();
        match event {
            Event::Apply(object) => {
                let key = object.key();
                self.faults.remove(&Subject::Object(key.clone()));
                if let Some(stored) = self.store.replace(&key, Some(object)) {
                    self.topology_changed(&key, stored.routes, &mut work);
                }
            }
            Event::ApplyPolicy(policy) => {
                let id = policy.id.clone();
                self.faults.remove(&Subject::Policy(id.clone()));
                self.policy_changed(&id, Some(policy), &mut work);
            }
            Event::Delete(subject) => {
                self.faults.remove(&subject);
                match subject {
                    Subject::Object(key) => {
                        if let Some(stored) = self.store.replace(&key, None) {
                            self.topology_changed(&key, stored.routes, &mut work);
                        }
                    }
                    Subject::Policy(id) => self.policy_changed(&id, None, &mut work),
                }
            }
            Event::Undecodable(subject, message) => {
                self.faults.insert(subject, message);
            }
        }
        self.carry_out(work)
    }

    fn topology_changed(&mut self, key: &ObjectKey, routes: BTreeSet<NodeKey>, work: &mut Work) {
        for route in routes {
            self.link(&route, work);
        }
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
    fn link(&mut self, route: &NodeKey, work: &mut Work) {
        let controllers = self.controllers.as_ref();
        let links = self.store.route(route).map(|stored| attach::links(&self.store, controllers, stored));
        if self.links.get(route) == links.as_ref() {
            return;
        }
        work.routes.insert(route.clone());
        let changed = self.paths.replace(route, links.as_ref());
        match links {
            Some(links) => self.links.insert(route.clone(), links),
            None => self.links.remove(route),
        };
        let inherited = self.kinds.iter().filter(|(_, kind)| kind.class() == PolicyClass::Inherited);
        for (kind, _) in inherited {
            work.outputs.extend(changed.iter().map(|path| inherited_key(kind, path)));
        }
    }

    fn policy_changed(&mut self, id: &PolicyId, policy: Option<Policy>, work: &mut Work) {
        let Some(targets) = self.policies.replace(id, policy) else { return };
        work.policies.insert(id.clone());
        let class = self.class(&id.kind);
        for target in &targets {
            // Others on the target can win or lose it.
            work.policies.extend(self.policies.on(target, &id.kind).map(|other| other.id.clone()));
            match class {
                PolicyClass::Direct => {
                    work.outputs.insert(direct_key(&id.kind, target));
                }
                PolicyClass::Inherited => {
                    let paths = self.paths.through(target);
                    work.outputs.extend(paths.map(|path| inherited_key(&id.kind, path)));
                }
            }
        }
    }

    /// Recomputes what is marked, and compares it with what was.
    fn carry_out(&mut self, work: Work) -> Changes {
        let Work { outputs, mut policies, routes } = work;
        let mut changes = Changes { routes, ..Changes::default() };
        for key in outputs {
            let new = self.output(&key);
            if self.outputs.get(&key) == new.as_ref() {
                continue;
            }
            let ancestor = ancestor(&key.scope);
            if let Some(old) = self.outputs.remove(&key) {
                self.tallies.remove(&ancestor, &old);
                policies.extend(old.policies);
            }
            if let Some(new) = new {
                self.tallies.add(&ancestor, &new);
                policies.extend(new.policies.iter().cloned());
                self.outputs.insert(key.clone(), new);
            }
            changes.outputs.insert(key);
        }
        for id in policies {
            let state = self.compute_state(&id);
            if self.states.get(&id) != state.as_ref() {
                match state {
                    Some(state) => self.states.insert(id.clone(), state),
                    None => self.states.remove(&id),
                };
                changes.policies.insert(id);
            }
        }
        changes
    }

    /// The effective policy of a path or a target; none where no policy is attached, or the path is not there.
    fn output(&self, key: &OutputKey) -> Option<EffectivePolicy> {
        let kind = self.kinds.get(&key.kind)?;
        let policies: Vec<&Policy> = match &key.scope {
            Scope::Path(path) if self.paths.contains(path) => {
                path.nodes().flat_map(|node| self.attached(node, &key.kind)).collect()
            }
            Scope::Target(target) if self.store.has(target) => {
                let (valid, unreadable): (Vec<&Policy>, Vec<&Policy>) =
                    self.policies.on(target, &key.kind).partition(|policy| policy.block.is_some());
                let bounded = unreadable.into_iter().take(limits::POLICIES_PER_TARGET);
                valid.into_iter().take(1).chain(bounded).collect()
            }
            Scope::Path(_) | Scope::Target(_) => return None,
        };
        (!policies.is_empty()).then(|| effective::fold(&policies, &|key| kind.is_rule(key)))
    }

    /// The policies of an inherited kind that count on a node, the older one first.
    fn attached(&self, node: &NodeKey, kind: &str) -> impl Iterator<Item = &Policy> {
        self.policies.on(node, kind).take(limits::POLICIES_PER_TARGET)
    }

    fn compute_state(&self, id: &PolicyId) -> Option<PolicyState> {
        let policy = self.policies.get(id)?;
        let targets = policy.targets.iter().map(|target| (target.clone(), self.target_state(policy, target)));
        Some(PolicyState {
            id: id.clone(),
            generation: policy.generation,
            violations: policy.violations.clone(),
            has_last_valid: !policy.violations.is_empty() && policy.block.is_some(),
            targets: targets.collect(),
            ancestors: self.tallies.states(id),
        })
    }

    fn target_state(&self, policy: &Policy, target: &NodeKey) -> TargetState {
        if !self.store.has(target) {
            return TargetState::NotFound;
        }
        if policy.is_deleting {
            return TargetState::Attached;
        }
        let kind = &policy.id.kind;
        match self.class(kind) {
            PolicyClass::Direct => {
                let winner = self.policies.on(target, kind).find(|other| other.block.is_some());
                match winner.filter(|winner| winner.id != policy.id && policy.block.is_some()) {
                    Some(winner) => TargetState::Conflicted(winner.id.clone()),
                    None => TargetState::Attached,
                }
            }
            PolicyClass::Inherited => {
                let counts = self.attached(target, kind).any(|other| other.id == policy.id);
                if counts { TargetState::Attached } else { TargetState::OverLimit }
            }
        }
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

/// The object whose status an output counts for.
fn ancestor(scope: &Scope) -> NodeKey {
    match scope {
        Scope::Path(path) => path.gateway.clone(),
        Scope::Target(target) => target.object(),
    }
}
