//! What an event makes necessary, and what was before it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::event::{Changes, Cost, OutputKey};
use super::output::Output;
use crate::attach::RouteLinks;
use crate::node::NodeKey;
use crate::policy::PolicyId;
use crate::state::PolicyState;

/// What an event made necessary.
pub(super) struct Work {
    pub outputs: BTreeSet<OutputKey>,
    pub policies: BTreeSet<PolicyId>,
    /// Routes that were or are to be linked anew.
    pub routes: usize,
    /// Paths that appeared or vanished.
    pub paths: usize,
    /// How many of both there may be.
    pub budget: usize,
}

impl Default for Work {
    /// Work that is carried out whatever it costs: it has happened already.
    fn default() -> Self {
        Self { outputs: BTreeSet::new(), policies: BTreeSet::new(), routes: 0, paths: 0, budget: usize::MAX }
    }
}

impl Work {
    pub fn is_over_budget(&self) -> bool {
        self.routes + self.paths > self.budget
    }
}

/// What was there before an event, where the event changed it.
#[derive(Default)]
pub(super) struct Journal {
    pub outputs: BTreeMap<OutputKey, Option<Arc<Output>>>,
    pub links: BTreeMap<NodeKey, Option<RouteLinks>>,
    pub states: BTreeMap<PolicyId, Option<Arc<PolicyState>>>,
    /// Whether states are kept; a long one is then copied to be changed.
    pub keeps_states: bool,
    pub cost: Cost,
    /// Whether an object is another one than before.
    pub is_stored: bool,
}

impl Journal {
    pub fn into_changes(self) -> Changes {
        Changes {
            outputs: self.outputs.into_keys().collect(),
            routes: self.links.into_keys().collect(),
            policies: self.states.into_keys().collect(),
            cost: self.cost,
            is_stored: self.is_stored,
        }
    }
}
