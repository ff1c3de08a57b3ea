//! What people have to know of a difference before it happens, in the words of the conditions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::sync::Arc;

use super::difference::{Difference, Replacement};
use crate::attach::RouteLinks;
use crate::condition::names;
use crate::effective::EffectivePolicy;
use crate::node::NodeKey;
use crate::path::Path;
use crate::policy::PolicyId;
use crate::refusal::Refusal;
use crate::state::{PolicyState, TargetState};

/// Something that a change would do and that its author may not expect. `Display` is the sentence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// A policy would have no target: the object or its section is absent.
    Detached {
        /// The policy.
        policy: PolicyId,
        /// The target.
        target: NodeKey,
    },
    /// A policy of a direct kind would not act on a target that an older one has.
    Conflicted {
        /// The policy.
        policy: PolicyId,
        /// The older one.
        by: PolicyId,
        /// The target.
        target: NodeKey,
    },
    /// A policy would not act on a target that has too many older ones.
    OverLimit {
        /// The policy.
        policy: PolicyId,
        /// The target.
        target: NodeKey,
    },
    /// None of a policy's rules would act.
    Overridden {
        /// The policy.
        policy: PolicyId,
        /// Whose rules act in place of its own.
        by: BTreeSet<PolicyId>,
        /// The paths that it is on.
        paths: usize,
    },
    /// Rules of a policy would cease to act, or not begin to.
    Replaced {
        /// The policy.
        policy: PolicyId,
        /// Whose rules act in place of its own.
        by: PolicyId,
        /// The rules.
        rules: BTreeSet<Arc<str>>,
        /// The paths on which one of them is replaced.
        paths: usize,
    },
    /// Paths would lose their last rule of a kind.
    Opened {
        /// The kind.
        kind: Arc<str>,
        /// How many paths.
        paths: usize,
        /// One of them.
        example: Arc<Path>,
    },
    /// Paths would appear without a rule of a kind.
    Uncovered {
        /// The kind.
        kind: Arc<str>,
        /// How many paths.
        paths: usize,
        /// One of them.
        example: Arc<Path>,
    },
    /// No listener would carry a route.
    NotAdmitted {
        /// The route.
        route: NodeKey,
        /// Each parent and listener, with its reason.
        refused: Vec<Refusal>,
    },
}

impl Difference {
    /// The findings, sorted. What was so before is none.
    pub fn findings(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        for (id, state) in &self.policies {
            self.find_in_state(id, state, &mut found);
        }
        self.find_replaced(&mut found);
        for (route, links) in &self.routes {
            found.extend(not_admitted(route, links));
        }
        for (kind, paths) in &self.opened {
            let opened = |example| Finding::Opened { kind: kind.clone(), paths: paths.len(), example };
            found.extend(paths.first().cloned().map(opened));
        }
        for (kind, paths) in &self.uncovered {
            let uncovered = |example| Finding::Uncovered { kind: kind.clone(), paths: paths.len(), example };
            found.extend(paths.first().cloned().map(uncovered));
        }
        found.sort();
        found
    }

    fn find_in_state(&self, id: &PolicyId, state: &Replacement<Arc<PolicyState>>, found: &mut Vec<Finding>) {
        let Some(after) = &state.after else { return };
        for (target, own) in &after.targets {
            if state.before.as_ref().and_then(|before| before.targets.get(target)) == Some(own) {
                continue;
            }
            let (policy, target) = (id.clone(), target.clone());
            found.extend(match own {
                TargetState::Attached => None,
                TargetState::NotFound => Some(Finding::Detached { policy, target }),
                TargetState::Conflicted(by) => Some(Finding::Conflicted { policy, by: by.clone(), target }),
                TargetState::OverLimit => Some(Finding::OverLimit { policy, target }),
            });
        }
        let is_overridden = |state: &PolicyState| {
            !state.ancestors.is_empty() && state.ancestors.values().all(|own| !own.is_live && own.is_replaced)
        };
        if is_overridden(after) && !state.before.as_ref().is_some_and(|before| is_overridden(before)) {
            let by = after.ancestors.values().flat_map(|own| own.replaced_by.iter().cloned());
            let paths = self.reach.get(id).copied().unwrap_or_default();
            found.push(Finding::Overridden { policy: id.clone(), by: by.collect(), paths });
        }
    }

    /// Rules that are replaced after and were not so before. Outputs with the same policies are looked at once.
    fn find_replaced(&self, found: &mut Vec<Finding>) {
        type Pair<'a> = &'a Replacement<Arc<EffectivePolicy>>;
        let address = |own: &Option<Arc<EffectivePolicy>>| own.as_ref().map(Arc::as_ptr);
        let mut groups: BTreeMap<_, (Pair<'_>, usize)> = BTreeMap::new();
        for output in self.outputs.values() {
            groups.entry((address(&output.before), address(&output.after))).or_insert((output, 0)).1 += 1;
        }
        #[derive(Default)]
        struct Pairing {
            rules: BTreeSet<Arc<str>>,
            paths: usize,
        }
        let mut replaced: BTreeMap<(&PolicyId, &PolicyId), Pairing> = BTreeMap::new();
        for (output, count) in groups.into_values() {
            let (Some(after), before) = (&output.after, &output.before) else { continue };
            let known: BTreeSet<_> = before.iter().flat_map(|before| &before.replaced).collect();
            let mut pairs = BTreeSet::new();
            for own in after.replaced.iter().filter(|own| !known.contains(own)) {
                for by in own.by.iter() {
                    replaced.entry((&own.policy, by)).or_default().rules.insert(own.rule.clone());
                    pairs.insert((&own.policy, by));
                }
            }
            for pair in pairs {
                replaced.entry(pair).or_default().paths += count;
            }
        }
        found.extend(replaced.into_iter().map(|((policy, by), Pairing { rules, paths })| {
            Finding::Replaced { policy: policy.clone(), by: by.clone(), rules, paths }
        }));
    }
}

fn not_admitted(route: &NodeKey, links: &Replacement<RouteLinks>) -> Option<Finding> {
    let is_refused = |links: &RouteLinks| links.attached.is_empty() && !links.refused.is_empty();
    let after = links.after.as_ref().filter(|after| is_refused(after))?;
    let is_new = !links.before.as_ref().is_some_and(is_refused);
    is_new.then(|| Finding::NotAdmitted { route: route.clone(), refused: after.refused.clone() })
}

fn count(number: usize, of: &str) -> String {
    if number == 1 { format!("1 {of}") } else { format!("{number} {of}s") }
}

impl Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = PolicyId::qualified_name;
        match self {
            Self::Detached { policy, target } => write!(f, "{policy}: target {target} was not found"),
            Self::Conflicted { policy, by, target } => {
                write!(f, "{policy} is conflicted by {}: {target} has an older policy", own(by))
            }
            Self::OverLimit { policy, target } => {
                write!(f, "{policy} is over the limit of policies of its kind on {target}")
            }
            Self::Overridden { policy, by, paths } => {
                let by = names(by.iter().map(PolicyId::qualified_name));
                let on =
                    if *paths == 1 { "its only path".to_owned() } else { format!("all its {paths} paths") };
                write!(f, "{policy} is overridden by [{by}] on {on}")
            }
            Self::Replaced { policy, by, rules, paths } => {
                let rules = names(rules.iter());
                write!(f, "{} replaces rules [{rules}] of {policy} on {}", own(by), count(*paths, "path"))
            }
            Self::Opened { kind, paths, example } => {
                let paths = count(*paths, "path");
                write!(f, "no rule of any {kind} acts on {paths} any more, as on {example}")
            }
            Self::Uncovered { kind, paths, example } => {
                let paths = count(*paths, "new path");
                write!(f, "no rule of any {kind} acts on {paths}, as on {example}")
            }
            Self::NotAdmitted { route, refused } => {
                let reasons = refused.iter().map(|own| format!("{}: {}", own.parent, own.reason));
                write!(f, "no listener carries {route} [{}]", names(reasons))
            }
        }
    }
}
